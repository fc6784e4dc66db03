package metrics

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/outbound"
)

const (
	interval    = time.Second     // between two queries of the journal
	sendTimeout = 5 * time.Second // of one document
)

// Exporter sends traces of changes. Its fields are constant.
type Exporter struct {
	// Endpoint is the address of the collector, "http://127.0.0.1:4318".
	Endpoint string
	// Node is the name of the node.
	Node string
	// Events queries the journal.
	Events func(ctx context.Context, q api.EventQuery) (*api.EventPage, error)
	// Log gets a line when the collector begins to fail, and when it is back.
	Log *slog.Logger
}

// Run sends traces until ctx ends, and returns nil. Traces that the collector refuses are lost,
// because they must not fill memory.
func (x *Exporter) Run(ctx context.Context) error {
	run := strconv.FormatInt(time.Now().UnixNano(), 10)
	base, err := url.Parse(x.Endpoint)
	if err != nil {
		return fmt.Errorf("read the address of the collector: %w", err)
	}
	client := outbound.Client(base, http.DefaultTransport, sendTimeout)
	defer client.CloseIdleConnections()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var (
		pending changes
		after   uint64
		failing bool
	)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		after = x.read(ctx, &pending, after)
		complete := pending.take(time.Now())
		if len(complete) == 0 {
			continue
		}
		err := x.send(ctx, client, documentOf(x.Node, run, complete))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			x.Log.Warn("traces are lost, because the collector does not take them", "endpoint", x.Endpoint, "err", err)
		case err == nil && failing:
			x.Log.Info("the collector takes traces again", "endpoint", x.Endpoint)
		}
		failing = err != nil
	}
}

// read adds the events after a number and returns the number of the last one. While the journal
// does not answer there are no events.
func (x *Exporter) read(ctx context.Context, pending *changes, after uint64) uint64 {
	query := api.EventQuery{After: after}
	if events, _, err := query.News(ctx, x.Events, math.MaxInt); err == nil {
		pending.add(events)
	}
	return query.After
}

// send posts a document.
func (x *Exporter) send(ctx context.Context, client *http.Client, d *document) error {
	content, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(x.Endpoint, "/")+"/v1/traces", bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// a part of the reason is better than no reason
	said, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(said)))
	}
	return nil
}

const (
	// quiet is the time without a further event after which a change is complete.
	quiet = 5 * time.Second
	// mostChanges limits the waiting changes, and mostSteps the steps of one change. A change
	// above its limit has no trace, and a step above its limit has no span.
	mostChanges = 1000
	mostSteps   = 64
)

// update is the method of events that follow from a change.
const update = "update"

// changes collects the events of changes until they are complete. It is pure.
type changes struct {
	steps map[uint64][]api.Event // by cause, in the order of the journal
}

// add adds events, the oldest first.
func (c *changes) add(events []api.Event) {
	if c.steps == nil {
		c.steps = map[uint64][]api.Event{}
	}
	for _, e := range events {
		known, has := c.steps[e.Cause]
		if e.Cause == 0 || e.Method != update || len(known) >= mostSteps || !has && len(c.steps) >= mostChanges {
			continue
		}
		c.steps[e.Cause] = append(known, e)
	}
}

// take removes and returns the changes without recent events, in the order of their causes. It also
// takes a change after the journal has dropped its first events.
func (c *changes) take(now time.Time) (complete [][]api.Event) {
	for _, cause := range slices.Sorted(maps.Keys(c.steps)) {
		steps := c.steps[cause]
		if now.Sub(steps[len(steps)-1].Time) >= quiet {
			complete = append(complete, steps)
			delete(c.steps, cause)
		}
	}
	return complete
}

// The parts of OTLP in JSON that a trace needs.
type (
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String string `json:"stringValue"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     *status     `json:"status,omitempty"`
	}
	scopeSpans struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []attribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	document struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
)

const (
	kindInternal = 1
	statusError  = 2
)

// documentOf makes a document of complete changes. run distinguishes traces of different agents and
// starts.
func documentOf(node, run string, complete [][]api.Event) *document {
	var scope scopeSpans
	scope.Scope.Name = "troupe"
	for _, steps := range complete {
		scope.Spans = append(scope.Spans, spansOf(node+"/"+run, steps)...)
	}
	var resource resourceSpans
	resource.Resource.Attributes = []attribute{text("service.name", "troupe-agent"), text("k8s.node.name", node)}
	resource.ScopeSpans = []scopeSpans{scope}
	return &document{[]resourceSpans{resource}}
}

func text(key, content string) attribute { return attribute{key, value{content}} }

// spansOf makes a span of the change and one of each step. A step lasts from the previous step
// until its own event, because an actor writes the event when the step is done.
func spansOf(run string, steps []api.Event) []span {
	first, last := steps[0], steps[len(steps)-1]
	trace := identifier(run, first.Cause, 0)[:16]
	id := func(n uint64) string { return hex.EncodeToString(identifier(run, first.Cause, n)[:8]) }
	whole := span{
		// a change that continues after a long pause has two spans in one trace
		TraceID: hex.EncodeToString(trace), SpanID: id(^first.Seq),
		Name: "change " + first.Object, Kind: kindInternal, Start: nanos(first.Time), End: nanos(last.Time),
		Attributes: []attribute{text("troupe.object", first.Object), text("troupe.cause", strconv.FormatUint(first.Cause, 10))},
	}
	spans := []span{whole}
	before := first.Time
	for _, e := range steps {
		s := span{
			TraceID: whole.TraceID, SpanID: id(e.Seq), Parent: whole.SpanID, Name: e.Kind + " " + e.Actor, Kind: kindInternal, Start: nanos(before), End: nanos(e.Time),
			Attributes: []attribute{text("troupe.actor", e.Actor), text("troupe.object", e.Object), text("troupe.text", e.Text)},
		}
		for _, op := range e.Operations {
			s.Attributes = append(s.Attributes, text("troupe.operation."+strconv.Itoa(len(s.Attributes)-2), op))
		}
		if e.Error != "" {
			s.Status = &status{statusError, e.Error}
			spans[0].Status = s.Status
		}
		spans = append(spans, s)
		before = e.Time
	}
	return spans
}

// identifier is the same for the same span.
func identifier(run string, cause, n uint64) []byte {
	h := sha256.New()
	h.Write([]byte(run))
	h.Write(binary.BigEndian.AppendUint64(nil, cause))
	h.Write(binary.BigEndian.AppendUint64(nil, n))
	return h.Sum(nil)
}

// nanos is a time in OTLP, which has 64-bit numbers as strings in JSON.
func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
