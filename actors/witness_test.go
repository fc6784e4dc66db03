package actors

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"go.fd.io/govpp/api"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// witness compares a running troupe and its VPP with what they should be. It asks VPP itself and computes everything from scratch.
type witness struct {
	deps    *Deps
	cluster *apiServer
	sys     *runtime.System
	vpp     link.Caller
	foreign map[frontend.Key]bool // rows of somebody else
	fatal   atomic.Pointer[string]
}

// wrong says what is not as it should be: VPP, readiness, what introspection shows, who is alive.
func (w *witness) wrong() string {
	var wrong []string
	state, err := nat44.Read(context.Background(), w.vpp)
	if err != nil {
		return err.Error()
	}
	want, rules := w.cluster.reference(w.deps, w.foreign)
	for _, k := range slices.SortedFunc(maps.Keys(want), frontend.Key.Compare) {
		if row, held := state.Rows[k]; !held {
			wrong = append(wrong, fmt.Sprintf("VPP lacks %s", k))
		} else if planned := want[k]; len(nat44.DiffRow(&row, &planned)) > 0 {
			wrong = append(wrong, fmt.Sprintf("VPP holds %v\nwant %v", row, planned))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(state.Rows), frontend.Key.Compare) {
		row := state.Rows[k]
		if _, wanted := want[k]; !wanted && (w.deps.External == nil || !nat44.External(row.Tag)) {
			wrong = append(wrong, fmt.Sprintf("VPP holds %s, which nobody wants", k))
		}
	}
	if hairpin := lastAddress(w.cluster.thisNode()); len(want) > 0 && !slices.Contains(state.TwiceNAT, hairpin) {
		wrong = append(wrong, fmt.Sprintf("hairpin addresses %v, want %s", state.TwiceNAT, hairpin))
	}
	if report := w.deps.Readiness.Load(); !report.Ready {
		wrong = append(wrong, "not ready: "+report.Reasons())
	}
	if reason := w.fatal.Load(); reason != nil {
		wrong = append(wrong, "fatal: "+*reason)
	}
	return strings.Join(slices.Concat(wrong, w.wrongRoutes(), w.wrongLists(rules), w.wrongStatuses(), w.wrongActors()), "\n")
}

// wrongLists compares what VPP drops, and where, with the rules.
func (w *witness) wrongLists(rules []acl.Rule) (wrong []string) {
	want := acl.Want{Rules: acl.Minimal(rules), Interfaces: map[uint32]acl.Class{}}
	err := w.vpp.Dump(context.Background(), &interfaceapi.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}, func(msg api.Message) {
		switch i := msg.(*interfaceapi.SwInterfaceDetails); {
		case i.InterfaceName == "uplink0":
			want.Interfaces[uint32(i.SwIfIndex)] = acl.Remote
		case strings.HasPrefix(i.InterfaceName, "pod"):
			want.Interfaces[uint32(i.SwIfIndex)] = acl.Local
		}
	})
	if err != nil {
		return []string{err.Error()}
	}
	lists, err := acl.Read(context.Background(), w.vpp)
	if err != nil {
		return []string{err.Error()}
	}
	for _, op := range acl.Diff(lists, &want, true) {
		wrong = append(wrong, "VPP's access lists: "+op.Describe()+" is needed")
	}
	return wrong
}

// wrongRoutes compares the routes of ours with what the services ask for. VPP tells nothing of a route beneath a better one of others.
func (w *witness) wrongRoutes() (wrong []string) {
	want := w.cluster.refusals(w.deps)
	state, err := routes.Read(context.Background(), w.vpp, slices.Collect(maps.Keys(want))...)
	if err != nil {
		return []string{err.Error()}
	}
	held := map[netip.Prefix]routes.Route{}
	for place, kind := range state.Routes {
		rank := map[uint8]routes.Rank{state.Sources[routes.Firm]: routes.Firm, state.Sources[routes.Yielding]: routes.Yielding}[place.Source]
		if _, twice := held[place.Prefix]; twice || rank == 0 {
			wrong = append(wrong, fmt.Sprintf("VPP holds %s twice, or of a source that is not in use", place.Prefix))
		}
		held[place.Prefix] = routes.Route{Kind: kind, Rank: rank}
	}
	for _, p := range slices.SortedFunc(maps.Keys(want), comparePrefixes) {
		if got := held[p]; got != want[p] && state.Beneath[p] == "" {
			wrong = append(wrong, fmt.Sprintf("route %s is %q, want %q", p, got, want[p]))
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(held), comparePrefixes) {
		if _, wanted := want[p]; !wanted {
			wrong = append(wrong, fmt.Sprintf("VPP holds a route %s, which nobody wants", p))
		}
	}
	return wrong
}

// wrongStatuses compares what introspection shows with who exists.
func (w *witness) wrongStatuses() (wrong []string) {
	answer, err := w.sys.Ask(context.Background(), PathIntrospect, &StatusQuery{})
	if err != nil {
		return []string{err.Error()}
	}
	var shown []string
	for _, s := range answer.(*StatusPage).Services {
		shown = append(shown, s.GetKey())
		for _, r := range s.GetRenders() {
			if r.GetState() != messages.RenderState_RENDER_IN_SYNC {
				wrong = append(wrong, fmt.Sprintf("%s is shown as %v: %s", s.GetKey(), r.GetState(), r.GetError()))
			}
		}
		if len(s.GetRenders()) != len(Renderers()) {
			wrong = append(wrong, s.GetKey()+" is shown without one of its renderers")
		}
	}
	if want := w.cluster.existing(); !slices.Equal(shown, want) {
		wrong = append(wrong, fmt.Sprintf("shown are %q, want %q", shown, want))
	}
	return wrong
}

// wrongActors finds actors that are left over, missing, or not able to work.
func (w *witness) wrongActors() (wrong []string) {
	want := []string{
		RootName, PathDataplane, PathAudit, PathInterfaces, PathLink, PathRenderer(nat), PathRenderer(refusing), PathHealer, PathIntrospect, PathJournal,
		"agent/dataplane/upkeep", PathSessions, PathExternal,
		"agent/world", PathNodes, PathRegistry, PathServices, PathWatch,
	}
	for _, key := range w.cluster.existing() {
		want = append(want, PathService(key))
	}
	slices.Sort(want)
	var alive []string
	for _, a := range w.sys.Snapshot() {
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
