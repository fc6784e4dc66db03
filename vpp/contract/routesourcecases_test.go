package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// Prefixes of these cases, and what is wanted for them.
var (
	serviceNet  = netip.MustParsePrefix("10.96.0.0/16")
	serviceNet6 = netip.MustParsePrefix("fd96::/108")
	clusterIP   = netip.MustParsePrefix("10.96.0.1/32")
	peerHost    = netip.MustParsePrefix("10.0.0.2/32") // in the network of pod
	firmReject  = routes.Route{Kind: routes.Reject}
	firmDrop    = routes.Route{Kind: routes.Drop}
	lbReject    = routes.Route{Kind: routes.Reject, External: true}
)

// refusals is the state of one agent's routes.
type refusals struct {
	*rig
	have *routes.State
}

// settle reads VPP, makes it hold what is wanted and returns the operations that it took; then
// nothing may be left to do.
func (a *refusals) settle(t testing.TB, want routes.Want) []string {
	t.Helper()
	a.read(t, want)
	var done []string
	for _, result := range routes.Apply(t.Context(), a.link, routes.Diff(a.have, want, true)) {
		if result.Err != nil || result.Unknown {
			t.Errorf("%s: error %v, unknown %v", result.Op, result.Err, result.Unknown)
		}
		a.have.Record(result.Op)
		done = append(done, result.Op.Verb.String())
	}
	check(t, "operations left by the record", nil, routes.Diff(a.have, want, true))
	a.read(t, want)
	check(t, "operations left", nil, routes.Diff(a.have, want, true))
	return done
}

// read reads VPP.
func (a *refusals) read(t testing.TB, want routes.Want) {
	t.Helper()
	state, err := routes.Read(t.Context(), a.link, a.have.Prefixes(want), nil)
	if err != nil {
		t.Fatal(err)
	}
	state.Inherit(a.have)
	a.have = state
}

// sourcesNamed returns the ids of the sources of a name.
func sourcesNamed(t testing.TB, v *rig, name string) []uint8 {
	t.Helper()
	var ids []uint8
	for _, d := range dump[*fib.FibSourceDetails](t, v, &fib.FibSourceDump{}) {
		if d.Src.Name == name {
			ids = append(ids, d.Src.ID)
		}
	}
	return ids
}

// newSource registers a source and returns its id.
func newSource(t testing.TB, v *rig, name string, priority uint8) uint8 {
	t.Helper()
	return ask[*fib.FibSourceAddReply](t, v, &fib.FibSourceAdd{Src: fib.FibSource{Name: name, Priority: priority}}).ID
}

// bySource returns the routes that a source wins, as text.
func bySource(t testing.TB, v *rig, id uint8, ip6 bool) map[string]fib_types.FibPathType {
	t.Helper()
	all := map[string]fib_types.FibPathType{}
	for _, d := range dump[*ip.IPRouteV2Details](t, v, &ip.IPRouteV2Dump{Src: id, Table: ip.IPTable{IsIP6: ip6}}) {
		if d.Route.Src != id || len(d.Route.Paths) != 1 {
			t.Errorf("the dump of source %d has %+v", id, d.Route)
			continue
		}
		all[d.Route.Prefix.String()] = d.Route.Paths[0].Type
	}
	return all
}

// sourced makes the message that adds or deletes an unreachable route of a source.
func sourced(isAdd bool, id uint8, text string) *ip.IPRouteAddDelV2 {
	op := routes.Op{Verb: routes.Add, Source: id, Prefix: netip.MustParsePrefix(text), Route: firmReject}
	if !isAdd {
		op.Verb = routes.Delete
	}
	msg, _ := routes.Message(op).(*ip.IPRouteAddDelV2)
	return msg
}

// winner returns the name of the source that wins exactly this prefix; "" for none.
func winner(t testing.TB, v *rig, prefix netip.Prefix) string {
	t.Helper()
	return winnerIn(t, v, 0, prefix)
}

// winnerIn is winner in another table.
func winnerIn(t testing.TB, v *rig, table uint32, prefix netip.Prefix) string {
	t.Helper()
	results, err := v.link.Do(t.Context(), []api.Message{&ip.IPRouteLookupV2{TableID: table, Exact: 1, Prefix: sourced(true, 0, prefix.String()).Route.Prefix}})
	if err != nil {
		t.Fatal(err)
	}
	reply, found := results[0].Reply.(*ip.IPRouteLookupV2Reply)
	if results[0].Err != nil || !found {
		return ""
	}
	for _, d := range dump[*fib.FibSourceDetails](t, v, &fib.FibSourceDump{}) {
		if d.Src.ID == reply.Route.Src {
			return d.Src.Name
		}
	}
	return fmt.Sprintf("source %d", reply.Route.Src)
}

var routeSourceCases = []contractCase{
	{"source/those of VPP and their priorities", func(t *testing.T, v *rig) {
		got := map[string]uint8{}
		for _, d := range dump[*fib.FibSourceDetails](t, v, &fib.FibSourceDump{}) {
			got[d.Src.Name] = d.Src.Priority
		}
		for name, want := range map[string]uint8{
			"special": 0, "interface": 3, "API": 0x80, "CLI": 0x81, "DHCP": 0xb0, "IPv6-nd": 0xc1, "adjacency": 0xd0, "nat-low": 0xd0,
			"recursive-resolution": 0xfb, "default-route": 0xfd,
		} {
			if priority, known := got[name]; !known || priority != want {
				t.Errorf("%s has priority %#x (%v), want %#x", name, priority, known, want)
			}
		}
	}},
	{"source/registered once, whatever client asks and however often", func(t *testing.T, v *rig) {
		register := []routes.Op{{Verb: routes.Register}, {Verb: routes.Register}}
		first := routes.Apply(t.Context(), v.link, register)
		other := newRig(t, v.Target)
		second := routes.Apply(t.Context(), other.link, register)
		for i, r := range append(first, second...) {
			if r.Err != nil || r.Op.Source == 0 || r.Op.Source != first[0].Op.Source || (r.Messages > 0) != (i == 0) {
				t.Errorf("registration %d: %+v", i, r)
			}
		}
		check(t, "sources", []uint8{first[0].Op.Source}, sourcesNamed(t, v, "troupe"))
	}},
	{"source/the same name twice is two sources", func(t *testing.T, v *rig) {
		a, b := newSource(t, v, "twins", 0xe5), newSource(t, v, "twins", 0xe5)
		if a == 0 || b != a+1 {
			t.Errorf("ids %d and %d", a, b)
		}
		check(t, "sources", []uint8{a, b}, sourcesNamed(t, v, "twins"))
		v.expect(t, ok, sourced(true, b, "10.96.0.0/16"))
		v.expect(t, ok, sourced(true, a, "10.96.0.0/16"))
		check(t, "of the first", map[string]fib_types.FibPathType{"10.96.0.0/16": unreachable}, bySource(t, v, a, false))
		check(t, "of the second", nil, bySource(t, v, b, false))
	}},
	{"source/survives its client, and so do its routes", func(t *testing.T, v *rig) {
		t.Run("client", func(t *testing.T) { // its connection ends with it
			raw := realvpp.NewRaw(t, v.Socket())
			raw.Retval(t, &fib.FibSourceAdd{Src: fib.FibSource{Name: "orphan", Priority: 0xe5}})
			ids := sourcesNamed(t, v, "orphan")
			if len(ids) != 1 {
				t.Fatalf("ids %v", ids)
			}
			if got := raw.Retval(t, sourced(true, ids[0], "10.96.0.0/16")); got != ok {
				t.Fatalf("returned %d", got)
			}
		})
		check(t, "sources", 1, len(sourcesNamed(t, v, "orphan")))
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", unreachable, none)
	}},
	{"source/none left is a success with the id of nothing", func(t *testing.T, v *rig) {
		last := uint8(0)
		for range 255 {
			id := newSource(t, v, "many", 0xe5)
			if id == 0 {
				break
			}
			last = id
		}
		check(t, "last id", uint8(254), last)
		results := routes.Apply(t.Context(), v.link, routes.Diff(routes.NewState(), routes.Want{serviceNet: firmReject}, true))
		if !errors.Is(results[0].Err, routes.ErrExhausted) || !errors.Is(results[1].Err, routes.ErrSource) || results[1].Messages != 0 {
			t.Errorf("results %+v", results)
		}
		check(t, "routes", "", winner(t, v, serviceNet))
	}},
	{"source/the id of nothing means the API", func(t *testing.T, v *rig) {
		v.expect(t, ok, sourced(true, 0, "10.96.0.0/16"))
		check(t, "winner", "API", winner(t, v, serviceNet))
		v.expect(t, ok, sourced(false, 0, "10.96.0.0/16"))
		check(t, "winner", "", winner(t, v, serviceNet))
	}},
	{"source/routes of both families, kinds, replaced in place", func(t *testing.T, v *rig) {
		id := newSource(t, v, "other", 0xe5)
		v.expect(t, ok, sourced(true, id, "10.96.0.0/16"))
		v.expect(t, ok, sourced(true, id, "fd96::/108"))
		check(t, "IPv4", map[string]fib_types.FibPathType{"10.96.0.0/16": unreachable}, bySource(t, v, id, false))
		check(t, "IPv6", map[string]fib_types.FibPathType{"fd96::/108": unreachable}, bySource(t, v, id, true))
		v.expect(t, ok, sourced(true, id, "10.96.0.0/16"))
		other := sourced(true, id, "10.96.0.0/16")
		other.Route.Paths[0].Type = dropped
		v.expect(t, ok, other)
		check(t, "replaced", map[string]fib_types.FibPathType{"10.96.0.0/16": dropped}, bySource(t, v, id, false))
		v.expect(t, ok, sourced(false, id, "10.96.0.0/16"))
		v.expect(t, ok, sourced(false, id, "fd96::/108"))
		check(t, "IPv4", nil, bySource(t, v, id, false))
		check(t, "IPv6", nil, bySource(t, v, id, true))
	}},
	{"source/deleting what is not there", func(t *testing.T, v *rig) {
		index := pod(t, v)
		v.expect(t, ok, route(t, "10.96.0.0/16", via(index, [4]byte{10, 0, 0, 254})))
		id := newSource(t, v, "other", 0xe5)
		for _, text := range []string{"10.96.0.0/16", "10.97.0.0/16", "10.0.0.1/32", "10.0.0.0/24", "0.0.0.0/0"} {
			v.expect(t, ok, sourced(false, id, text))
		}
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", normal, index)
		leads(t, v, "10.0.0.1/32", "10.0.0.1/32", toLocal, index)
		leads(t, v, "10.0.0.9/32", "10.0.0.1/24", normal, index)
	}},
	{"refusal/a route of others wins, before and after, and ours takes over", func(t *testing.T, v *rig) {
		a, want := &refusals{rig: v}, routes.Want{serviceNet: firmReject}
		index := pod(t, v)
		theirs := route(t, "10.96.0.0/16", via(index, [4]byte{10, 0, 0, 254}))
		v.expect(t, ok, theirs)
		check(t, "operations", []string{"register-source", "add-route"}, a.settle(t, want))
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", normal, index)
		check(t, "by source", nil, bySource(t, v, a.have.Source, false))
		check(t, "beneath", map[netip.Prefix]string{serviceNet: "API"}, a.have.Beneath)
		check(t, "operations of the second time", nil, a.settle(t, want))

		theirs.IsAdd = false
		v.expect(t, ok, theirs)
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", unreachable, none)
		check(t, "operations when theirs is gone", nil, a.settle(t, want))
		theirs.IsAdd = true
		v.expect(t, ok, theirs)
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", normal, index)
		check(t, "operations when theirs is back", nil, a.settle(t, want))

		check(t, "operations when ours goes beneath it", []string{"delete-route"}, a.settle(t, nil))
		leads(t, v, "10.96.0.1/32", "10.96.0.0/16", normal, index)
		theirs.IsAdd = false
		v.expect(t, ok, theirs)
		leads(t, v, "10.96.0.1/32", "0.0.0.0/0", dropped, none)
	}},
	{"refusal/left over beneath a route of others, found when that goes", func(t *testing.T, v *rig) {
		a := &refusals{rig: v}
		a.settle(t, routes.Want{serviceNet: firmReject})
		theirs := route(t, "10.96.0.0/16", via(pod(t, v), [4]byte{10, 0, 0, 254}))
		v.expect(t, ok, theirs)
		restarted := &refusals{rig: v}
		check(t, "operations of an agent that cannot see it", nil, restarted.settle(t, nil))
		theirs.IsAdd = false
		v.expect(t, ok, theirs)
		check(t, "operations when it comes to light", []string{"delete-route"}, restarted.settle(t, nil))
	}},
	{"refusal/an address of VPP wins", func(t *testing.T, v *rig) {
		a := &refusals{rig: v}
		a.settle(t, routes.Want{netip.MustParsePrefix("10.0.0.1/32"): firmReject, netip.MustParsePrefix("10.0.0.0/24"): firmReject})
		index := pod(t, v)
		leads(t, v, "10.0.0.1/32", "10.0.0.1/32", toLocal, index)
		check(t, "winner of the network", "interface", winner(t, v, netip.MustParsePrefix("10.0.0.0/24")))
	}},
	{"refusal/an external address only where nothing else leads there", func(t *testing.T, v *rig) {
		a := &refusals{rig: v}
		index := pod(t, v)
		v.expect(t, ok, route(t, "198.51.100.0/24", via(index, [4]byte{10, 0, 0, 254})))
		a.settle(t, routes.Want{serviceNet: firmReject})
		free := netip.MustParsePrefix("203.0.113.7/32")
		want := routes.Want{serviceNet: firmReject, free: lbReject}
		check(t, "operations", []string{"add-route"}, a.settle(t, want))
		leads(t, v, "203.0.113.7/32", "203.0.113.7/32", unreachable, none)
		for address, by := range map[string]string{
			"10.0.0.2/32": "10.0.0.0/24", "198.51.100.1/32": "198.51.100.0/24", "198.51.100.254/32": "198.51.100.0/24",
		} {
			p := netip.MustParsePrefix(address)
			result := routes.Apply(t.Context(), a.link, []routes.Op{{Verb: routes.Add, Source: a.have.Source, Prefix: p, Route: lbReject}})[0]
			if !errors.Is(result.Err, routes.ErrCovered) || result.Unknown || result.Op.By.String() != by {
				t.Errorf("%s: %+v, want the route %s in the way", address, result, by)
			}
		}
		theirs := route(t, "203.0.113.0/24", via(index, [4]byte{10, 0, 0, 254}))
		v.expect(t, ok, theirs)
		state, err := routes.Read(t.Context(), a.link, a.have.Prefixes(want), []netip.Prefix{free})
		if err != nil || state.Covered[free].String() != "203.0.113.0/24" {
			t.Errorf("covered %v, %v", state.Covered, err)
		}
		check(t, "operations when it is covered", []string{"delete-route"}, a.settle(t, routes.Want{serviceNet: firmReject}))
		leads(t, v, "203.0.113.7/32", "203.0.113.0/24", normal, index)
	}},
	{"refusal/beats the address that NAT has made its own", func(t *testing.T, v *rig) {
		a := &refusals{rig: v}
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		index := pod(t, v)
		v.expect(t, ok, role(true, index, inside))
		v.expect(t, ok, role(true, index, outside))
		a.settle(t, routes.Want{serviceNet: firmReject})
		check(t, "winner", "nat-low", winner(t, v, clusterIP))
		v.expect(t, ok, noRow())
		check(t, "winner when the row is gone", "nat-low", winner(t, v, clusterIP))
		a.settle(t, routes.Want{serviceNet: firmReject, clusterIP: firmReject})
		check(t, "winner", "troupe", winner(t, v, clusterIP))
		leads(t, v, "10.96.0.1/32", "10.96.0.1/32", unreachable, none)
		v.expect(t, ok, row(local(1), local(2)))
		v.expect(t, ok, role(true, loopback(t, v), outside))
		check(t, "winner after NAT has come again", "troupe", winner(t, v, clusterIP))
		check(t, "operations", []string{"delete-route"}, a.settle(t, routes.Want{serviceNet: firmReject}))
		check(t, "winner when ours is gone", "nat-low", winner(t, v, clusterIP))
	}},
	{"refusal/every change, then nothing", func(t *testing.T, v *rig) {
		a := &refusals{rig: v}
		check(t, "nothing of a stranger", nil, a.settle(t, nil))
		check(t, "sources", nil, sourcesNamed(t, v, "troupe"))
		want := routes.Want{serviceNet: firmReject, serviceNet6: firmReject}
		check(t, "networks", []string{"register-source", "add-route", "add-route"}, a.settle(t, want))
		check(t, "again", nil, a.settle(t, want))
		want[clusterIP] = firmDrop
		check(t, "an address", []string{"add-route"}, a.settle(t, want))
		want[clusterIP] = firmReject
		check(t, "another kind", []string{"add-route"}, a.settle(t, want))
		leads(t, v, "10.96.0.1/32", "10.96.0.1/32", unreachable, none)
		delete(want, serviceNet6)
		check(t, "a network goes", []string{"delete-route"}, a.settle(t, want))
		check(t, "everything goes", []string{"delete-route", "delete-route"}, a.settle(t, nil))
		leads(t, v, "10.96.0.1/32", "0.0.0.0/0", dropped, none)
		check(t, "and comes", []string{"add-route", "add-route"}, a.settle(t, want))
	}},
	{"refusal/a restarted agent finds everything, and sweeps late", func(t *testing.T, v *rig) {
		old := routes.Want{serviceNet: firmReject, serviceNet6: firmReject, clusterIP: firmDrop, peerHost: firmReject}
		(&refusals{rig: v}).settle(t, old)
		a := &refusals{rig: newRig(t, v.Target)}
		check(t, "nothing has changed", nil, a.settle(t, old))
		want := routes.Want{serviceNet: firmReject}
		check(t, "before every service has been planned", nil, routes.Diff(a.have, want, false))
		check(t, "afterwards", []string{"delete-route", "delete-route", "delete-route"}, a.settle(t, want))
		check(t, "sources", 1, len(sourcesNamed(t, v, "troupe")))
	}},
	{"refusal/what two agents registered at the same time becomes one", func(t *testing.T, v *rig) {
		first, second := newSource(t, v, "troupe", 0xcf), newSource(t, v, "troupe", 0xcf)
		older := newSource(t, v, "troupe", 0xd7)
		v.expect(t, ok, sourced(true, second, "10.96.0.0/16"))
		v.expect(t, ok, sourced(true, older, "10.97.0.0/16"))
		a := &refusals{rig: v}
		check(t, "operations", []string{"add-route", "delete-route", "delete-route"}, a.settle(t, routes.Want{serviceNet: firmReject}))
		check(t, "of the first", map[string]fib_types.FibPathType{"10.96.0.0/16": unreachable}, bySource(t, v, first, false))
		check(t, "of the second", nil, bySource(t, v, second, false))
		check(t, "of the older", nil, bySource(t, v, older, false))
	}},
	{"refusal/after a restart of VPP no old id is used", func(t *testing.T, v *rig) {
		a, want := &refusals{rig: v}, routes.Want{serviceNet: firmReject, serviceNet6: firmReject}
		a.settle(t, want)
		v.Crash(t)
		v.waitDown(t)
		want[clusterIP] = firmDrop
		for _, r := range routes.Apply(t.Context(), v.link, routes.Diff(a.have, want, true)) {
			if !errors.Is(r.Err, link.ErrNotSent) {
				t.Errorf("without VPP: %v", r.Err)
			}
		}
		v.Restart(t)
		v.waitUp(t)
		for _, r := range routes.Apply(t.Context(), v.link, routes.Diff(a.have, want, true)) {
			if !errors.Is(r.Err, routes.ErrSource) || !r.Unknown || r.Messages != 0 {
				t.Errorf("with what was known of the VPP before: %+v", r)
			}
		}
		check(t, "sources", nil, sourcesNamed(t, v, "troupe"))
		a.have = nil
		check(t, "operations", []string{"register-source", "add-route", "add-route", "add-route"}, a.settle(t, want))
	}},
	{"refusal/a thousand addresses in one batch", func(t *testing.T, v *rig) {
		a, want := &refusals{rig: v}, routes.Want{serviceNet: firmReject}
		for i := range 1000 {
			want[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 32)] = firmReject
		}
		a.settle(t, want)
		check(t, "routes", 1001, len(bySource(t, v, a.have.Source, false)))
		a.settle(t, nil)
		check(t, "routes", nil, bySource(t, v, a.have.Source, false))
	}},
}
