package actorstest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Wrong checks a running troupe: the content of VPP, readiness, introspection, and the list of
// actors. It reads VPP past the troupe and computes the reference from scratch. "" = nothing is
// wrong.
func (w *World) Wrong() string {
	var wrong []string
	state, err := nat44.Read(context.Background(), w.Reader())
	if err != nil {
		return err.Error()
	}
	want, rules := w.reference()
	for _, k := range slices.SortedFunc(maps.Keys(want), rule.Key.Compare) {
		if row, held := state.Rows[k]; !held {
			wrong = append(wrong, fmt.Sprintf("VPP lacks %s", k))
		} else if planned := want[k].AlsoDraining(row.Draining); len(nat44.DiffRow(&row, &planned)) > 0 {
			wrong = append(wrong, fmt.Sprintf("VPP holds %v\nwant %v", row, planned))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(state.Rows), rule.Key.Compare) {
		row := state.Rows[k]
		if _, wanted := want[k]; !wanted && !row.Idle() && (w.Deps.External == nil || !nat44.External(row.Tag)) {
			wrong = append(wrong, fmt.Sprintf("VPP holds %s, which no service wants", k))
		}
	}
	if hairpin := w.Deps.NAT44.ForNode(w.Source.Snapshot().GetNode().GetSelf()).TwiceNAT; len(want) > 0 && !slices.Contains(state.TwiceNAT, hairpin) {
		wrong = append(wrong, fmt.Sprintf("hairpin addresses %v, want %s", state.TwiceNAT, hairpin))
	}
	if reason := w.unready(); reason != "" {
		wrong = append(wrong, reason)
	}
	return strings.Join(slices.Concat(wrong, w.wrongRoutes(), w.wrongLists(rules), w.wrongStatuses(), w.wrongActors()), "\n")
}

// wrongLists compares the access lists in VPP with the rules.
func (w *World) wrongLists(rules []acl.Rule) (wrong []string) {
	want := acl.Want{Rules: acl.Minimal(rules), Interfaces: map[uint32]acl.Class{}}
	err := w.Reader().Dump(context.Background(), &interfaceapi.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}, func(msg api.Message) {
		switch i := msg.(*interfaceapi.SwInterfaceDetails); {
		case i.InterfaceName == probe.Uplink:
			want.Interfaces[uint32(i.SwIfIndex)] = acl.Remote
		case strings.HasPrefix(i.InterfaceName, "pod"):
			want.Interfaces[uint32(i.SwIfIndex)] = acl.Local
		}
	})
	if err != nil {
		return []string{err.Error()}
	}
	lists, err := acl.Read(context.Background(), w.Reader())
	if err != nil {
		return []string{err.Error()}
	}
	for _, op := range acl.Diff(lists, &want, true) {
		wrong = append(wrong, "VPP's access lists: "+op.Describe()+" is needed")
	}
	return wrong
}

// wrongRoutes compares the agent's routes in VPP with the reference. VPP does not show a route
// beneath a better one of another client.
func (w *World) wrongRoutes() (wrong []string) {
	want := w.refusals()
	state, err := routes.Read(context.Background(), w.Reader(), slices.Collect(maps.Keys(want)), nil)
	if err != nil {
		return []string{err.Error()}
	}
	held := map[netip.Prefix]routes.Kind{}
	for place, kind := range state.Routes {
		if _, twice := held[place.Prefix]; twice || place.Source != state.Source {
			wrong = append(wrong, fmt.Sprintf("VPP holds %s twice, or of a source that is not in use", place.Prefix))
		}
		held[place.Prefix] = kind
	}
	for _, p := range slices.SortedFunc(maps.Keys(want), routes.ComparePrefixes) {
		if got := held[p]; got != want[p] && state.Beneath[p] == "" {
			wrong = append(wrong, fmt.Sprintf("route %s is %q, want %q", p, got, want[p]))
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(held), routes.ComparePrefixes) {
		if _, wanted := want[p]; !wanted {
			wrong = append(wrong, fmt.Sprintf("VPP holds a route %s, which no service wants", p))
		}
	}
	return wrong
}

// wrongStatuses compares the statuses in introspection with the existing services.
func (w *World) wrongStatuses() (wrong []string) {
	statuses := w.Statuses()
	shown, want := slices.Sorted(maps.Keys(statuses)), slices.Sorted(maps.Keys(w.Source.Services()))
	if !slices.Equal(shown, want) {
		wrong = append(wrong, fmt.Sprintf("shown are %q, want %q", shown, want))
	}
	for _, key := range shown {
		if reason := w.NotInSync(statuses[key]); reason != "" {
			wrong = append(wrong, key+" is shown as: "+reason)
		}
	}
	return wrong
}

// wrongActors finds actors that are left over, missing, or not able to work.
func (w *World) wrongActors() (wrong []string) {
	want := []string{
		address.RootName, address.Journal, address.Introspect, address.Healer, address.Dataplane, address.Link, address.Interfaces, address.Audit,
		address.World, address.Registry, address.Nodes, address.Services, address.Watch,
	}
	if !w.CNAT {
		want = append(want, address.Supervisor(address.Sessions), address.Sessions, address.External)
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
