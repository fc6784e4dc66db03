// Package toytest is the smallest possible renderer, for tests. The tests of package actors put it
// into the tree.
package toytest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Name of the renderer.
const Name = "toy"

// toy is the adapter: a service has a static neighbour on the uplink for each address, whose MAC
// address says which backend it has. Neighbours with another kind of MAC address belong to other
// clients. One neighbour, the marker, is a setting: it must be there before the others.
type toy struct {
	claims *render.Claims[netip.Addr, MAC, MAC]
	uplink Index              // 0 = not known
	have   map[netip.Addr]MAC // neighbours on the uplink; nil = not known
	phase  render.Phase
}

// New returns the renderer.
func New(struct{}) render.Renderer[netip.Addr] {
	a := &toy{}
	a.claims = render.NewClaims(render.Rules[netip.Addr, MAC, MAC]{
		Order: netip.Addr.Compare,
		Resolve: func(_ netip.Addr, claims []render.Claim[MAC]) (MAC, bool) {
			return claims[0].Value, true
		},
		Same:  func(x, y MAC) bool { return x == y },
		Taken: a.taken,
	})
	return render.Renderer[netip.Addr]{Name: Name, Noun: "neighbours", Claims: a.claims, Kind: a}
}

func (a *toy) taken(k netip.Addr) string {
	if held, is := a.have[k]; is && !Ours(held) {
		return fmt.Sprint("VPP: ", held)
	}
	return ""
}

func (a *toy) Plan(service string, view *messages.ServiceView) {
	wishes := map[netip.Addr]MAC{}
	for _, f := range view.GetFrontends() {
		addr, err := netip.ParseAddr(f.GetAddress())
		if backends := f.GetBackends(); err == nil && addr.Is4() && len(backends) > 0 {
			wishes[addr] = MAC{2, 't', 'o', 'y', 0, netip.MustParseAddr(backends[0].GetAddress()).AsSlice()[3]}
		}
	}
	a.claims.Set(service, view.GetCreated(), wishes)
}

func (a *toy) Settle(s render.Surroundings) {
	a.phase = s.Phase
	for _, i := range s.Set.GetInterfaces() {
		if i.GetName() == "uplink0" {
			a.uplink = Index(i.GetSwIfIndex())
		}
	}
}

func (a *toy) Forget(bool)  { a.have = nil }
func (a *toy) marked() bool { return a.have[Marker] == MarkerMAC }

func (*toy) Reader(bool) func(context.Context, link.Caller) (any, error) {
	return func(ctx context.Context, vpp link.Caller) (any, error) { return Read(ctx, vpp) }
}

func (a *toy) Adopt(reading any, known bool) (drifted []netip.Addr, settings int) {
	before := a.have
	a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.have = reading.(map[netip.Addr]MAC) })
	if known {
		drifted = render.Drifted(before, a.have, func(x, y MAC) bool { return x == y })
		drifted = slices.DeleteFunc(drifted, func(k netip.Addr) bool { return k == Marker })
	}
	if before[Marker] == MarkerMAC && !a.marked() {
		settings = 1
	}
	return drifted, settings
}

func (a *toy) Next(k netip.Addr) (s render.Step) {
	held, is := a.have[k]
	want, wanted := a.claims.Desired(k)
	if s.Wanted = wanted; is && !Ours(held) || k == Marker || is == wanted && held == want {
		return s
	}
	if !wanted && a.phase < render.Passed {
		s.Gate = render.Closed
	}
	s.Cost, s.Ops = 1, []render.Op{Op{Uplink: a.uplink, Addr: k, MAC: want, Add: wanted}}
	return s
}

func (a *toy) State() render.State[netip.Addr] {
	held := func(yield func(netip.Addr) bool) {
		for k, m := range a.have {
			if Ours(m) && k != Marker && !yield(k) {
				return
			}
		}
	}
	return render.State[netip.Addr]{Settings: a.marked(), Held: held, Summary: func() string { return fmt.Sprint(len(a.have), " neighbours") }}
}

func (a *toy) Work(steps []render.Chosen[netip.Addr]) render.Work[netip.Addr] {
	var ops []Op
	if !a.marked() {
		ops = append(ops, Op{Uplink: a.uplink, Addr: Marker, MAC: MarkerMAC, Add: true})
	}
	for _, s := range steps {
		ops = render.Unboxed(ops, s.Ops)
	}
	return render.Batch(ops, Apply, func(op Op) (netip.Addr, bool) { return op.Addr, op.Addr == Marker })
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

func (a *toy) Diff(reading any, sweep bool) (operations []render.Difference) {
	found, want := reading.(map[netip.Addr]MAC), a.claims.All()
	for k, m := range want {
		if is, held := found[k]; is != m {
			operations = append(operations, render.Difference{Object: k.String(), Missing: !held, Text: fmt.Sprint("set neighbour ", k)})
		}
	}
	for k, m := range found {
		if _, wanted := want[k]; sweep && !wanted && Ours(m) && k != Marker {
			operations = append(operations, render.Difference{Object: k.String(), Text: fmt.Sprint("delete neighbour ", k)})
		}
	}
	return operations
}

func (*toy) Acknowledge(*messages.RenderAck, string, bool) {}

func (a *toy) Rows(service string, known bool) (wanted, held []*messages.RowState) {
	for _, k := range a.claims.Objects(service) {
		wanted = append(wanted, &messages.RowState{Vip: k.String()})
		if _, is := a.have[k]; is && known && a.claims.Owner(k) == service {
			held = append(held, &messages.RowState{Vip: k.String()})
		}
	}
	return wanted, held
}

// Index is the index of an interface, MAC the address of a neighbour.
type (
	Index = interface_types.InterfaceIndex
	MAC   = ethernet_types.MacAddress
)

// Marker is the address of the neighbour that is a setting, MarkerMAC its MAC address.
var Marker, MarkerMAC = netip.MustParseAddr("192.168.16.250"), MAC{2, 't', 'o', 'y', 255, 255}

// Ours reports whether a MAC address belongs to a neighbour of ours.
func Ours(m MAC) bool { return m[1] == 't' && m[2] == 'o' && m[3] == 'y' }

// Read returns all neighbours on the uplink.
func Read(ctx context.Context, vpp link.Caller) (map[netip.Addr]MAC, error) {
	found := map[netip.Addr]MAC{}
	err := vpp.Dump(ctx, &ip_neighbor.IPNeighborDump{SwIfIndex: ^Index(0)}, func(m api.Message) {
		if d, is := m.(*ip_neighbor.IPNeighborDetails); is && d.Neighbor.SwIfIndex != 0 {
			// local0 leads nowhere
			found[netip.AddrFrom4(d.Neighbor.IPAddress.Un.GetIP4())] = d.Neighbor.MacAddress
		}
	})
	return found, err
}

// Op sets one neighbour on the uplink, or deletes it.
type Op struct {
	Uplink Index
	Addr   netip.Addr
	MAC    MAC
	Add    bool
}

// Describe is the operation in one line.
func (op Op) Describe() string { return fmt.Sprintf("neighbour %s %t", op.Addr, op.Add) }

// Request is the operation for VPP.
func (op Op) Request() *ip_neighbor.IPNeighborAddDel {
	n := ip_neighbor.IPNeighbor{SwIfIndex: op.Uplink, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: op.MAC}
	n.IPAddress.Un.SetIP4(ip_types.IP4Address(op.Addr.As4()))
	return &ip_neighbor.IPNeighborAddDel{IsAdd: op.Add, Neighbor: n}
}

// Apply carries out operations, and returns a result for each.
func Apply(ctx context.Context, vpp link.Caller, ops []Op) []batch.Result[Op] {
	results := make([]batch.Result[Op], len(ops))
	for i, op := range ops {
		results[i].Op = op
	}
	batch.Send(ctx, vpp, results, func(i int) []api.Message { return []api.Message{ops[i].Request()} }, func(r *batch.Result[Op], answer link.Result) {
		r.Add(answer.Err, func(int32) (error, bool) { return batch.ErrRejected, false })
	})
	return results
}
