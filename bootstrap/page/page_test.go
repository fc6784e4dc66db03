package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/page"
)

// hostile is text that must stay text.
const hostile = `<script>alert("x")</script>`

// handler is the page of an agent with this number of services.
func handler(t testing.TB, troupe *apitest.Troupe) http.Handler {
	t.Helper()
	h, err := page.Handler(page.Config{Source: troupe, History: &page.History{}, Node: hostile})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get asks for a path.
func get(h http.Handler, path string) (status int, header http.Header, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Header(), w.Body.String()
}

// documents are all documents in the navigation, and one of each kind below.
var documents = []string{
	"/", "/tree", "/actors", "/actors/agent/dataplane/nat44", "/services", "/services/shop/service-001", "/services/shop/service-001?sessions=yes", "/interfaces", "/nodes", "/events", "/resync", "/diff", "/chaos",
	"/packet", "/packet?source=10.1.1.3&destination=10.96.0.1:80/TCP", "/nonsense",
}

// TestDocuments: each document has its content without the script, and foreign text is text.
func TestDocuments(t *testing.T) {
	troupe := apitest.New(3)
	troupe.Hooks.Uplink = hostile
	troupe.Record(api.Event{Kind: "service", Actor: "agent/world", Object: hostile, Text: hostile, Error: hostile})
	troupe.Drift(hostile)
	h := handler(t, troupe)
	links := map[string]bool{}
	for _, path := range documents {
		status, header, body := get(h, path)
		want := http.StatusOK
		if path == "/nonsense" {
			want = http.StatusNotFound
		}
		if status != want || header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %s", path, status, header)
		}
		if !strings.HasSuffix(strings.TrimSpace(body), "</html>") || strings.Contains(body, hostile) || !strings.Contains(body, "&lt;script&gt;") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("%s:\n%s", path, body)
		}
		for _, found := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(found[1], "/") && !strings.HasPrefix(found[1], "?") && found[1] != "data:," {
				t.Errorf("%s refers to %s, which is elsewhere", path, found[1])
			}
			links[strings.ReplaceAll(found[1], "&amp;", "&")] = true
		}
	}
	for link := range links {
		if status, _, _ := get(h, link); status != http.StatusOK && strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "/actors/agent/world") {
			t.Errorf("a link to %s: %d", link, status)
		}
	}
}

// TestColumns: a tag makes a field a column of the table of a command and of the page, beside its
// description.
func TestColumns(t *testing.T) {
	troupe := apitest.New(3)
	troupe.Hooks.Uplink = "tap0"
	h := handler(t, troupe)
	var described struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(api.OpenAPI(), &described); err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct {
		path string
		rows any
	}{
		{"/services", []api.Service{}},
		{"/services/shop/service-001", []api.Frontend{}},
		{"/services/shop/service-001?sessions=yes", []api.Session{}},
		{"/actors", []api.Actor{}},
		{"/actors/agent/dataplane/nat44", []api.MessageTraffic{}},
		{"/interfaces", []api.Interface{}},
		{"/nodes", []api.Node{}},
		{"/nodes", []api.Approximation{}},
		{"/resync", []api.RendererSync{}},
		{"/resync", []api.HealingCount{}},
	} {
		_, _, body := get(h, list.path)
		var command strings.Builder
		table := cli.NewColumns(&command, cli.Screen{})
		table.Table("", list.rows)
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		row := reflect.TypeOf(list.rows).Elem()
		for _, field := range reflect.VisibleFields(row) {
			title, _, _ := strings.Cut(field.Tag.Get("column"), ",")
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if title == "" {
				continue
			}
			if described.Components.Schemas[row.Name()].Properties[name] == nil {
				t.Errorf("%s.%s is not described", row.Name(), name)
			}
			if !strings.Contains(command.String(), title) || !strings.Contains(body, ">"+title+"<") {
				t.Errorf("%s: no column %s of %s", list.path, title, row.Name())
			}
		}
	}
}

// TestRefused: an unusable parameter is an error, whatever it is.
func TestRefused(t *testing.T) {
	h := handler(t, apitest.New(3))
	for path, want := range map[string]int{
		"/services?page=0": 400, "/services?page=2": 400, "/services?page=99999999999999999999": 400, "/services?page=x": 400, "/services?color=red": 400,
		"/services?state=failed&state=pending": 400, "/services?state=%zz": 400, "/events?before=-1": 400, "/events?cause=x": 400, "/tree?x=1": 400,
		"/actors/nobody": 404, "/services/a/b": 404, "/web/page.js": 404, "/page.js/x": 404, "/%3Cscript%3E": 404, "/services?state=": 200, "/services?page=1": 200, "/services?name=service-00": 200,
	} {
		if status, _, body := get(h, path); status != want || strings.Contains(body, "<script>alert") {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}

// TestMany: no document grows with the number of services, and the pages of a list have all of
// them.
func TestMany(t *testing.T) {
	few, many := handler(t, apitest.New(200)), handler(t, apitest.New(10_000))
	for _, path := range []string{"/", "/tree", "/actors", "/services"} {
		_, _, small := get(few, path)
		_, _, large := get(many, path)
		if len(large) > len(small)+len(small)/10+1000 {
			t.Errorf("%s has %d bytes with 200 services, %d with 10,000", path, len(small), len(large))
		}
	}
	seen := map[string]bool{}
	next := regexp.MustCompile(`rel="next" href="([^"]*)"`)
	for path := "/services"; path != ""; {
		_, _, body := get(many, path)
		for _, found := range regexp.MustCompile(`href="/services/([^"]*)"`).FindAllStringSubmatch(body, -1) {
			seen[found[1]] = true
		}
		link := next.FindStringSubmatch(body)
		if path = ""; link != nil {
			path = "/services" + link[1]
		}
	}
	if len(seen) != 10_000 {
		t.Errorf("the pages have %d services", len(seen))
	}
}

// TestMap: the page of a service has its clients, frontends and endpoints, and the search finds a
// name.
func TestMap(t *testing.T) {
	h := handler(t, apitest.New(3))
	_, _, body := get(h, "/services/shop/service-001?sessions=yes")
	for _, want := range []string{">any client<", `<span class="path">10.96.0.2:80/TCP</span>`, `<span class="path">10.1.1.3:8080</span> <b>100 %</b>`, " sessions\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if _, _, found := get(h, "/services?name=ice-002"); strings.Count(found, `href="/services/shop/`) != 1 {
		t.Error(found)
	}
}

// recorder is a client of the stream that leaves after some bytes.
type recorder struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

func (r recorder) Write(b []byte) (int, error) {
	defer func() {
		if strings.Contains(r.Body.String(), "data:") {
			r.leave()
		}
	}()
	return r.ResponseRecorder.Write(b)
}

// TestLive: the stream has the number of the latest event, unless the client knows it already. The
// number of clients is limited.
func TestLive(t *testing.T) {
	troupe := apitest.New(1)
	troupe.Record(api.Event{Kind: "service", Actor: "agent", Text: "changed"})
	h := handler(t, troupe)
	ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
	defer leave()
	w := recorder{httptest.NewRecorder(), leave}
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/live", nil))
	latest, _ := troupe.Events(t.Context(), api.EventQuery{Limit: 1})
	if want := fmt.Sprintf("id: %d\n", latest.Items[0].Seq); !strings.Contains(w.Body.String(), want) || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s: %q, want %q", w.Header(), w.Body, want)
	}

	all, leaveAll := context.WithCancel(t.Context())
	refused, ended := make(chan int), make(chan int, 1000)
	for range 1000 {
		go func() {
			r := httptest.NewRequestWithContext(all, http.MethodGet, "/live", nil)
			r.Header.Set("Last-Event-ID", fmt.Sprint(latest.Items[0].Seq))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				refused <- w.Code
			}
			ended <- w.Code
		}()
	}
	for n := range 1000 - 64 {
		if code := <-refused; code != http.StatusServiceUnavailable {
			t.Errorf("client %d: %d", n, code)
		}
	}
	leaveAll()
	for range 1000 {
		<-ended
	}
}

// BenchmarkDocument is a document with 10,000 services.
func BenchmarkDocument(b *testing.B) {
	h := handler(b, apitest.New(10_000))
	for _, path := range []string{"/", "/tree", "/services", "/actors"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				get(h, path)
			}
		})
	}
}

// TestNothingInTheLastHour is said in words.
func TestNothingInTheLastHour(t *testing.T) {
	_, _, body := get(handler(t, apitest.New(1)), "/")
	if strings.Contains(body, "at most -") || strings.Count(body, ">no changes<") != 2 {
		t.Error(body)
	}
}
