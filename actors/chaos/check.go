package chaos

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// rows reads VPP, ordered by frontend.
func (w *world) rows() []virtual.Row {
	rows, err := w.vpp.Rows()
	if err != nil {
		w.breach("%v", err)
	}
	for i := 1; i < len(rows); i++ {
		if rows[i].At == rows[i-1].At {
			w.breach("I3: %s is in VPP twice", rows[i].At)
		}
	}
	return rows
}

// wrong lists what is not as it should be once everything has come to rest (I1, I2, I8).
func (w *world) wrong() []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want := model(w.cluster, w.externalWanted(), w.foreign)
	seen := map[frontend]bool{}
	for _, r := range w.rows() {
		e, wanted := want[r.At]
		if len(r.Backends) == 0 && len(r.Draining) > 0 && !wanted {
			continue // kept for connections that drain
		}
		seen[r.At] = true
		ours := strings.HasPrefix(r.Tag, "troupe/")
		switch {
		case !ours && !w.foreign[r.At]:
			say("I1: VPP has a row without an owner for %s", r.At)
		case !ours:
		case !wanted:
			say("I1: VPP holds %s, which no service wants", r.At)
		case !slices.Equal(r.Backends, e.backends()):
			say("I1: %s leads to %v, want %v", r.At, r.Backends, e.backends())
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(want), netip.AddrPort.Compare) {
		if !seen[at] {
			say("I1: VPP lacks %s of %s", at, serviceKey(want[at].service))
		}
	}
	if report := w.deps.Readiness.Load(); !report.Ready {
		say("not ready: %s", report.Reasons())
	}
	if w.fatal != "" {
		say("I11: gave up: %s", w.fatal)
	}
	own, err := nat44.Read(context.Background(), w.vpp.Reader())
	if err != nil {
		say("I1: %v", err)
	} else {
		wrong = append(wrong, w.wrongRoutes(own)...)
		wrong = append(wrong, w.leftBehind(own)...)
	}
	wrong = append(wrong, w.wrongTranslations()...)
	wrong = append(wrong, w.wrongStatuses()...)
	return slices.Concat(wrong, w.wrongActors(), w.wrongNodes(), w.wrongOutside())
}

// wrongNodes compares what the store of node IDs was told last (I2).
func (w *world) wrongNodes() (wrong []string) {
	if want := []string{thisNode, otherNode}; !slices.Equal(w.nodes.nodes, want) {
		wrong = append(wrong, fmt.Sprintf("I2: the store of node IDs knows the nodes %q, want %q", w.nodes.nodes, want))
	}
	want := []string{nodeIP + "/24"}
	if w.cluster.ip6 {
		want = append(want, twin(netip.MustParseAddr(nodeIP)).String()+"/64")
	}
	if !slices.Equal(w.nodes.published, want) {
		wrong = append(wrong, fmt.Sprintf("I2: the store of node IDs knows the addresses %q, want %q", w.nodes.published, want))
	}
	return wrong
}

// backends are the ones that the one row of a frontend has to have.
func (e expectation) backends() []netip.AddrPort {
	endpoints := e.remote
	if len(endpoints) == 0 {
		endpoints = e.local
	}
	all := make([]netip.AddrPort, len(endpoints))
	for i, a := range endpoints {
		all[i] = netip.AddrPortFrom(a, endpointPort)
	}
	return all
}

// wrongStatuses compares what introspection shows with the services that exist, and whether each
// has been served in its latest version (I2).
func (w *world) wrongStatuses() (wrong []string) {
	answer, err := w.sys.Ask(context.Background(), address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return []string{err.Error()}
	}
	renderers := len(w.deps.Renderers())
	var shown []string
	for _, s := range answer.(*status.ServicesPage).Services {
		shown = append(shown, s.GetKey())
		for _, r := range s.GetRenders() {
			if r.GetState() != messages.RenderState_RENDER_IN_SYNC {
				wrong = append(wrong, fmt.Sprintf("I2: %s is shown as %v by %s: %s", s.GetKey(), r.GetState(), r.GetRenderer(), r.GetError()))
			}
		}
		if len(s.GetRenders()) != renderers {
			wrong = append(wrong, fmt.Sprintf("I2: %s is shown with %d renderers", s.GetKey(), len(s.GetRenders())))
		}
	}
	if want := w.cluster.keys(); !slices.Equal(shown, want) {
		wrong = append(wrong, fmt.Sprintf("I2: shown are %q, want %q", shown, want))
	}
	return wrong
}

// wrongActors finds actors that are left over, missing, or not able to work (I8, I10).
func (w *world) wrongActors() (wrong []string) {
	want := w.cluster.keys()
	var services []string
	for _, a := range w.sys.Snapshot() {
		if a.Kind == "service" {
			services = append(services, runtime.UnescapeName(strings.TrimPrefix(a.Path, address.Services+"/")))
		}
		if a.Suspended || a.Held || a.State == runtime.StateStarting || a.State == runtime.StateBackoff || a.State == runtime.StateQuarantined {
			wrong = append(wrong, fmt.Sprintf("I8: %s is %s", a.Path, a.State))
		}
	}
	slices.Sort(services)
	if !slices.Equal(services, want) {
		wrong = append(wrong, fmt.Sprintf("I8: alive are %q, want %q", services, want))
	}
	return wrong
}

// changed looks at every change of a row while it happens (I3, I6, I7).
func (w *world) changed(c virtual.RowChange) {
	if c.Refused {
		w.observed.refused = w.observed.refused || c.At == w.observed.at
		return
	}
	if c.Added && w.foreign[c.At] {
		w.breach("I3: %s was changed although it has another owner", c.At)
	}
	if w.source.listed != nil && !w.overdue {
		w.provisional.changed(c)
	}
	w.observed.changed(w, c)
}

// bounded looks for mailboxes that are longer than what can be new for their owner (I10): of all
// that is not written down only the latest of a key waits. What is written down all counts; how
// much of it waits for a journal that does not work is limited in its mailbox, and a test of its
// own.
func (w *world) bounded() {
	const most, written = 4 * (serviceNames + 5), 20 * (serviceNames + 5)
	for _, a := range w.sys.Snapshot() {
		allowed := most
		if a.Path == address.Journal {
			w.silenced = w.silenced || a.Held || a.Suspended
			allowed = written
			if w.silenced {
				continue
			}
		}
		if a.HighWater > allowed {
			w.breach("I10: %d messages waited for %s", a.HighWater, a.Path)
		}
	}
}

// journal is what the troupe itself wrote down last, newest first, to find out why.
func (w *world) journal() []string {
	const last = 15
	answer, err := w.sys.Ask(context.Background(), address.Journal, &status.EventsQuery{Limit: last})
	if err != nil {
		return []string{"journal: " + err.Error()}
	}
	var lines []string
	for _, e := range answer.(*status.EventsPage).Events {
		lines = append(lines, fmt.Sprint("journal: ", time.Unix(0, e.GetTime()).UTC().Format("15:04:05.000"), " ", e.GetActor(), " ", e.GetObject(), " ",
			e.GetText(), " ", e.GetError(), " ", e.GetOperations()))
	}
	return lines
}

// soon is how long it may take after most faults until all is well.
const soon = 4 * tick

// bound is how long it may take after a fault of a kind, if that is longer than soon, and why.
type bound struct {
	most time.Duration
	why  string
}

// slower are the faults after which it may take longer.
func slower() map[string]bound {
	const second = time.Second
	stolen := bound{46 * second, "VPP does not report it; the drift check finds it, every 45 s"}
	refused := bound{1100 * time.Millisecond, "a half-open probe of each refusal class every second"}
	badly := bound{2200 * time.Millisecond, "settings that are refused hold up everything for a second, then a half-open probe takes another one"}
	crash := bound{3100 * time.Millisecond, "what a crash has cost is sent again after 0.9 s, what a second one has after 1.8 s, up to 30 % later"}
	loop := bound{32 * time.Second, "a crash loop: back-off, at worst quarantine for 30 s"}
	lost := bound{31 * second, "the roll call repeats everything every 30 s"}
	replaced := bound{noticed, "VPP's interface events are not simulated; while a pod has no interface VPP is asked every second"}
	return map[string]bound{
		"pod replaced":  replaced,
		"overlay ended": {61 * second, "VPP has no events for routes; its routes are read every minute"},
		"rows stolen":   stolen, "routes stolen": stolen, "settings stolen": stolen, "rows given back": stolen,
		"VPP refuses": refused, "VPP begins badly": badly, "table full": refused,
		"poisoned service": loop, "panics before messages": crash, "panics after messages": crash, "panics in starts": crash, "panics in stops": crash,
		"crash loop":    loop,
		"messages lost": lost, "one kind lost": lost, "messages late": lost, "messages twice": lost, "services late": lost,
	}
}

// within is how long it may take until all is well when faults of these kinds are over: as long as
// after the worst of them.
func (c Counts) within() time.Duration {
	most := soon
	for kind, b := range slower() {
		if c[kind] > 0 {
			most = max(most, b.most)
		}
	}
	return most
}
