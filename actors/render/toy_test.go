package render_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// toy is an adapter as small as one can be: a service has a static neighbour on the uplink for each
// address, whose MAC address says which backend it has. A neighbour with another kind of MAC
// address is not ours. One neighbour, the marker, is a setting: it must be there before the others.
type toy struct {
	claims *render.Claims[netip.Addr, mac, mac]
	uplink interface_types.InterfaceIndex // 0 = not known
	have   map[netip.Addr]mac             // neighbours on the uplink; nil = not known
}

// mac is the MAC address of a neighbour; those of ours begin with "toy".
type mac = ethernet_types.MacAddress

var marker, markerMAC = netip.MustParseAddr("192.168.16.250"), mac{2, 't', 'o', 'y', 255, 255}

func ours(m mac) bool { return m[1] == 't' && m[2] == 'o' && m[3] == 'y' }

var _ render.Adapter[netip.Addr] = (*toy)(nil)

func newToy(struct{}) render.Adapter[netip.Addr] {
	a := &toy{}
	a.claims = render.NewClaims(netip.Addr.Compare, nil, a.resolve, func(x, y mac) bool { return x == y })
	return a
}

func (a *toy) resolve(k netip.Addr, claims []render.Claim[mac]) (mac, bool) {
	held, is := a.have[k]
	return claims[0].Value, !is || ours(held)
}

func (*toy) Kind() render.Kind                { return render.Kind{Name: "toy", Noun: "neighbours"} }
func (*toy) Compare(x, y netip.Addr) int      { return x.Compare(y) }
func (*toy) Bind(render.Progress[netip.Addr]) {}

func (a *toy) Plan(service string, view *messages.ServiceView) []netip.Addr {
	wishes := map[netip.Addr]mac{}
	for _, f := range view.GetFrontends() {
		backend := netip.MustParseAddr(f.GetBackends()[0].GetAddress()).As4()
		wishes[netip.MustParseAddr(f.GetAddress())] = mac{2, 't', 'o', 'y', 0, backend[3]}
	}
	return a.claims.Set(service, view.GetCreated(), wishes)
}

func (a *toy) Surroundings(s render.Surroundings) []netip.Addr {
	for _, i := range s.Set.GetInterfaces() {
		if i.GetName() == "uplink0" {
			a.uplink = interface_types.InterfaceIndex(i.GetSwIfIndex())
		}
	}
	return nil
}

func (*toy) Settle(render.Phase) ([]netip.Addr, []string) { return nil, nil }
func (a *toy) Objects(service string) []netip.Addr        { return a.claims.Of(service) }
func (a *toy) Services(k netip.Addr) []string             { return a.claims.Services(k) }
func (a *toy) Wanted(k netip.Addr) bool                   { _, wanted := a.claims.Desired(k); return wanted }
func (a *toy) Forget(bool)                                { a.have = nil }
func (*toy) Left(string) bool                             { return true }
func (*toy) Warning() string                              { return "" }
func (*toy) RolesRefused() string                         { return "" }
func (a *toy) Summary() string                            { return fmt.Sprintf("%d neighbours", len(a.have)) }
func (a *toy) Settings() bool                             { return a.have[marker] == markerMAC }
func (*toy) After(*runtime.Context, bool)                 {}

func (a *toy) Owner(k netip.Addr) string {
	if held, is := a.have[k]; is && !ours(held) {
		return fmt.Sprint("VPP: ", held)
	}
	first, _ := a.claims.First(k)
	return first.Service
}

func (*toy) Reader(bool) func(context.Context, link.Caller) (any, error) {
	return func(ctx context.Context, vpp link.Caller) (any, error) { return readNeighbours(ctx, vpp) }
}

func readNeighbours(ctx context.Context, vpp link.Caller) (map[netip.Addr]mac, error) {
	found := map[netip.Addr]mac{}
	err := vpp.Dump(ctx, &ip_neighbor.IPNeighborDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}, func(m api.Message) {
		if d, is := m.(*ip_neighbor.IPNeighborDetails); is && d.Neighbor.SwIfIndex != 0 {
			// local0 leads nowhere
			found[netip.AddrFrom4(d.Neighbor.IPAddress.Un.GetIP4())] = d.Neighbor.MacAddress
		}
	})
	return found, err
}

func (a *toy) Adopt(reading any, known, passed bool) (found render.Comparison[netip.Addr]) {
	before := a.have
	found.Changed = a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.have = reading.(map[netip.Addr]mac) })
	for _, k := range slices.Concat(slices.Collect(a.claims.Keys()), slices.Collect(maps.Keys(a.have))) {
		if a.Cost(k) > 0 && (passed || a.Wanted(k)) {
			found.Differing = append(found.Differing, k)
		}
	}
	if !known {
		return found
	}
	for k, held := range a.have {
		if k != marker && before[k] != held {
			found.Drifted = append(found.Drifted, k)
		}
	}
	for k := range before {
		if _, still := a.have[k]; k != marker && !still {
			found.Drifted = append(found.Drifted, k)
		}
	}
	if before[marker] == markerMAC && !a.Settings() {
		found.Settings = 1
	}
	return found
}

func (a *toy) Cost(k netip.Addr) int {
	held, is := a.have[k]
	want, wanted := a.claims.Desired(k)
	if is && !ours(held) || k == marker || is == wanted && held == want {
		return 0
	}
	return 1
}

func (a *toy) Leftovers() (keys []netip.Addr) {
	for k := range a.have {
		if !a.Wanted(k) && a.Cost(k) > 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

func (a *toy) Gate(k netip.Addr, phase render.Phase) render.Gate {
	if held, is := a.have[k]; phase < render.Passed && is && (!a.Wanted(k) || !ours(held)) {
		return render.Closed
	}
	return render.Open
}

// toyOp sets or deletes one neighbour.
type toyOp struct {
	uplink interface_types.InterfaceIndex
	addr   netip.Addr
	mac    mac
	add    bool
}

func (op toyOp) request() *ip_neighbor.IPNeighborAddDel {
	n := ip_neighbor.IPNeighbor{SwIfIndex: op.uplink, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: op.mac}
	n.IPAddress.Un.SetIP4(ip_types.IP4Address(op.addr.As4()))
	return &ip_neighbor.IPNeighborAddDel{IsAdd: op.add, Neighbor: n}
}

type toyWork []toyOp

func (a *toy) Work(keys []netip.Addr) render.Work[netip.Addr] {
	var work toyWork
	if !a.Settings() {
		work = append(work, toyOp{a.uplink, marker, markerMAC, true})
	}
	for _, k := range keys {
		want, wanted := a.claims.Desired(k)
		work = append(work, toyOp{a.uplink, k, want, wanted})
	}
	if len(work) == 0 {
		return nil
	}
	return work
}

func (w toyWork) Apply(ctx context.Context, vpp link.Caller) (results []render.Result[netip.Addr]) {
	var requests []api.Message
	for _, op := range w {
		requests = append(requests, op.request())
	}
	answers, _ := vpp.Do(ctx, requests)
	for i, op := range w {
		results = append(results, render.Result[netip.Addr]{
			Text: fmt.Sprintf("neighbour %s %t", op.addr, op.add), Object: op.addr, Setting: op.addr == marker, Err: answers[i].Err, Op: op,
		})
	}
	return results
}

func (a *toy) Record(results []render.Result[netip.Addr]) []string {
	for _, r := range results {
		if op := r.Op.(toyOp); r.Err == nil && op.add {
			a.have[op.addr] = op.mac
		} else if r.Err == nil {
			delete(a.have, op.addr)
		}
	}
	return nil
}

func (*toy) Acknowledge(*messages.RenderAck, string, bool) {}

func (a *toy) Diff(sweep bool) func(context.Context, link.Caller) ([]string, error) {
	want := a.claims.All()
	return func(ctx context.Context, vpp link.Caller) (operations []string, err error) {
		found, err := readNeighbours(ctx, vpp)
		for k, m := range want {
			if found[k] != m {
				operations = append(operations, fmt.Sprint("set neighbour ", k))
			}
		}
		for k, m := range found {
			if _, wanted := want[k]; sweep && !wanted && ours(m) && k != marker {
				operations = append(operations, fmt.Sprint("delete neighbour ", k))
			}
		}
		return operations, err
	}
}

func (a *toy) Rows(service string, known bool) (wanted, held []*messages.RowState) {
	for _, k := range a.claims.Of(service) {
		wanted = append(wanted, &messages.RowState{Vip: k.String()})
		if _, is := a.have[k]; is && known && a.Owner(k) == service {
			held = append(held, &messages.RowState{Vip: k.String()})
		}
	}
	return wanted, held
}

func (*toy) Handle(*runtime.Context, any) (bool, []netip.Addr, []string) { return false, nil, nil }
