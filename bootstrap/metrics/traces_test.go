package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// change are the events of one change, a millisecond apart.
func change(cause uint64, texts ...string) (events []api.Event) {
	for i, text := range texts {
		e := api.Event{
			Seq: cause*10 + uint64(i), Time: began.Add(time.Duration(i) * time.Millisecond), Kind: "service", Actor: "a", Object: "shop/web", Cause: cause, Method: update, Text: text,
		}
		if strings.HasPrefix(text, "error") {
			e.Error = text
		}
		events = append(events, e)
	}
	return events
}

// TestTraceOfAChange: a span of the whole, and one of each step from the previous step; the error
// of a step is the error of the whole.
func TestTraceOfAChange(t *testing.T) {
	steps := change(7, "new in the source", "served", "error: refused", "VPP holds what is wanted")
	spans := spansOf("n1/1", steps)
	if len(spans) != 5 {
		t.Fatalf("%d spans", len(spans))
	}
	whole := spans[0]
	if whole.Name != "change shop/web" || whole.Start != nanos(steps[0].Time) || whole.End != nanos(steps[3].Time) || whole.Parent != "" || whole.Status == nil {
		t.Errorf("%+v", whole)
	}
	ids := map[string]bool{whole.SpanID: true}
	for i, s := range spans[1:] {
		if s.Parent != whole.SpanID || s.TraceID != whole.TraceID || s.End != nanos(steps[i].Time) || i > 0 && s.Start != spans[i].End || (s.Status != nil) != (i == 2) {
			t.Errorf("%d: %+v", i, s)
		}
		ids[s.SpanID] = true
	}
	if len(ids) != 5 || len(whole.TraceID) != 32 || len(whole.SpanID) != 16 {
		t.Errorf("identifiers: %v, %+v", ids, whole)
	}
	if spansOf("n2/1", steps)[0].TraceID == whole.TraceID {
		t.Error("two nodes have one trace")
	}
}

// TestChanges: a change is complete when nothing more follows; resyncs are no changes; the waiting
// changes are bounded.
func TestChanges(t *testing.T) {
	var c changes
	c.add(change(1, "a", "b"))
	c.add([]api.Event{{Cause: 2, Method: "full-resync", Time: began}, {Method: update, Time: began}})
	if got := c.take(began.Add(quiet)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	c.add(change(1, "", "", "c")[2:])
	if got := c.take(began.Add(quiet + 2*time.Millisecond)); len(got) != 1 || len(got[0]) != 3 || len(c.steps) != 0 {
		t.Errorf("%v, %v", got, c.steps)
	}
	for cause := range uint64(3 * mostChanges) {
		for range 2 * mostSteps {
			c.add(change(cause+1, "again"))
		}
	}
	if len(c.steps) != mostChanges || len(c.steps[1]) != mostSteps {
		t.Errorf("%d changes, %d steps", len(c.steps), len(c.steps[1]))
	}
}

// TestExporter sends to a collector over HTTP; a collector that fails is told of once in the log,
// and the exporter goes on.
func TestExporter(t *testing.T) {
	bodies, fail := make(chan string, 10), make(chan bool, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v %v", r.URL, r.Header, err)
		}
		select {
		case <-fail:
			http.Error(w, "full", http.StatusTooManyRequests)
		default:
			bodies <- string(content)
		}
	}))
	defer collector.Close()
	x := &Exporter{Endpoint: collector.URL + "/", Node: "n1", Log: slog.New(slog.DiscardHandler)}
	d := documentOf("n1", "1", [][]api.Event{change(7, "a", "b")})
	fail <- true
	if err := x.send(t.Context(), http.DefaultClient, d); err == nil || !strings.Contains(err.Error(), "429 Too Many Requests: full") {
		t.Errorf("%v", err)
	}
	if err := x.send(t.Context(), http.DefaultClient, d); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	var got document
	if err := json.Unmarshal([]byte(<-bodies), &got); err != nil || len(got.ResourceSpans[0].ScopeSpans[0].Spans) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRead: the exporter reads the journal page by page, the oldest first, each event once; a
// journal that does not answer is asked again.
func TestRead(t *testing.T) {
	journal := change(7, "a", "b", "c", "d", "e")
	failed := false
	x := &Exporter{Events: func(_ context.Context, q api.EventQuery) (*api.EventPage, error) {
		if !failed {
			failed = true
			return nil, errors.New("busy")
		}
		page := &api.EventPage{}
		for i := len(journal) - 1; i >= 0; i-- {
			e := journal[i]
			if e.Seq <= q.After || q.Before > 0 && e.Seq >= q.Before {
				continue
			}
			if len(page.Items) == 2 {
				page.Next = page.Items[1].Seq
				break
			}
			page.Items = append(page.Items, e)
		}
		return page, nil
	}}
	var c changes
	after := uint64(0)
	for range 3 {
		after = x.read(t.Context(), &c, after)
	}
	var texts string
	for _, e := range c.steps[7] {
		texts += e.Text
	}
	if texts != "abcde" || after != journal[4].Seq {
		t.Errorf("%q, %d", texts, after)
	}
}

// TestRedirect: traces go to the collector and nowhere else.
func TestRedirect(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the thief got %s", r.URL) }))
	defer thief.Close()
	ctx, stop := context.WithCancel(t.Context())
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		stop()
	}))
	defer collector.Close()
	old := change(7, "a", "b")
	x := &Exporter{Endpoint: collector.URL, Node: "n1", Log: slog.New(slog.DiscardHandler), Events: func(context.Context, api.EventQuery) (*api.EventPage, error) {
		return &api.EventPage{Items: []api.Event{old[1], old[0]}}, nil
	}}
	if err := x.Run(ctx); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}
