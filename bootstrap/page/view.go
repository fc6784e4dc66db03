package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// view is one document: its template, its entry in the navigation, and its data.
type view struct {
	template, entry string
	data            func(*http.Request) (any, error)
}

// document is the data of the layout.
type document struct {
	Node, Entry, Title string
	Entries            []entry
	Ready              api.Readiness
	Now                time.Time
	Data               any
}

// entry is one entry of the navigation.
type entry struct{ Name, Path string }

// entries are the navigation.
func entries() []entry {
	return []entry{
		{"Overview", "/"},
		{"Services", "/services"},
		{"Packet", "/packet"},
		{"Actors", "/actors"},
		{"Tree", "/tree"},
		{"Interfaces", "/interfaces"},
		{"Addresses", "/addresses"},
		{"Nodes", "/nodes"},
		{"Events", "/events"},
		{"Resync", "/resync"},
		{"Diff", "/diff"},
		{"Chaos", "/chaos"},
	}
}

// errQuery is an invalid parameter.
var errQuery = errors.New("bad request")

// show answers with a view.
func (h *handler) show(w http.ResponseWriter, r *http.Request, v *view) {
	data, err := v.data(r)
	switch {
	case errors.Is(err, errQuery), errors.Is(err, api.ErrInvalid):
		h.fail(w, r, http.StatusBadRequest, err.Error())
	case errors.Is(err, api.ErrNotFound):
		h.fail(w, r, http.StatusNotFound, err.Error())
	case err != nil:
		h.fail(w, r, http.StatusServiceUnavailable, err.Error())
	default:
		h.render(w, http.StatusOK, v.template, v.entry, data)
	}
}

// fail answers with a document that shows the error.
func (h *handler) fail(w http.ResponseWriter, _ *http.Request, status int, why string) {
	h.render(w, status, "error", "", fmt.Sprintf("%d: %s", status, why))
}

// render answers with a document.
func (h *handler) render(w http.ResponseWriter, status int, name, entry string, data any) {
	var out bytes.Buffer
	err := h.templates[name].Execute(&out, document{
		Node: h.Node, Entry: entry, Title: cmp.Or(entry, "Error"), Entries: entries(), Ready: h.Source.Readiness(), Now: time.Now(), Data: data,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, status, "text/html; charset=utf-8", out.Bytes())
}

// parse reads the templates, each together with the layout.
func parse() (map[string]*template.Template, error) {
	all := map[string]*template.Template{}
	var errs []error
	for _, name := range []string{
		"overview", "tree", "actors", "actor", "services", "service", "interfaces", "addresses", "nodes", "events", "resync", "diff", "chaos", "packet",
		"error",
	} {
		one, err := template.New("layout.html").Funcs(functions()).ParseFS(web, "web/layout.html", "web/"+name+".html")
		all[name], errs = one, append(errs, err)
	}
	return all, errors.Join(errs...)
}

// functions are the functions of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"ago":     func(t time.Time) string { return api.Age(time.Since(t)) },
		"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
		"join":    func(all []string) string { return strings.Join(all, ", ") },
		"class":   class,
		"served":  api.ServedWords,
		"words":   words,
		"pods":    pods,
		"next":    next,
		"json":    indented,
		"table":   table,
		"percent": func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
		"seconds": func(s float64) string {
			return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
		},
	}
}

// class is the style class for the state of an actor or a service.
func class(state any) string {
	return cmp.Or(api.Tone(fmt.Sprint(state)), "bad")
}

// cell is one cell of a table. Link is the path of the document about it; "" = there is none.
type cell struct {
	HTML        template.HTML
	Class, Link string
}

// table has the titles and the rows of a slice of structs with columns (api.Columns).
func table(rows any) [][]cell {
	all := reflect.ValueOf(rows)
	out := make([][]cell, 1+all.Len())
	for _, c := range api.Columns(all.Type().Elem()) {
		out[0] = append(out[0], cell{words(c.Title), newCell(&c, reflect.Zero(all.Type().Elem())).Class, ""})
		for n := range all.Len() {
			out[n+1] = append(out[n+1], newCell(&c, all.Index(n)))
		}
	}
	return out
}

// newCell is the cell of a column for a struct. A long text may need several lines.
func newCell(c *api.Column, of reflect.Value) cell {
	value := c.Cell(of)
	text := strings.NewReplacer(", ", ", ", ",", ", ").Replace(fmt.Sprint(value))
	out := cell{HTML: words(text), Class: cmp.Or(c.Tone, api.Tone(text))}
	switch v := reflect.ValueOf(value); {
	case (v.CanInt() || v.CanUint()) && v.IsZero():
		out.Class = "n dim"
	case v.CanInt() || v.CanUint():
		out.Class = "n"
	case value == true && c.Tone != "":
		out.Class = "good"
	case len(text) > 22 && strings.Contains(text, " "):
		out.Class += " text"
	}
	if text != "" && c.Link != "" {
		out.Link = c.Link + text
	}
	return out
}

// pods are the first interfaces of pods; interfaces that are down come first.
func pods(all *api.Interfaces) []api.Interface {
	found := slices.DeleteFunc(slices.Clone(all.Items), func(i api.Interface) bool { return len(i.Pods) == 0 })
	slices.SortStableFunc(found, func(a, b api.Interface) int { return strings.Compare(fmt.Sprint(a.Up), fmt.Sprint(b.Up)) })
	return found[:min(len(found), 12)]
}

// words is a text whose addresses and names a browser does not divide.
func words(text string) template.HTML {
	parts := strings.Split(text, " ")
	for i, word := range parts {
		if parts[i] = template.HTMLEscapeString(word); len(word) < 64 && strings.ContainsAny(strings.TrimRight(word, ":"), "/-:") {
			parts[i] = `<span class="word">` + parts[i] + `</span>`
		}
	}
	return template.HTML(strings.Join(parts, " ")) //nolint:gosec // escaped above
}

// next is a next step, with its commands in the style of code.
func next(step string) template.HTML {
	parts := strings.Split(step, "`")
	for i := range parts {
		if parts[i] = template.HTMLEscapeString(parts[i]); i%2 == 1 {
			parts[i] = `<code class="word">` + parts[i] + "</code>"
		}
	}
	return template.HTML(strings.Join(parts, "")) //nolint:gosec // escaped above
}

// indented is JSON for people.
func indented(raw json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return string(raw)
	}
	return out.String()
}
