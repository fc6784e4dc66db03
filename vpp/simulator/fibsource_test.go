package simulator

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	fibmodel "github.com/troupe-vpp/troupe/vpp/simulator/fib"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
)

// sourcedRoute makes the message that adds a route of a source with one path of the given type.
func sourcedRoute(t testing.TB, source uint8, text string, kind fib_types.FibPathType) *ip.IPRouteAddDelV2 {
	t.Helper()
	prefix, err := ip_types.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return &ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{
		Src: source, Prefix: prefix, NPaths: 1, Paths: []fib_types.FibPath{{SwIfIndex: pool.None, Type: kind, Weight: 1}},
	}}
}

// source registers a source.
func (r *rig) source(name string, priority uint8) uint8 {
	r.t.Helper()
	return invoke[fib.FibSourceAddReply](r.t, r.conn, &fib.FibSourceAdd{Src: fib.FibSource{Name: name, Priority: priority}}).ID
}

func TestSources(t *testing.T) {
	r := bareRig(t, Options{})
	builtin := dump[fib.FibSourceDetails](t, r.conn, &fib.FibSourceDump{})
	for i, d := range builtin {
		if int(d.Src.ID) != i || d.Src.Name == "" {
			t.Errorf("source %d is %+v", i, d.Src)
		}
	}
	for id, name := range map[fibmodel.Source]string{
		fibmodel.SourceSpecial: "special", fibmodel.SourceInterface: "interface", fibmodel.SourceAPI: "API", fibmodel.SourceAdjacency: "adjacency", fibmodel.SourceDefault: "default-route",
		fibmodel.SourceNAT: "nat-low",
	} {
		if got := builtin[id].Src.Name; got != name {
			t.Errorf("source %d is %q, want %q", id, got, name)
		}
	}
	first, second := r.source("mine", 0xd0), r.source("mine", 0xd0)
	if int(first) != len(builtin) || second != first+1 {
		t.Errorf("ids %d and %d after %d", first, second, len(builtin))
	}
	all := dump[fib.FibSourceDetails](t, r.conn, &fib.FibSourceDump{})
	if got := all[first].Src; len(all) != len(builtin)+2 || got.Name != "mine" || got.Priority != 0xd0 || got.ID != first {
		t.Errorf("%d sources, the first of ours is %+v", len(all), got)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if fresh, err := r.Exec(&fib.FibSourceDump{}); err != nil || len(fresh) != len(builtin) {
		t.Errorf("%d sources after a restart, %v, want %d", len(fresh), err, len(builtin))
	}
}

// TestBestSourceForwards: of all routes for a prefix the best one counts, in look-ups, in dumps by
// source and for packets.
func TestBestSourceForwards(t *testing.T) {
	r := bareRig(t, Options{})
	low, high := r.source("low", 0xd1), r.source("high", 0x70)
	dst := at(netip.MustParseAddr("203.0.113.7"), 80)
	send := func(want Action) {
		t.Helper()
		if v := r.Send(tcp(clientPod, 1, dst)); v.Action != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
	shows := func(source uint8, want int) {
		t.Helper()
		if n := len(dump[ip.IPRouteV2Details](t, r.conn, &ip.IPRouteV2Dump{Src: source})); n != want {
			t.Errorf("source %d has %d routes in its dump, want %d", source, n, want)
		}
	}
	const host = "203.0.113.7/32"
	send(Delivered)
	unreach := sourcedRoute(t, low, host, fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH)
	r.ok(unreach)
	send(Rejected)
	shows(low, 1)
	drop := sourcedRoute(t, high, host, fib_types.FIB_API_PATH_TYPE_DROP)
	r.ok(drop)
	send(Dropped)
	shows(low, 0)
	shows(high, 1)
	unreach.IsAdd = false // beneath
	r.ok(unreach)
	send(Dropped)
	unreach.IsAdd = true
	r.ok(unreach)
	drop.IsAdd = false
	r.ok(drop)
	send(Rejected)
	unreach.IsAdd = false
	r.ok(unreach)
	r.ok(unreach)
	send(Delivered)
}

// TestRouteOfNoSource: VPP reads beyond its table, so the simulated one always dies.
func TestRouteOfNoSource(t *testing.T) {
	r := bareRig(t, Options{})
	remove := sourcedRoute(t, 99, "10.96.0.0/16", fib_types.FIB_API_PATH_TYPE_DROP)
	remove.IsAdd = false
	r.ok(remove)
	r.fire(sourcedRoute(t, 99, "10.96.0.0/16", fib_types.FIB_API_PATH_TYPE_DROP))
	until(t, "VPP to die", func() bool { return !r.Alive() })
}
