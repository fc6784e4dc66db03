package nat44

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// model is a small semantic model of the NAT44-ED plugin of VPP 25.10: its state, its answers, and
// its crashes. It is a link.Caller. vpp/simulator is the full one; this one exists so that the pure
// core is tested against rules that are written down beside it, message by message.
type model struct {
	enabled    bool
	sessions   uint32
	forwarding bool
	workers    int // that do NAT; 0 = VPP has at most one
	timeouts   nat_types.NatTimeouts
	twice      []netip.Addr
	roles      map[uint32]Roles
	output     map[uint32]bool
	rows       map[rule.Key]*modelRow
	static     map[rule.Key]string
	// received are the addresses that NAT44 has made VPP's own; above are the better routes of
	// other sources, by the id of the source.
	received map[netip.Addr]bool
	above    map[netip.Addr]uint8

	// interfaces that exist; nil = all.
	interfaces map[uint32]bool
	// fault decides the fate of a message before it is executed.
	fault func(api.Message) error
	// after is called after every message that was carried out.
	after func(api.Message)
	// died says what killed it.
	died string
	// count counts the messages that change something.
	count int
}

// modelRow is an LB mapping as VPP keeps it.
type modelRow struct {
	flags    nat_types.NatConfigFlags
	affinity uint32
	tag      string
	locals   []nat44_ed.Nat44LbAddrPort
	// free are the places in locals that were deleted; VPP's pool hands out the last one first.
	free []int
}

// live returns the entries in VPP's order.
func (r *modelRow) live() []nat44_ed.Nat44LbAddrPort {
	all := make([]nat44_ed.Nat44LbAddrPort, 0, len(r.locals))
	for i, l := range r.locals {
		if !slices.Contains(r.free, i) {
			all = append(all, l)
		}
	}
	return all
}

func newModel() *model {
	return &model{
		roles: map[uint32]Roles{}, output: map[uint32]bool{}, rows: map[rule.Key]*modelRow{}, static: map[rule.Key]string{},
		received: map[netip.Addr]bool{}, above: map[netip.Addr]uint8{},
	}
}

var _ link.Caller = (*model)(nil)

// Do implements link.Caller.
func (m *model) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(reqs))
	for i, req := range reqs {
		results[i] = m.one(req)
	}
	return results, nil
}

func (m *model) one(req api.Message) link.Result {
	if m.fault != nil {
		if err := m.fault(req); err != nil {
			return link.Result{Err: err}
		}
	}
	if err := link.Check(req); err != nil {
		return link.Result{Err: err}
	}
	if show, ok := req.(*nat44_ed.Nat44ShowRunningConfig); ok {
		return link.Result{Reply: m.show(show)}
	}
	if lookup, ok := req.(*ip.IPRouteLookupV2); ok {
		return m.lookup(lookup)
	}
	m.count++
	retval := m.execute(req)
	m.checkAlive()
	if m.after != nil {
		m.after(req)
	}
	if retval != 0 {
		return link.Result{Err: &link.RetvalError{Message: req.GetMessageName(), Retval: retval}}
	}
	return link.Result{}
}

func (m *model) show(*nat44_ed.Nat44ShowRunningConfig) api.Message {
	return &nat44_ed.Nat44ShowRunningConfigReply{Sessions: m.sessions, ForwardingEnabled: m.forwarding, Timeouts: m.timeouts}
}

// Ids of sources of the model's FIB.
const (
	fromInterface = 4
	fromNAT       = 24
	fromOthers    = 26
)

// lookup returns the best route for exactly one address.
func (m *model) lookup(r *ip.IPRouteLookupV2) link.Result {
	addr := netip.AddrFrom4(r.Prefix.Address.Un.GetIP4())
	source, found := m.above[addr]
	if !found && m.received[addr] {
		source, found = fromNAT, true
	}
	if r.Exact != 1 || r.Prefix.Len != hostBits || !found {
		return link.Result{Err: &link.RetvalError{Message: r.GetMessageName(), Retval: retNoSuchEntry}}
	}
	return link.Result{Reply: &ip.IPRouteLookupV2Reply{Route: ip.IPRouteV2{Prefix: r.Prefix, Src: source}}}
}

// withdraw removes NAT44's entry of an address; to remove the entry of another source would cut off
// the operator's network.
func (m *model) withdraw(r *ip.IPRouteAddDelV2) int32 {
	if r.IsAdd || r.Route.Src != fromNAT || r.Route.Prefix.Len != hostBits {
		m.died = fmt.Sprintf("a route of another client was changed: %+v", r.Route)
	}
	delete(m.received, netip.AddrFrom4(r.Route.Prefix.Address.Un.GetIP4()))
	return 0
}

// receive models NAT44's entries in the FIB: a new outside interface makes every external address
// one of VPP, the loss of one takes them back.
func (m *model) receive(on bool) {
	for key := range m.rows {
		m.received[key.Addr] = on
	}
	for key := range m.static {
		m.received[key.Addr] = on
	}
	maps.DeleteFunc(m.received, func(_ netip.Addr, on bool) bool { return !on })
}

func (m *model) execute(req api.Message) int32 {
	switch r := req.(type) {
	case *ip.IPRouteAddDelV2:
		return m.withdraw(r)
	case *nat44_ed.Nat44EdPluginEnableDisable:
		return m.enable(r)
	case *nat44_ed.Nat44ForwardingEnableDisable:
		m.forwarding = r.Enable
		return 0
	case *nat44_ed.NatSetTimeouts:
		m.timeouts = nat_types.NatTimeouts{UDP: r.UDP, TCPEstablished: r.TCPEstablished, TCPTransitory: r.TCPTransitory, ICMP: r.ICMP}
		return 0
	case *nat44_ed.Nat44InterfaceAddDelFeature:
		if index := uint32(r.SwIfIndex); m.interfaces != nil && !m.interfaces[index] {
			return retNoInterface
		}
	}
	if !m.enabled {
		return retUnsupported
	}
	switch r := req.(type) {
	case *nat44_ed.Nat44AddDelAddressRange:
		return m.address(r)
	case *nat44_ed.Nat44InterfaceAddDelFeature:
		return m.role(r)
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		return m.mapping(r)
	case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
		return m.local(r)
	default:
		panic(fmt.Sprintf("the model does not know %T", req))
	}
}

func (m *model) enable(r *nat44_ed.Nat44EdPluginEnableDisable) int32 {
	if m.enabled {
		return retAlreadyEnabled
	}
	m.enabled, m.forwarding = true, false
	m.sessions = cmp.Or(r.Sessions, 64512)
	m.timeouts = nat_types.NatTimeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}
	return 0
}

func (m *model) address(r *nat44_ed.Nat44AddDelAddressRange) int32 {
	addr := netip.AddrFrom4(r.FirstIPAddress)
	at := slices.Index(m.twice, addr)
	switch {
	case r.IsAdd && at >= 0:
		return retValueExist
	case r.IsAdd:
		m.twice = append(m.twice, addr)
	case at < 0:
		return retNoSuchEntry
	default:
		m.twice = slices.Delete(m.twice, at, at+1)
	}
	return 0
}

// role models the quirk that the deletion of a role which the interface does not have deletes the
// other one.
func (m *model) role(r *nat44_ed.Nat44InterfaceAddDelFeature) int32 {
	index, role := uint32(r.SwIfIndex), Outside
	if r.Flags&nat_types.NAT_IS_INSIDE != 0 {
		role = Inside
	}
	if had := m.roles[index]&Outside != 0; role == Outside && had != r.IsAdd && !m.output[index] {
		defer m.receive(r.IsAdd)
	}
	switch {
	case m.output[index]:
		return map[bool]int32{true: retValueExist, false: retNoSuchEntry}[r.IsAdd]
	case r.IsAdd:
		m.roles[index] |= role
	case m.roles[index] == 0:
		return retNoSuchEntry
	case m.roles[index] == Both:
		m.roles[index] &^= role
	default:
		if m.roles[index] != role {
			m.died = "the wrong role of an interface was deleted"
		}
		delete(m.roles, index)
	}
	return 0
}

func (m *model) mapping(r *nat44_ed.Nat44AddDelLbStaticMapping) int32 {
	key := rule.Key{Addr: netip.AddrFrom4(r.ExternalAddr), Port: r.ExternalPort, Proto: r.Protocol}
	row, found := m.rows[key]
	_, simple := m.static[key]
	switch {
	case r.IsAdd && (found || simple):
		return retValueExist
	case r.IsAdd && len(r.Locals) < 2:
		return retInvalidValue
	case r.IsAdd:
		m.rows[key] = &modelRow{r.Flags, r.Affinity, r.Tag, slices.Clone(r.Locals), nil}
	case simple:
		return retInvalidValue
	case !found:
		return retNoSuchEntry
	default:
		if (row.flags^r.Flags)&nat_types.NAT_IS_OUT2IN_ONLY != 0 {
			m.died = "a row was deleted without its flag out2in-only"
		}
		delete(m.rows, key)
	}
	return 0
}

func (m *model) local(r *nat44_ed.Nat44LbStaticMappingAddDelLocal) int32 {
	key := rule.Key{Addr: netip.AddrFrom4(r.ExternalAddr), Port: r.ExternalPort, Proto: r.Protocol}
	row, found := m.rows[key]
	if _, simple := m.static[key]; simple {
		return retInvalidValue
	}
	if !found {
		return retNoSuchEntry
	}
	at := -1
	for i, l := range row.locals {
		if !slices.Contains(row.free, i) && l.Addr == r.Local.Addr && l.Port == r.Local.Port && l.VrfID == r.Local.VrfID {
			at = i
		}
	}
	switch last := len(row.free) - 1; {
	case r.IsAdd && at >= 0:
		return retValueExist
	case r.IsAdd && last >= 0:
		row.locals[row.free[last]] = r.Local
		row.free = row.free[:last]
	case r.IsAdd:
		row.locals = append(row.locals, r.Local)
	case at < 0:
		return retNoSuchEntry
	case len(row.live()) < 3:
		return retUnspecified
	default:
		row.free = append(row.free, at)
	}
	return 0
}

// checkAlive finds states that crash VPP at the next packet.
func (m *model) checkAlive() {
	affinity := false
	for key, row := range m.rows {
		affinity = affinity || row.affinity > 0
		if why := deadly(row.live()); why != "" {
			m.died = fmt.Sprintf("row %s: %s", key, why)
		}
	}
	for index, roles := range m.roles {
		if affinity && roles == Inside {
			m.died = fmt.Sprintf("interface %d is inside only and a row has affinity", index)
		}
	}
}

// Dump implements link.Caller.
func (m *model) Dump(_ context.Context, req api.Message, each func(api.Message)) error {
	if m.fault != nil {
		if err := m.fault(req); err != nil {
			return err
		}
	}
	switch r := req.(type) {
	case *fib.FibSourceDump:
		for id, name := range map[uint8]string{fromInterface: interfaceSource, fromNAT: natSource, fromOthers: "others"} {
			each(&fib.FibSourceDetails{Src: fib.FibSource{ID: id, Name: name}})
		}
	case *ip.IPRouteV2Dump:
		for addr := range m.received {
			if _, hidden := m.above[addr]; !hidden && r.Src == fromNAT {
				each(&ip.IPRouteV2Details{Route: ip.IPRouteV2{Prefix: forwarding.Prefix(host(addr)), Src: fromNAT}})
			}
		}
	case *nat44_ed.Nat44InterfaceDump:
		for index, roles := range m.roles {
			each(&nat44_ed.Nat44InterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(index), Flags: nat_types.NatConfigFlags(roles)})
		}
	case *nat44_ed.Nat44EdOutputInterfaceGet:
		for index := range m.output {
			each(&nat44_ed.Nat44EdOutputInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(index)})
		}
	case *nat44_ed.Nat44AddressDump:
		for _, addr := range m.twice {
			each(&nat44_ed.Nat44AddressDetails{IPAddress: addr.As4(), Flags: nat_types.NAT_IS_TWICE_NAT, VrfID: anyVRF})
		}
	case *nat44_ed.Nat44StaticMappingDump:
		for _, key := range slices.SortedFunc(maps.Keys(m.static), rule.Key.Compare) {
			each(&nat44_ed.Nat44StaticMappingDetails{
				ExternalIPAddress: key.Addr.As4(), ExternalPort: key.Port, Protocol: key.Proto, Tag: m.static[key],
			})
		}
	// it has no sessions, and the default table
	case *nat44_ed.Nat44IdentityMappingDump, *nat44_ed.Nat44UserDump, *ip.IPTableDump:
	case *nat44_ed.NatWorkerDump:
		for n := range m.workers {
			each(&nat44_ed.NatWorkerDetails{WorkerIndex: uint32(n)})
		}
	case *nat44_ed.Nat44LbStaticMappingDump:
		for _, key := range slices.SortedFunc(maps.Keys(m.rows), rule.Key.Compare) {
			row := m.rows[key]
			each(&nat44_ed.Nat44LbStaticMappingDetails{
				ExternalAddr: key.Addr.As4(), ExternalPort: key.Port, Protocol: key.Proto, Flags: row.flags, Tag: row.tag,
				LocalNum: uint32(len(row.live())), Locals: row.live(),
			})
		}
	default:
		panic(fmt.Sprintf("the model does not know %T", req))
	}
	return nil
}

// load makes the model hold the rows.
func (m *model) load(rows ...Row) {
	for _, row := range rows {
		msg := rowMessage(Op{Verb: AddRow, Key: row.Key, Row: &row}).(*nat44_ed.Nat44AddDelLbStaticMapping)
		m.rows[row.Key] = &modelRow{msg.Flags, msg.Affinity, msg.Tag, msg.Locals, nil}
	}
}

// read is Read that fails the test.
func (m *model) read(t testing.TB) *State {
	t.Helper()
	state, err := Read(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return state
}
