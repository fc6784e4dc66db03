package chaos

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// row is a row in VPP, as its dump tells.
type row struct {
	ours      bool
	endpoints []netip.Addr // ordered; pads are not among them
	odd       string       // what no row of ours has
}

// rows reads VPP, ordered by frontend.
func (w *world) rows() iter.Seq2[frontend, row] {
	found := map[frontend]row{}
	details, err := w.vpp.vpp.Exec(&nat44_ed.Nat44LbStaticMappingDump{})
	if err != nil && w.vpp.vpp.Alive() {
		w.breach("read VPP: %v", err)
	}
	for _, m := range details {
		d, is := m.(*nat44_ed.Nat44LbStaticMappingDetails)
		if !is {
			continue
		}
		at := netip.AddrPortFrom(netip.AddrFrom4(d.ExternalAddr), d.ExternalPort)
		if _, twice := found[at]; twice {
			w.breach("I3: %s is in VPP twice", at)
		}
		found[at] = rowOf(d)
	}
	return func(yield func(frontend, row) bool) {
		for _, at := range slices.SortedFunc(maps.Keys(found), netip.AddrPort.Compare) {
			if !yield(at, found[at]) {
				return
			}
		}
	}
}

func rowOf(d *nat44_ed.Nat44LbStaticMappingDetails) row {
	r := row{ours: strings.HasPrefix(d.Tag, "troupe/")}
	for _, l := range d.Locals {
		switch {
		case l.Probability == 0: // a pad
		case l.Port != endpointPort:
			r.odd = fmt.Sprintf("port %d", l.Port)
		default:
			r.endpoints = append(r.endpoints, netip.AddrFrom4(l.Addr))
		}
	}
	slices.SortFunc(r.endpoints, netip.Addr.Compare)
	return r
}

// wrong lists what is not as it should be once everything has come to rest (I1, I2, I8).
func (w *world) wrong() []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want := model(w.cluster, w.foreign)
	seen := map[frontend]bool{}
	for at, r := range w.rows() {
		seen[at] = true
		e, wanted := want[at]
		switch {
		case !r.ours && !w.foreign[at]:
			say("I1: VPP has a row without an owner for %s", at)
		case !r.ours:
		case !wanted:
			say("I1: VPP holds %s, which nobody wants", at)
		case r.odd != "":
			say("I1: the row of %s has %s", at, r.odd)
		case !slices.Equal(r.endpoints, e.rowEndpoints()):
			say("I1: %s leads to %v, want %v", at, r.endpoints, e.rowEndpoints())
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
	wrong = append(wrong, w.wrongStatuses()...)
	return append(wrong, w.wrongActors()...)
}

// rowEndpoints are the endpoints that the one row of a frontend has to have.
func (e expectation) rowEndpoints() []netip.Addr {
	if len(e.remote) > 0 {
		return e.remote
	}
	return e.local
}

// wrongStatuses compares what introspection shows with who exists, and whether everybody has been served in the latest version (I2).
func (w *world) wrongStatuses() (wrong []string) {
	answer, err := w.sys.Ask(context.Background(), actors.PathIntrospect, &actors.StatusQuery{})
	if err != nil {
		return []string{err.Error()}
	}
	var shown []string
	for _, s := range answer.(*actors.StatusPage).Services {
		shown = append(shown, s.GetKey())
		for _, r := range s.GetRenders() {
			if r.GetState() != messages.RenderState_RENDER_IN_SYNC {
				wrong = append(wrong, fmt.Sprintf("I2: %s is shown as %v by %s: %s", s.GetKey(), r.GetState(), r.GetRenderer(), r.GetError()))
			}
		}
		if len(s.GetRenders()) == 0 {
			wrong = append(wrong, fmt.Sprintf("I2: %s is shown without renderers", s.GetKey()))
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
			services = append(services, runtime.UnescapeName(strings.TrimPrefix(a.Path, actors.PathServices+"/")))
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

// watchWrites looks at every change of VPP while it happens (I3, I6).
func (w *world) watchWrites(req api.Message, retval int32) {
	m, isRow := req.(*nat44_ed.Nat44AddDelLbStaticMapping)
	if !isRow {
		return
	}
	at := netip.AddrPortFrom(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort)
	if m.IsAdd && retval == 0 && w.foreign[at] {
		w.breach("I3: %s was added although somebody else has it", at)
	}
}
