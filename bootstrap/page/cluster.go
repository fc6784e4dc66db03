package page

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
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
		ready, next := 0, []string{}
		for _, row := range rows {
			if row[1] == "yes" {
				ready++
			}
		}
		if ready < len(rows) {
			next = append(next, "Some nodes are not ready. Next: `troupe check --all-nodes`")
		}
		if slices.ContainsFunc(rows, func(row []any) bool { return strings.Contains(fmt.Sprint(row...), "differs: version") }) {
			next = append(next, "The version of the agent differs. Next: `kubectl -n troupe-system rollout status ds/troupe-agent`")
		}
		if err := document.Execute(&out, map[string]any{"Titles": titles, "Rows": rows, "Error": err, "Now": time.Now(), "Ready": ready, "Next": next}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		send(w, status, "text/html; charset=utf-8", out.Bytes())
	})
	return mux, nil
}
