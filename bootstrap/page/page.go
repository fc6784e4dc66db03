package page

import (
	"embed"
	"net/http"
	"path"
	"strconv"
)

//go:embed web
var web embed.FS

// file returns the name and the type of the file at a path; "" = none.
func file(path string) (name, kind string) {
	switch path {
	case "/":
		return "index.html", "text/html; charset=utf-8"
	case "/page.js":
		return "page.js", "text/javascript; charset=utf-8"
	case "/page.css":
		return "page.css", "text/css; charset=utf-8"
	default:
		return "", ""
	}
}

// policy restricts the page to its own scripts and styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler answers /, /page.js and /page.css, and everything else with 404.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, kind := file(r.URL.Path); name != "" {
			serve(w, name, kind)
			return
		}
		http.Error(w, "no such page: "+r.URL.Path, http.StatusNotFound)
	})
}

// serve answers with one of the files. net/http drops the body of an answer to HEAD.
func serve(w http.ResponseWriter, name, kind string) {
	content, err := web.ReadFile(path.Join("web", name))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(content) // a client that is gone needs no answer
}
