package otlp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

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
