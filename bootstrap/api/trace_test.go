package api_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// follow opens a trace; next returns its next event, and false when it has ended.
func follow(t *testing.T, a *apitest.Agent, query string) (next func() (api.Event, bool), end func()) {
	t.Helper()
	client := tcp(a)
	client.Timeout = 0
	response, err := client.Get("http://agent/api/v1/trace?" + query)
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
	next, end := follow(t, a, "cause=7")
	defer end()
	if e, ok := next(); !ok || e.Object != "shop/a" {
		t.Fatalf("history: %+v", e)
	}
	record("shop/c", 8)
	record("shop/d", 7)
	if e, ok := next(); !ok || e.Object != "shop/d" || e.Seq != 4 {
		t.Errorf("what happens: %+v", e)
	}
	all, stop := follow(t, a, "after=2&limit=2")
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

func TestTraceIsForFew(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	a.Record(api.Event{Kind: "render"})
	for range 8 {
		next, end := follow(t, a, "")
		defer end()
		if _, ok := next(); !ok {
			t.Fatal("no answer")
		}
	}
	if code, body, _ := call(t, tcp(a), http.MethodGet, "/api/v1/trace", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "too many traces at the same time") {
		t.Errorf("the ninth: %d %s", code, body)
	}
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
