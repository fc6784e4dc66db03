package chaos

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// rows reads the rows of VPP, ordered by frontend.
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

// wrong lists all differences from the expected state at rest (I1, I2, I8).
func (w *world) wrong() []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want := model(w.cluster, w.externalWanted(), w.foreign)
	seen := map[frontend]bool{}
	for _, r := range w.rows() {
		e, wanted := want[r.At]
		if len(r.Backends) == 0 && len(r.Draining) > 0 && !wanted {
			continue // the row is kept for draining connections
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
		wrong = slices.Concat(wrong, w.wrongRoutes(own), w.leftBehind(own), w.wrongOutside(own))
	}
	for _, problem := range live.Restless(w.sys.Snapshot(), w.cluster.keys()) {
		say("I8: %s", problem)
	}
	return slices.Concat(wrong, w.wrongTranslations(), w.wrongRouters(), w.wrongStatuses(), w.wrongNodes())
}

// wrongNodes compares the last values that the store of node IDs got with the cluster (I2).
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

// backends are the expected backends of a row. One row serves both classes of clients; without
// endpoints for clients outside it is for clients on this node.
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

// wrongStatuses checks that introspection shows exactly the services of the cluster, each in sync
// in its latest version with every renderer (I2).
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

// changed checks every change of a row at the time of the change (I3, I6, I7).
func (w *world) changed(c virtual.RowChange) {
	if c.Refused {
		if o := &w.observed; c.At == o.at {
			o.refused, o.torn = true, o.years
		}
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

// bounded checks the lengths of mailboxes (I10): only the latest message of each key waits. Events
// for the journal have no keys, so its bound is larger. While the journal is suspended its mailbox
// limits them, which has a test of its own.
func (w *world) bounded() {
	if w.cluster.announces {
		w.lookAtAddresses()
	}
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

// journal returns the latest events of the agent, the newest first, to explain a violation.
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

// groups returns the names of the children of each ordered supervisor of a tree, by its path, in
// the order of their start.
func groups(at string, tree runtime.Spec) map[string][]string {
	found := map[string][]string{}
	for _, child := range tree.Children {
		found[at] = append(found[at], child.Name)
		maps.Copy(found, groups(at+"/"+child.Name, child.Spec))
	}
	return found
}

// order checks the start of groups: a child begins after all its earlier siblings are ready (I13).
type order struct {
	groups map[string][]string
	begun  map[string]bool // children that began in this incarnation of their group
	ready  map[string]int  // Ready messages that a group got in this incarnation
}

func newOrder(tree runtime.Spec) order {
	return order{groups(address.RootName, tree), map[string]bool{}, map[string]int{}}
}

// sees notes a message or a start of an actor, and reports whether the start is too early.
func (o *order) sees(at string, msg any, phase runtime.Phase) (early bool) {
	switch phase {
	case runtime.Before:
		if _, ok := msg.(*messages.Ready); ok {
			o.ready[at]++
		}
	case runtime.Starting:
		for _, child := range o.groups[at] {
			delete(o.begun, at+"/"+child)
		}
		o.ready[at] = 0
		place := slices.Index(o.groups[path.Dir(at)], path.Base(at))
		early = place > o.ready[path.Dir(at)] && !o.begun[at]
		o.begun[at] = true
	}
	return early
}
