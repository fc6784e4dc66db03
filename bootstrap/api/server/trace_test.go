package server_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// follow opens a trace; next returns its next event, and false when it has ended.
func follow(t *testing.T, client *http.Client, query string) (next func() (api.Event, bool), end func()) {
	t.Helper()
	client.Timeout = 0
	response, err := client.Get("http://localhost/api/v1/trace?" + query)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%d %s", response.StatusCode, got)
	}
	lines := bufio.NewScanner(response.Body)
	next = func() (e api.Event, ok bool) {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e, true
			}
		}
		return e, false
	}
	return next, func() { _ = response.Body.Close() }
}

func TestTraceFollowsTheJournal(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	record := func(object string, cause uint64) { a.Record(api.Event{Kind: "render", Object: object, Cause: cause}) }
	record("shop/a", 7)
	record("shop/b", 8)
	next, end := follow(t, tcp(a), "cause=7")
	defer end()
	if e, ok := next(); !ok || e.Object != "shop/a" {
		t.Fatalf("history: %+v", e)
	}
	record("shop/c", 8)
	record("shop/d", 7)
	if e, ok := next(); !ok || e.Object != "shop/d" || e.Seq != 4 {
		t.Errorf("what happens: %+v", e)
	}
	all, stop := follow(t, tcp(a), "after=2&limit=2")
	defer stop()
	for _, want := range []string{"shop/c", "shop/d"} {
		if e, ok := all(); !ok || e.Object != want {
			t.Errorf("%+v, want %s", e, want)
		}
	}
	if e, ok := all(); ok {
		t.Errorf("after the limit: %+v", e)
	}
	if err := a.Stop(); err != nil { // while the first one is still open
		t.Errorf("stop: %v", err)
	}
	if e, ok := next(); ok {
		t.Errorf("after the end: %+v", e)
	}
}

// TestTracesAreLimitedByListener: traces over TCP leave room for the traces of the operator on the
// control socket.
func TestTracesAreLimitedByListener(t *testing.T) {
	refused := make(chan server.Refusal, 1000)
	a := apitest.Start(t, apitest.New(1), func(c *server.Config) { c.Refused = func(r server.Refusal) { refused <- r } })
	a.Record(api.Event{Kind: "render"})
	for _, tt := range []struct {
		listener string
		client   func(*apitest.Agent) *http.Client
		want     string
	}{
		{"http", tcp, "too many traces at the same time on this listener, the limit is 8: end another one, or use the control socket"},
		{"control", control, "too many traces at the same time on this listener, the limit is 8: end another one"},
	} {
		var last func()
		for n := range 8 {
			next, end := follow(t, tt.client(a), "")
			defer end()
			if _, ok := next(); !ok {
				t.Fatalf("%s: no answer to trace %d", tt.listener, n)
			}
			last = end
		}
		if code, body, _ := call(t, tt.client(a), http.MethodGet, "/api/v1/trace", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, tt.want+`"`) {
			t.Errorf("%s: the ninth: %d %s", tt.listener, code, body)
		}
		if len(refused) != 1 {
			t.Fatalf("%s: %d refusals", tt.listener, len(refused))
		}
		if r := <-refused; r.Listener != tt.listener || r.Why != server.RefusedTraces || r.Text != tt.want {
			t.Errorf("%s: %+v", tt.listener, r)
		}
		last()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if code, _, _ := call(t, tt.client(a), http.MethodGet, "/api/v1/trace?follow=false", ""); code == http.StatusOK {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%s: no trace after the end of another one: %d", tt.listener, code)
			}
			<-refused
		}
	}
}

func TestTraceParameters(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for query, want := range map[string]string{
		"cause=x": "cause", "after=-1": "after", "limit=0": "limit", "limit=10001": "limit", "follow=perhaps": "follow", "color=red": "unknown parameter",
	} {
		if code, body, _ := call(t, tcp(a), http.MethodGet, "/api/v1/trace?"+query, ""); code != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
	if code, _, _ := call(t, control(a), http.MethodPost, "/api/v1/trace", ""); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
}

func TestEventsOfOneCause(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for i := range 10 {
		a.Record(api.Event{Kind: "render", Cause: uint64(i%2 + 1)})
	}
	if got := ask[api.EventPage](t, a, "/api/v1/events?cause=2&after=5"); len(got.Items) != 3 || got.Items[0].Seq != 10 || got.Items[2].Seq != 6 {
		t.Errorf("%+v", got)
	}
}

// TestTraceSaysWhatItLeavesOut: more events at once than a trace shows are not dropped in silence;
// without ?after= the past is only a beginning.
func TestTraceSaysWhatItLeavesOut(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	burst := func(n int) {
		for range n {
			a.Record(api.Event{Kind: "render"})
		}
	}
	burst(300)
	for query, want := range map[string]int{"follow=false": 0, "follow=false&after=50": 1, "follow=false&after=100": 0} {
		next, end := follow(t, tcp(a), query)
		events, notes := 0, 0
		for e, ok := next(); ok; e, ok = next() {
			if e.Kind == "trace" && e.Seq == 0 && strings.Contains(e.Text, "left out") && events == 0 {
				notes++
			} else {
				events++
			}
		}
		if end(); notes != want || events != 200 {
			t.Errorf("%s: %d events, %d notes", query, events, notes)
		}
	}
}

// TestExternalPages: the entries of external configuration come in pages, in their own order, which
// is not the order of their names alone.
func TestExternalPages(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for _, source := range []string{"a", "b", "c"} {
		if code, body, _ := call(t, control(a), http.MethodPut, "/api/v1/external/"+source, "{}"); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	var sources []string
	for cursor := ""; ; {
		page := ask[api.External](t, a, "/api/v1/external?limit=2&cursor="+cursor)
		for _, e := range page.Items {
			sources = append(sources, e.Source)
		}
		if len(page.Items) > 2 || page.Total != 3 || len(page.Layers) != 3 {
			t.Errorf("%+v", page)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if strings.Join(sources, "") != "abc" {
		t.Error(sources)
	}
	if page := ask[api.External](t, a, "/api/v1/external/b?limit=1"); len(page.Items) != 1 || page.Total != 1 || page.Next != "" {
		t.Errorf("%+v", page)
	}
}
