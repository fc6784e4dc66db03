package addresses

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/vrrp"
)

// Name of the renderer.
const Name = "addresses"

// Config is the configuration of the adapter.
type Config struct {
	// Interval between advertisements, a multiple of 10 ms from 100 ms on. All nodes have the same.
	Interval time.Duration
	// Made reports whether the agent has made an object; any goroutine calls it.
	Made func(owned.Object) bool
}

// serving is whether this node takes part in elections.
type serving uint8

const (
	// undecided: groups of an earlier run go on, and no other begins.
	undecided serving = iota
	yes
	no
)

// adapter keeps virtual routers.
type adapter struct {
	config   Config
	claims   *render.Claims[vrrp.Key, wish, vrrp.Router]
	services map[string]*service

	// The surroundings: changed by Settle.
	pools   []*messages.AddressPool
	layouts []*addresses.Layout // of pools
	uplinks []uplink
	node    *messages.Node
	set     *messages.InterfaceSet
	phase   render.Phase

	serving  serving // changed by Handle
	left     bool    // a command has asked the node to leave
	emptied  bool    // VPP is another one, and the healer has not been told
	progress *render.Progress[vrrp.Key]

	have        map[vrrp.Key]vrrp.Held // nil = not known
	looked      bool                   // have may be another one than at the last After
	doubtful    map[vrrp.Key]bool      // perhaps changed by an operation that VPP has refused
	unsupported bool                   // VPP has no plugin vrrp
	owned       map[vrrp.Key]time.Time // since when this node owns groups: changed by After
}

// service is a service with load-balancer addresses.
type service struct {
	created int64
	serves  map[netip.Addr]bool // whether this node serves clients outside at the address
}

// wish is the claim of a service on a group.
type wish struct {
	members []netip.Addr
	serves  bool
}

// uplink is a network of an interface.
type uplink struct {
	index   uint32
	name    string
	network netip.Prefix
}

// New returns the renderer.
func New(config Config) render.Renderer[vrrp.Key] {
	a := &adapter{config: config, services: map[string]*service{}, progress: &render.Progress[vrrp.Key]{}, owned: map[vrrp.Key]time.Time{}, doubtful: map[vrrp.Key]bool{}}
	a.claims = render.NewClaims(render.Rules[vrrp.Key, wish, vrrp.Router]{
		Order: vrrp.Key.Compare, Resolve: a.resolve, Same: vrrp.Router.Equal, Taken: a.taken, Shared: true,
	})
	return render.Renderer[vrrp.Key]{Name: Name, Noun: "virtual routers", Claims: a.claims, Kind: a, Progress: a.progress, Mail: a, Remove: remove}
}

// resolve returns the virtual router of a group.
func (a *adapter) resolve(k vrrp.Key, claims []render.Claim[wish]) (vrrp.Router, bool) {
	for _, c := range claims {
		if !c.Value.serves {
			return vrrp.Router{}, false
		}
	}
	priority := addresses.Group{ID: k.ID, IPv6: k.IPv6}.Priority(a.node.GetName())
	if a.node.GetLeaving() || a.node.GetExcluded() {
		priority = addresses.LastResort
	}
	return vrrp.Router{Priority: priority, Interval: a.config.Interval, Addresses: claims[0].Value.members}, a.serving != no && !a.left
}

// taken describes the virtual router of another client under a key; "" = none.
func (a *adapter) taken(k vrrp.Key) string {
	if held, is := a.have[k]; is && !held.Ours {
		return "VPP: a virtual router of another client"
	}
	return ""
}

func (a *adapter) Plan(name string, view *messages.ServiceView) {
	s := &service{created: view.GetCreated(), serves: map[netip.Addr]bool{}}
	for _, f := range view.GetFrontends() {
		addr, err := netip.ParseAddr(f.GetAddress())
		if err != nil || f.GetKind() != messages.FrontendKind_KIND_LOAD_BALANCER_IP || f.GetFrom() == messages.ClientClass_FROM_LOCAL {
			continue
		}
		s.serves[addr] = s.serves[addr] || f.GetAction() != messages.Action_ACTION_DROP
	}
	if delete(a.services, name); len(s.serves) > 0 {
		a.services[name] = s
	}
	a.plan(name)
}

// plan claims the groups of the addresses of a service.
func (a *adapter) plan(name string) {
	wishes := map[vrrp.Key]wish{}
	s := a.services[name]
	if s == nil {
		a.claims.Set(name, 0, nil)
		return
	}
	for addr, serves := range s.serves {
		members, group, pooled := a.group(addr)
		if up, is := a.uplink(addr); pooled && is {
			k := vrrp.Key{Interface: up.index, ID: group.ID, IPv6: group.IPv6}
			before, twice := wishes[k]
			wishes[k] = wish{members, serves && (!twice || before.serves)}
		}
	}
	a.claims.Set(name, s.created, wishes)
}

// group returns the group of an address and its members; false = no pool has the address.
func (a *adapter) group(addr netip.Addr) (members []netip.Addr, g addresses.Group, pooled bool) {
	for _, l := range a.layouts {
		if g, pooled = l.Group(addr); pooled {
			return l.Members[g], g, true
		}
	}
	return nil, g, false
}

// uplink returns the interface with a network that has an address.
func (a *adapter) uplink(addr netip.Addr) (uplink, bool) {
	i := slices.IndexFunc(a.uplinks, func(u uplink) bool { return u.network.Contains(addr) })
	if i < 0 {
		return uplink{}, false
	}
	return a.uplinks[i], true
}

// uplinksOf are the networks to which hosts may be attached.
func uplinksOf(set *messages.InterfaceSet) (all []uplink) {
	for _, i := range set.GetInterfaces() {
		if kind := i.GetKind(); kind == messages.InterfaceKind_INTERFACE_POD || kind == messages.InterfaceKind_INTERFACE_INTERNAL || !i.GetAdminUp() {
			continue
		}
		for _, p := range rule.Networks(i.GetAddresses()) {
			if !p.IsSingleIP() {
				all = append(all, uplink{i.GetSwIfIndex(), i.GetName(), p.Masked()})
			}
		}
	}
	return all
}

func (a *adapter) Settle(s render.Surroundings) {
	a.phase = s.Phase
	again := false
	if s.Set != nil && s.Set != a.set {
		for _, index := range render.Replaced(a.set, s.Set) {
			maps.DeleteFunc(a.have, func(k vrrp.Key, _ vrrp.Held) bool { return k.Interface == index })
		}
		a.set = s.Set
		uplinks := uplinksOf(s.Set)
		again = !slices.Equal(uplinks, a.uplinks)
		a.uplinks = uplinks
	}
	if s.Begin != nil {
		node, pools := s.Begin.GetNode().GetNode(), s.Begin.GetAddressPools()
		if node != a.node {
			a.claims.Change(slices.Collect(a.claims.Keys()), func() { a.node = node })
		}
		if !slices.EqualFunc(pools, a.pools, func(x, y *messages.AddressPool) bool { return proto.Equal(x, y) }) {
			a.pools, a.layouts, again = pools, layouts(pools), true
		}
	}
	if again {
		for _, name := range slices.Sorted(maps.Keys(a.services)) {
			a.plan(name)
		}
		a.claims.Concern(slices.Collect(maps.Keys(a.services))...)
	}
}

// layouts are those of pools. The source has checked their ranges.
func layouts(pools []*messages.AddressPool) (all []*addresses.Layout) {
	for _, m := range pools {
		p := &addresses.Pool{Name: m.GetName(), Avoid: m.GetAvoid(), First: uint8(m.GetFirstRouter()), Last: uint8(m.GetLastRouter())} //nolint:gosec // checked
		for _, text := range m.GetRanges() {
			if r, err := addresses.ParseRange(text); err == nil {
				p.Ranges = append(p.Ranges, r)
			}
		}
		all = append(all, p.Lay())
	}
	return all
}

// Reader satisfies render.Kind.
func (a *adapter) Reader(bool) func(context.Context, link.Caller) (any, error) {
	made := a.config.Made
	return func(ctx context.Context, vpp link.Caller) (any, error) {
		all, err := vrrp.Read(ctx, vpp, func(k vrrp.Key) bool { return made(owned.RouterOf(k.Interface, k.ID, k.IPv6)) })
		if errors.Is(err, link.ErrUnsupported) {
			return map[vrrp.Key]vrrp.Held(nil), nil
		}
		return all, err
	}
}

func (a *adapter) Adopt(reading any, known bool) (drifted []vrrp.Key, _ int) {
	now := reading.(map[vrrp.Key]vrrp.Held) //nolint:forcetypeassert // Reader made it
	before := a.have
	a.unsupported, a.looked = now == nil, true
	keys := slices.AppendSeq(slices.Collect(maps.Keys(now)), a.claims.Keys())
	a.claims.Change(slices.AppendSeq(keys, maps.Keys(before)), func() { a.have = now })
	if known {
		drifted = slices.DeleteFunc(render.Drifted(before, now, vrrp.Held.Same), func(k vrrp.Key) bool { return a.doubtful[k] })
	}
	clear(a.doubtful)
	return drifted, 0
}

// Forget satisfies render.Kind. Another VPP has no rows yet, and nothing asks its node to leave.
func (a *adapter) Forget(restarted bool) {
	if a.have = nil; restarted {
		a.serving, a.left, a.emptied = undecided, false, true
	}
}

func (a *adapter) Next(k vrrp.Key) (s render.Step) {
	var held *vrrp.Held
	if h, is := a.have[k]; is {
		held = &h
	}
	router, wanted := a.claims.Desired(k)
	if s.Wanted = wanted; a.serving == undecided || a.unsupported {
		return s // a group of an earlier run goes on
	}
	want := &router
	if !wanted {
		want = nil
	}
	ops := vrrp.Diff(k, held, want)
	s.Cost, s.Ops = len(ops), render.Boxed(ops)
	if wanted && a.phase < render.Rendered || !wanted && a.phase < render.Passed && len(a.claims.At(k)) == 0 {
		s.Gate = render.Closed // a service that has not rendered may claim the group, too
	}
	return s
}

func (*adapter) Work(steps []render.Chosen[vrrp.Key]) render.Work[vrrp.Key] {
	var ops []vrrp.Op
	for _, s := range steps {
		ops = render.Unboxed(ops, s.Ops)
	}
	return render.Batch(ops, vrrp.Apply, func(op vrrp.Op) (vrrp.Key, bool) { return op.Key, false })
}

func (a *adapter) Record(results []render.Result[vrrp.Key]) {
	a.looked = true
	for _, r := range results {
		op, _ := r.Op.(vrrp.Op)
		switch {
		case r.Err != nil:
			a.doubtful[op.Key] = a.doubtful[op.Key] || r.Unknown
		case op.Verb == vrrp.Delete:
			delete(a.have, op.Key)
		default:
			a.have[op.Key] = vrrp.Held{Router: op.Router, State: vrrp.Backup, Ours: true}
		}
	}
}

func (a *adapter) State() render.State[vrrp.Key] {
	held := func(yield func(vrrp.Key) bool) {
		for k, h := range a.have {
			if h.Ours && !yield(k) {
				return
			}
		}
	}
	owns := 0
	for _, h := range a.have {
		if h.Ours && h.Owner() {
			owns++
		}
	}
	state := render.State[vrrp.Key]{Settings: true, Held: held, Summary: func() string {
		return fmt.Sprintf("%d virtual routers, owner of %d", len(a.have), owns)
	}}
	if a.unsupported {
		state.Warning = noPlugin
	}
	return state
}

// noPlugin is why no address is answered.
const noPlugin = "VPP's plugin vrrp is not loaded: VPP answers for no load-balancer address"

// Acknowledge satisfies render.Kind: it reports addresses of pools for which VPP cannot answer.
func (a *adapter) Acknowledge(ack *messages.RenderAck, name string, _ bool) {
	s := a.services[name]
	if s == nil {
		return
	}
	for _, addr := range slices.SortedFunc(maps.Keys(s.serves), netip.Addr.Compare) {
		_, _, pooled := a.group(addr)
		if _, is := a.uplink(addr); pooled && !is && a.set != nil {
			ack.Approximations = append(ack.Approximations, &messages.Approximation{
				Service: name, Frontend: addr.String(), Wanted: "answer ARP or ND", Rendered: "no answer",
				Why: "no interface of VPP has a network with the address: routers must have a route to this node",
			})
		}
	}
}

// Rows satisfies render.Kind: operators see virtual routers as addresses, not as rows.
func (*adapter) Rows(string, bool) (wanted, held []*messages.RowState) { return nil, nil }

func (a *adapter) Diff(reading any, sweep bool) (operations []render.Difference) {
	now, want := reading.(map[vrrp.Key]vrrp.Held), a.claims.All() //nolint:forcetypeassert // Reader made it
	if a.serving == undecided {
		return nil
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(now))
	slices.SortFunc(keys, vrrp.Key.Compare)
	for _, k := range slices.Compact(keys) {
		var held *vrrp.Held
		if h, is := now[k]; is {
			held = &h
		}
		var wanted *vrrp.Router
		if w, is := want[k]; is {
			wanted = &w
		} else if !sweep {
			continue
		}
		for _, op := range vrrp.Diff(k, held, wanted) {
			operations = append(operations, render.Difference{Object: k.String(), Missing: held == nil, Text: op.Describe()})
		}
	}
	return operations
}

// remove removes the agent's virtual routers.
func remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	all, err := vrrp.Read(ctx, vpp, func(k vrrp.Key) bool { return r.Owned.Has(owned.RouterOf(k.Interface, k.ID, k.IPv6)) })
	if err != nil {
		return err
	}
	var ops []vrrp.Op
	for _, k := range slices.SortedFunc(maps.Keys(all), vrrp.Key.Compare) {
		if h := all[k]; !h.Ours {
			r.Keep("virtual router " + k.String())
		} else {
			ops = append(ops, vrrp.Diff(k, &h, nil)...)
		}
	}
	return render.CarryOut(ctx, vpp, r, ops, vrrp.Apply)
}
