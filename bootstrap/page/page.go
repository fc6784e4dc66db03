package page

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strconv"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

//go:embed web
var web embed.FS

// Source has the data of the documents. Its clients share the readings of VPP.
type Source interface {
	api.Reader
	// Readiness reports whether VPP on this node is in the desired state.
	Readiness() api.Readiness
}

// Config is the configuration of a Handler. It is read-only.
type Config struct {
	Source Source
	// History has the number and the latency of changes.
	History *History
	// Node is the name of the node.
	Node string
}

// policy restricts a document to its own script and style, because names and errors in it come from
// the cluster.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// handler renders documents.
type handler struct {
	Config
	templates map[string]*template.Template
	viewers   chan struct{} // a token for each stream
}

// Handler answers the paths of the documents, of their style and script, and of the stream. Every
// other path gets 404.
func Handler(cfg Config) (http.Handler, error) {
	templates, err := parse()
	if err != nil {
		return nil, fmt.Errorf("templates of the page: %w", err)
	}
	h := &handler{cfg, templates, make(chan struct{}, mostViewers)}
	mux := http.NewServeMux()
	for path, view := range map[string]view{
		"/{$}":                         {"overview", "Overview", h.overview},
		"/tree":                        {"tree", "Tree", h.tree},
		"/actors":                      {"actors", "Actors", h.actors},
		"/actors/{path...}":            {"actor", "Actors", h.actor},
		"/services":                    {"services", "Services", h.services},
		"/services/{namespace}/{name}": {"service", "Services", h.service},
		"/packet":                      {"packet", "Packet", h.packet},
		"/interfaces":                  {"interfaces", "Interfaces", listed(h.Source.Interfaces)},
		"/addresses":                   {"addresses", "Addresses", listed(h.Source.Addresses)},
		"/nodes":                       {"nodes", "Nodes", listed(h.Source.Nodes)},
		"/events":                      {"events", "Events", h.events},
		"/resync":                      {"resync", "Resync", h.resync},
		"/diff":                        {"diff", "Diff", plain(h.Source.Diff)},
		"/chaos":                       {"chaos", "Chaos", plain(h.Source.Chaos)},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { h.show(w, r, &view) })
	}
	mux.HandleFunc("/page.css", file("page.css", "text/css; charset=utf-8"))
	mux.HandleFunc("/page.js", file("page.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("/live", h.live)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, http.StatusNotFound, "no such page: "+r.URL.Path)
	})
	return mux, nil
}

// plain is a view without parameters.
func plain[T any](ask func(context.Context) (T, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) { return ask(r.Context()) }
}

// file answers with an embedded file.
func file(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		content, err := web.ReadFile(path.Join("web", name))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		send(w, http.StatusOK, kind, content)
	}
}

// send answers with a document.
func send(w http.ResponseWriter, status int, kind string, content []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write(content) // a client that is gone needs no answer
}
