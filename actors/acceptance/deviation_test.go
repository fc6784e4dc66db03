package acceptance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// aspect says in which way something is not as Kubernetes asks.
type aspect string

const (
	// Of rows.
	aspectRow       aspect = "row"       // there is none, or one too many
	aspectEndpoints aspect = "endpoints" // of the row
	aspectAffinity  aspect = "affinity"  // seconds of the row
	// Of packets.
	aspectAction aspect = "action"
	// the packet reaches an endpoint that is not wanted, or at another place
	aspectEndpoint   aspect = "endpoint"
	aspectStarved    aspect = "starved"            // an endpoint gets no connection
	aspectMasquerade aspect = "masquerade"         // of the source address
	aspectAnswer     aspect = "answer"             // does not come back as from the frontend
	aspectSticky     aspect = "sticky"             // a client changes its endpoint
	aspectShared     aspect = "affinity is shared" // by the frontends of a service port
	aspectOutlives   aspect = "affinity ends"      // after its time
	aspectFlow       aspect = "flow"               // of UDP
)

// deviation is one difference between what Kubernetes asks and what VPP does.
type deviation struct {
	frontend string
	// from is "any", "local" or "remote": of the row, or of the client.
	from      string
	aspect    aspect
	want, got string
	detail    string
	// misplaced says that the client is on this node by its address and elsewhere by its interface,
	// or the other way round.
	misplaced bool
	// optional says that only one kind of proxy does what is wanted.
	optional bool
	// probe names the packet that showed it: "" for rows, "file: ..." for packets of the file, else
	// a generated one.
	probe string
}

// String describes the deviation in one line.
func (d deviation) String() string {
	text := fmt.Sprintf("%s from %s: %s: want %s, got %s", d.frontend, d.from, d.aspect, d.want, d.got)
	if d.detail != "" {
		text += " (" + d.detail + ")"
	}
	if d.probe != "" {
		text += " [" + d.probe + "]"
	}
	return text
}

// reasonOptional is why a packet that only the nftables proxy treats this way may be treated
// otherwise.
const reasonOptional = "not obligatory (level nftables): a service network is unreachable where nothing is served"

// hostOf is the address of "ip:port/PROTO".
func hostOf(frontend string) string {
	host, _, _ := strings.Cut(frontend, ":")
	return host
}

// judge finds the report that allows each deviation; one that none allows fails the test, and so
// does a report without a deviation.
func (r *run) judge(found []deviation, reports []*report) {
	r.Helper()
	for _, d := range found {
		excused := false
		for _, one := range reports {
			if one.allows(d) {
				one.real, excused = true, true
				r.tally.excuse(one.reason, r, d)
			}
		}
		switch {
		case excused:
		case d.optional && d.aspect == aspectAction && d.got != forward && d.want != forward:
			r.tally.excuse(reasonOptional, r, d)
		default:
			r.tally.unreported(r, d)
			r.Errorf("%s: unreported deviation: %s", r.step, d)
		}
	}
	for _, one := range reports {
		if !one.real {
			r.tally.falseReport(r, one)
			r.Errorf("%s: false report, everything is as Kubernetes asks: %s", r.step, one.text)
		}
	}
}

// tally counts what was checked and what deviates. It is shared by the subtests.
type tally struct {
	mu      sync.Mutex
	counts  map[string]int
	excused map[string]*excuse
	// wrong are the deviations that were not reported and the reports without a deviation, by their
	// shape.
	wrong map[string]*excuse
}

// excuse counts the deviations that one reason excuses.
type excuse struct{ rows, packets, probes, cases map[string]bool }

func newTally() *tally {
	return &tally{counts: map[string]int{}, excused: map[string]*excuse{}, wrong: map[string]*excuse{}}
}

// count adds to a number of the summary.
func (t *tally) count(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what] += n
}

func (t *tally) excuse(reason string, r *run, d deviation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	book(t.excused, reason, r, d)
}

func (t *tally) unreported(r *run, d deviation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	book(t.wrong, fmt.Sprintf("unreported: %s: want %s, got %s", d.aspect, shape(d.want), shape(d.got)), r, d)
}

func (t *tally) falseReport(r *run, one *report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	book(t.wrong, "false report: "+one.reason, r, deviation{frontend: one.frontend})
}

// shape leaves addresses out of a text.
func shape(text string) string {
	if strings.ContainsAny(text, "0123456789") {
		return "other"
	}
	return text
}

func book(into map[string]*excuse, reason string, r *run, d deviation) {
	e := into[reason]
	if e == nil {
		e = &excuse{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
		into[reason] = e
	}
	where := r.file.Name + "|" + r.step + "|" + d.frontend
	e.cases[r.file.Name] = true
	e.rows[where+"|"+d.from] = true
	switch {
	case strings.HasPrefix(d.probe, filePacket):
		e.packets[where+"|"+d.probe] = true
	case d.probe != "":
		e.probes[where+"|"+d.probe] = true
	}
}

// print writes the summary.
func (t *tally) print(to *testing.T, title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", title)
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, "  %6d %s\n", t.counts[what], what)
	}
	fmt.Fprintf(&b, "  rows packets probes cases  reported deviation\n")
	table(&b, t.excused)
	if len(t.wrong) > 0 {
		fmt.Fprintf(&b, "  rows packets probes cases  WRONG\n")
		table(&b, t.wrong)
	}
	to.Log(b.String())
}

func table(b *strings.Builder, excuses map[string]*excuse) {
	for _, reason := range slices.Sorted(maps.Keys(excuses)) {
		e := excuses[reason]
		fmt.Fprintf(b, "  %4d %7d %6d %5d  %s\n", len(e.rows), len(e.packets), len(e.probes), len(e.cases), reason)
		fmt.Fprintf(b, "                             in %s\n", strings.Join(slices.Sorted(maps.Keys(e.cases)), ", "))
	}
}
