package actorstest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Wrong checks a running troupe: readiness, introspection, VPP and the list of actors. "" = nothing
// is wrong. A service has to be as the pure rules resolve it, and each renderer says what it would
// still do to VPP, which it reads for that. A model of VPP's content is in actors/chaos.
func (w *World) Wrong() string {
	var wrong []string
	if reason := w.unready(); reason != "" {
		wrong = append(wrong, reason)
	}
	return strings.Join(slices.Concat(wrong, w.wrongStatuses(), w.Differs(), w.wrongActors()), "\n")
}

// Differs lists what the renderers would still do to VPP.
func (w *World) Differs() (operations []string) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for _, name := range w.Deps.Renderers() {
		answer, err := w.System.Ask(ctx, address.Renderer(name), &render.DiffQuery{})
		if err != nil {
			return append(operations, name+": "+err.Error())
		}
		page := answer.(*render.DiffPage)
		if page.Err != nil {
			return append(operations, name+": "+page.Err.Error())
		}
		operations = append(operations, page.Operations...)
	}
	return operations
}

// views resolves every service on its own, by key.
func (w *World) views() map[string]*messages.ServiceView {
	snapshot := w.Source.Snapshot()
	node := snapshot.GetNode().GetSelf()
	context := &messages.NodeContext{Node: node, Addresses: slices.Clone(node.GetAddresses())}
	if !w.Empty && !slices.Contains(context.Addresses, probe.UplinkAddress) {
		context.Addresses = append(context.Addresses, probe.UplinkAddress)
	}
	views := map[string]*messages.ServiceView{}
	existing := slices.DeleteFunc(slices.Clone(snapshot.GetServices()), func(in *messages.ServiceInput) bool { return in.GetService() == nil })
	for _, view := range service.ResolveAll(existing, context, w.Serving) {
		views[view.GetKey()] = view
	}
	return views
}

// wrongStatuses compares the statuses in introspection with the existing services.
func (w *World) wrongStatuses() (wrong []string) {
	statuses, views := w.Statuses(), w.views()
	shown, want := slices.Sorted(maps.Keys(statuses)), slices.Sorted(maps.Keys(views))
	if !slices.Equal(shown, want) {
		wrong = append(wrong, fmt.Sprintf("shown are %q, want %q", shown, want))
	}
	for _, key := range shown {
		if reason := w.NotInSync(statuses[key]); reason != "" {
			wrong = append(wrong, key+" is shown as: "+reason)
		}
		view := views[key]
		if view == nil {
			continue
		}
		hash := service.Hash(view)
		for _, ack := range statuses[key].GetRenders() {
			if ack.GetHash() != hash {
				wrong = append(wrong, fmt.Sprintf("%s renders something else of %s than %v", ack.GetRenderer(), key, view))
			}
		}
	}
	return wrong
}

// wrongActors finds actors that are left over, missing, or not able to work.
func (w *World) wrongActors() (wrong []string) {
	want := []string{
		address.RootName, address.Journal, address.Introspect, address.Healer, address.Dataplane, address.Link, address.Interfaces,
		address.World, address.Registry, address.Nodes, address.Services, address.Supervisor(address.Sessions), address.Sessions,
	}
	if w.Deps.CNAT == nil || !w.Deps.CNAT.IPv4 {
		want = append(want, address.External)
	}
	for _, name := range w.Deps.Renderers() {
		want = append(want, address.Renderer(name))
	}
	for key := range w.Source.Services() {
		want = append(want, address.Service(key))
	}
	slices.Sort(want)
	var alive []string
	for _, a := range w.System.Snapshot() {
		alive = append(alive, a.Path)
		if a.Suspended || a.Held || a.State == runtime.StateStarting {
			wrong = append(wrong, fmt.Sprintf("%s is %s", a.Path, a.State))
		}
	}
	if !slices.Equal(alive, want) {
		wrong = append(wrong, fmt.Sprintf("alive are %q, want %q", alive, want))
	}
	return wrong
}

// Ask asks an actor. A missing answer fails the test.
func Ask[T any](w *World, path string, question any) T {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	answer, err := w.System.Ask(ctx, path, question)
	if err != nil {
		w.Fatalf("ask %s: %v", path, err)
	}
	return answer.(T)
}

// Statuses asks introspection for all services, by key; none while it does not answer.
func (w *World) Statuses() map[string]*messages.ServiceStatus {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	all := map[string]*messages.ServiceStatus{}
	if answer, err := w.System.Ask(ctx, address.Introspect, &status.ServicesQuery{}); err == nil {
		for _, s := range answer.(*status.ServicesPage).Services {
			all[s.GetKey()] = s
		}
	}
	return all
}

// Events asks the journal; the oldest comes first.
func (w *World) Events(q *status.EventsQuery) []*messages.Event {
	w.Helper()
	events := slices.Clone(Ask[*status.EventsPage](w, address.Journal, q).Events)
	slices.Reverse(events)
	return events
}

// LogJournal logs the last events, for a test that has failed.
func (w *World) LogJournal() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	answer, err := w.System.Ask(ctx, address.Journal, &status.EventsQuery{Limit: 30})
	if err != nil {
		w.Log(err)
		return
	}
	for _, e := range answer.(*status.EventsPage).Events {
		w.Log(time.Unix(0, e.GetTime()).UTC().Format("15:04:05.000"), e.GetActor(), e.GetObject(), e.GetText(), e.GetError(), e.GetOperations())
	}
}

// held is the state of the simulated VPP.
func (w *World) held() string {
	if w.VPP == nil {
		return "a real one"
	}
	return w.VPP.State()
}

// Rows lists the agent's rows in VPP, ordered.
func (w *World) Rows() []string { return probe.Rows(w.VPP) }

// Backends counts the backends that the NAT44 row "ip:port/PROTO" has in VPP.
func (w *World) Backends(vip string) int {
	state, err := nat44.Read(context.Background(), w.Reader())
	if err != nil {
		w.Error(err)
		return 0
	}
	for key, row := range state.Rows {
		if key.String() == vip {
			return len(row.Locals)
		}
	}
	return 0
}

// Writes is how many requests changed VPP so far.
func (w *World) Writes() uint64 {
	if w.Sim != nil {
		return uint64(w.Stream.Writes)
	}
	return w.VPP.Counters().Mutating()
}

// CrashVPP lets VPP die and come back empty, in virtual time. The connection comes back with
// Stream.Connect.
func (w *World) CrashVPP() {
	w.Helper()
	if err := w.Stream.Crash(); err != nil {
		w.Fatal(err)
	}
}

// Occupy lets another client of VPP take a frontend.
func (w *World) Occupy(k rule.Key) {
	w.Helper()
	backend := func(text string) simulator.Backend {
		return simulator.Backend{Addr: netip.MustParseAddrPort(text), Weight: 1}
	}
	retval, err := w.VPP.ForeignAdd(simulator.ForeignRow{
		VIP: netip.AddrPortFrom(k.Addr, k.Port), Proto: k.Proto, Tag: "theirs", Backends: []simulator.Backend{backend("10.9.9.1:80"), backend("10.9.9.2:80")},
	})
	if err != nil || retval != 0 {
		w.Fatal(k, retval, err)
	}
}
