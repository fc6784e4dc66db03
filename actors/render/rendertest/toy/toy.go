// Package toy is a renderer as small as one can be, for tests: its adapter, and the line of the tree
// in the tests of package actors.
package toy

import (
	"context"
	"fmt"
	"iter"
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

// Name of the renderer.
const Name = "toy"

// toy is the adapter: a service has a static neighbour on the uplink for each address, whose MAC
// address says which backend it has. A neighbour with another kind of MAC address is not ours. One
// neighbour, the marker, is a setting: it must be there before the others.
type toy struct {
	claims *render.Claims[netip.Addr, mac, mac]
	uplink interface_types.InterfaceIndex // 0 = not known
	have   map[netip.Addr]mac             // neighbours on the uplink; nil = not known
}

type mac = ethernet_types.MacAddress

// Marker is the address of the neighbour that is a setting.
var Marker = netip.MustParseAddr("192.168.16.250")

var markerMAC = mac{2, 't', 'o', 'y', 255, 255}

// Ours reports whether the MAC address is that of a neighbour of ours.
func Ours(m ethernet_types.MacAddress) bool { return m[1] == 't' && m[2] == 'o' && m[3] == 'y' }

// New returns the renderer.
func New(struct{}) render.Renderer[netip.Addr] {
	a := &toy{}
	a.claims = render.NewClaims(render.Rules[netip.Addr, mac, mac]{
		Order:   netip.Addr.Compare,
		Resolve: func(_ netip.Addr, claims []render.Claim[mac]) (mac, bool) { return claims[0].Value, true },
		Same:    func(x, y mac) bool { return x == y },
		Taken:   a.taken,
	})
	return render.Renderer[netip.Addr]{Name: Name, Noun: "neighbours", Claims: a.claims, Adapter: a}
}

func (a *toy) taken(k netip.Addr) string {
	if held, is := a.have[k]; is && !Ours(held) {
		return fmt.Sprint("VPP: ", held)
	}
	return ""
}

func (a *toy) Plan(service string, view *messages.ServiceView) {
	wishes := map[netip.Addr]mac{}
	for _, f := range view.GetFrontends() {
		addr, err := netip.ParseAddr(f.GetAddress())
		if backends := f.GetBackends(); err == nil && addr.Is4() && len(backends) > 0 {
			wishes[addr] = mac{2, 't', 'o', 'y', 0, netip.MustParseAddr(backends[0].GetAddress()).AsSlice()[3]}
		}
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
func (a *toy) Settings() bool { return a.have[Marker] == markerMAC }

func (*toy) Reader(bool) func(context.Context, link.Caller) (any, error) {
	return func(ctx context.Context, vpp link.Caller) (any, error) { return Read(ctx, vpp) }
}

// Read returns all neighbours on the uplink.
func Read(ctx context.Context, vpp link.Caller) (map[netip.Addr]ethernet_types.MacAddress, error) {
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
		drifted = slices.DeleteFunc(drifted, func(k netip.Addr) bool { return k == Marker })
	}
	if before[Marker] == markerMAC && !a.Settings() {
		settings = 1
	}
	return drifted, settings
}

func (a *toy) Cost(k netip.Addr) int {
	held, is := a.have[k]
	want, wanted := a.claims.Desired(k)
	if is && !Ours(held) || k == Marker || is == wanted && held == want {
		return 0
	}
	return 1
}

func (a *toy) Held() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for k, m := range a.have {
			if Ours(m) && k != Marker && !yield(k) {
				return
			}
		}
	}
}

// Op sets one neighbour on the uplink, or deletes it.
type Op struct {
	Uplink interface_types.InterfaceIndex
	Addr   netip.Addr
	MAC    ethernet_types.MacAddress
	Add    bool
}

// Request is the operation for VPP.
func (op Op) Request() *ip_neighbor.IPNeighborAddDel {
	n := ip_neighbor.IPNeighbor{SwIfIndex: op.Uplink, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: op.MAC}
	n.IPAddress.Un.SetIP4(ip_types.IP4Address(op.Addr.As4()))
	return &ip_neighbor.IPNeighborAddDel{IsAdd: op.Add, Neighbor: n}
}

func (a *toy) Work(keys []netip.Addr) render.Work[netip.Addr] {
	var ops []Op
	if !a.Settings() {
		ops = append(ops, Op{a.uplink, Marker, markerMAC, true})
	}
	for _, k := range keys {
		want, wanted := a.claims.Desired(k)
		ops = append(ops, Op{a.uplink, k, want, wanted})
	}
	return render.Batch(ops, apply, func(r *render.Result[netip.Addr]) render.Result[netip.Addr] { return *r })
}

func apply(ctx context.Context, vpp link.Caller, ops []Op) (results []render.Result[netip.Addr]) {
	var requests []api.Message
	for _, op := range ops {
		requests = append(requests, op.Request())
	}
	answers, _ := vpp.Do(ctx, requests)
	for i, op := range ops {
		results = append(results, render.Result[netip.Addr]{
			Text: fmt.Sprintf("neighbour %s %t", op.Addr, op.Add), Object: op.Addr, Setting: op.Addr == Marker, Err: answers[i].Err, Op: op,
		})
	}
	return results
}

func (a *toy) Record(results []render.Result[netip.Addr]) {
	for _, r := range results {
		if op := r.Op.(Op); r.Err == nil && op.Add {
			a.have[op.Addr] = op.MAC
		} else if r.Err == nil {
			delete(a.have, op.Addr)
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
		if _, wanted := want[k]; sweep && !wanted && Ours(m) && k != Marker {
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
