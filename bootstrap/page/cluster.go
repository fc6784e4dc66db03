package page

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

// Cluster serves a document of all nodes, which loads itself again every 10 seconds, and its style.
// ask returns the titles of the columns and a row for each node. The first cell is the name of the
// node, the second one "yes" if it is ready.
func Cluster(ask func(context.Context) (titles []any, rows [][]any, err error)) (http.Handler, error) {
	document, err := template.New("cluster.html").Funcs(functions()).ParseFS(web, "web/cluster.html")
	if err != nil {
		return nil, fmt.Errorf("template of the page of all nodes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/page.css", file("page.css", "text/css; charset=utf-8"))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		titles, rows, err := ask(r.Context())
		status := http.StatusOK
		if err != nil {
			status = http.StatusServiceUnavailable
		}
		var out bytes.Buffer
		if err := document.Execute(&out, map[string]any{"Titles": titles, "Rows": rows, "Error": err, "Now": time.Now()}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		send(w, status, "text/html; charset=utf-8", out.Bytes())
	})
	return mux, nil
}
