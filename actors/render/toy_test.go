package render_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/actors/render"
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

func newToy(struct{}) render.Renderer[netip.Addr] {
	a := &toy{}
	a.claims = render.NewClaims(render.Rules[netip.Addr, mac, mac]{
		Order:   netip.Addr.Compare,
		Resolve: func(_ netip.Addr, claims []render.Claim[mac]) (mac, bool) { return claims[0].Value, true },
		Same:    func(x, y mac) bool { return x == y },
		Taken:   a.taken,
	})
	return render.Renderer[netip.Addr]{Name: "toy", Noun: "neighbours", Claims: a.claims, Adapter: a}
}

func (a *toy) taken(k netip.Addr) string {
	if held, is := a.have[k]; is && !ours(held) {
		return fmt.Sprint("VPP: ", held)
	}
	return ""
}

func (a *toy) Plan(service string, view *messages.ServiceView) {
	wishes := map[netip.Addr]mac{}
	for _, f := range view.GetFrontends() {
		backend := netip.MustParseAddr(f.GetBackends()[0].GetAddress()).As4()
		wishes[netip.MustParseAddr(f.GetAddress())] = mac{2, 't', 'o', 'y', 0, backend[3]}
	}
	a.claims.Set(service, view.GetCreated(), wishes)
}

func (a *toy) Surroundings(s render.Surroundings) {
	for _, i := range s.Set.GetInterfaces() {
		if i.GetName() == "uplink0" {
			a.uplink = interface_types.InterfaceIndex(i.GetSwIfIndex())
		}
	}
}

func (a *toy) Forget(bool)    { a.have = nil }
func (a *toy) Settings() bool { return a.have[marker] == markerMAC }

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

func (a *toy) Adopt(reading any, known bool) (drifted []netip.Addr, settings int) {
	before := a.have
	a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.have = reading.(map[netip.Addr]mac) })
	if known {
		drifted = render.Drifted(before, a.have, func(x, y mac) bool { return x == y })
		drifted = slices.DeleteFunc(drifted, func(k netip.Addr) bool { return k == marker })
	}
	if before[marker] == markerMAC && !a.Settings() {
		settings = 1
	}
	return drifted, settings
}

func (a *toy) Cost(k netip.Addr) int {
	held, is := a.have[k]
	want, wanted := a.claims.Desired(k)
	if is && !ours(held) || k == marker || is == wanted && held == want {
		return 0
	}
	return 1
}

func (a *toy) Held() iter.Seq[netip.Addr] { return maps.Keys(a.have) }

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

func (a *toy) Work(keys []netip.Addr) render.Work[netip.Addr] {
	var ops []toyOp
	if !a.Settings() {
		ops = append(ops, toyOp{a.uplink, marker, markerMAC, true})
	}
	for _, k := range keys {
		want, wanted := a.claims.Desired(k)
		ops = append(ops, toyOp{a.uplink, k, want, wanted})
	}
	return render.Batch(ops, applyToy, func(r *render.Result[netip.Addr]) render.Result[netip.Addr] { return *r })
}

func applyToy(ctx context.Context, vpp link.Caller, ops []toyOp) (results []render.Result[netip.Addr]) {
	var requests []api.Message
	for _, op := range ops {
		requests = append(requests, op.request())
	}
	answers, _ := vpp.Do(ctx, requests)
	for i, op := range ops {
		results = append(results, render.Result[netip.Addr]{
			Text: fmt.Sprintf("neighbour %s %t", op.addr, op.add), Object: op.addr, Setting: op.addr == marker, Err: answers[i].Err, Op: op,
		})
	}
	return results
}

func (a *toy) Record(results []render.Result[netip.Addr]) {
	for _, r := range results {
		if op := r.Op.(toyOp); r.Err == nil && op.add {
			a.have[op.addr] = op.mac
		} else if r.Err == nil {
			delete(a.have, op.addr)
		}
	}
}

func (a *toy) Diff(reading any, sweep bool) (operations []string) {
	found, want := reading.(map[netip.Addr]mac), a.claims.All()
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
	return operations
}

func (a *toy) Rows(service string, known bool) (wanted, held []*messages.RowState) {
	for _, k := range a.claims.Objects(service) {
		wanted = append(wanted, &messages.RowState{Vip: k.String()})
		if _, is := a.have[k]; is && known && a.claims.Owner(k) == service {
			held = append(held, &messages.RowState{Vip: k.String()})
		}
	}
	return wanted, held
}
