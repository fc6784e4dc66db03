package page

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

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

// perPage is the number of items on one page of a list.
const perPage = 100

// list is one page of a list.
type list[T any] struct {
	Items []T
	Total int
	// From is the number of the first item, from 1.
	From int
	// Query has the filters. Before and After are the queries of the neighbouring pages; "" =
	// there is no such page.
	Query         url.Values
	Before, After string
}

// To is the number of the last item.
func (l *list[T]) To() int { return l.From + len(l.Items) - 1 }

// Is reports whether a filter has a value.
func (l *list[T]) Is(name, value string) bool { return l.Query.Get(name) == value }

// paged returns the page ?page= of a list, from 1. Unlike the cursors of the API, page numbers let
// a reader jump; an item that comes or goes meanwhile only moves the others.
func paged[T any](r *http.Request, all []T, filters ...string) (*list[T], error) {
	query, err := parameters(r, append(filters, "page")...)
	if err != nil {
		return nil, err
	}
	number := 1
	if text := query.Get("page"); text != "" {
		if number, err = strconv.Atoi(text); err != nil || number < 1 || number > 1+len(all)/perPage {
			return nil, fmt.Errorf("%w: page %q is not one of %d", errQuery, text, 1+len(all)/perPage)
		}
	}
	from := (number - 1) * perPage
	l := &list[T]{Items: all[from:min(from+perPage, len(all))], Total: len(all), From: from + 1, Query: query}
	to := func(page int) string {
		query.Set("page", strconv.Itoa(page))
		defer query.Del("page")
		return "?" + query.Encode()
	}
	if number > 1 {
		l.Before = to(number - 1)
	}
	if from+perPage < len(all) {
		l.After = to(number + 1)
	}
	return l, nil
}

// parameters reads the parameters of a request. An unknown parameter is an error, because the
// reader would believe that the list is filtered.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errQuery, err)
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name, values := range query {
		if !known[name] || len(values) != 1 {
			return nil, fmt.Errorf("%w: parameter %q", errQuery, name)
		}
		if values[0] == "" { // an empty field of a form
			query.Del(name)
		}
	}
	return query, nil
}

// listed is the view of a list with further fields.
func listed[T, I any, P api.Paged[T, I]](ask func(context.Context) (P, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		all, err := ask(r.Context())
		if err != nil {
			return nil, err
		}
		part, err := paged(r, all.List().Items)
		return struct {
			All  P
			Page *list[I]
		}{all, part}, err
	}
}

// asked is a packet and its explanation.
type asked struct {
	Source, Destination string
	Answer              *api.Packet // nil = nothing was asked yet
}

// packet explains a packet.
func (h *handler) packet(r *http.Request) (any, error) {
	query, err := parameters(r, "source", "destination")
	if err != nil {
		return nil, err
	}
	data := asked{Source: query.Get("source"), Destination: query.Get("destination")}
	if data.Source != "" && data.Destination != "" {
		data.Answer, err = h.Source.Packet(r.Context(), data.Source, data.Destination)
	}
	return data, err
}

// Limits of the stream of changes.
const (
	mostViewers = 64
	// look is the interval between two readings of the journal.
	look = 300 * time.Millisecond
	// slow is the time that a client has to receive an event.
	slow = 5 * time.Second
)

// live streams the number of the latest event each time that the journal has grown. The deadline of
// the request ends the stream, so that a lost client frees its place. Browsers then connect again,
// with the last number that they have.
func (h *handler) live(w http.ResponseWriter, r *http.Request) {
	select {
	case h.viewers <- struct{}{}:
		defer func() { <-h.viewers }()
	default:
		h.fail(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d documents are watched already, load this one again to see changes", mostViewers))
		return
	}
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	known := r.Header.Get("Last-Event-ID")
	if _, err := fmt.Fprint(w, "retry: 500\n\n"); err != nil || stream.Flush() != nil {
		return
	}
	for {
		page, err := h.Source.Events(r.Context(), api.EventQuery{Limit: 1})
		if err == nil && len(page.Items) > 0 {
			if seq := strconv.FormatUint(page.Items[0].Seq, 10); seq != known {
				known = seq
				_ = stream.SetWriteDeadline(time.Now().Add(slow)) // test recorders have none
				if _, err := fmt.Fprintf(w, "id: %s\ndata: %s\n\n", seq, seq); err != nil || stream.Flush() != nil {
					return
				}
			}
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func badNumber(name, text string) error {
	return fmt.Errorf("%w: %s %q is not a number", errQuery, name, text)
}

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
