package simulator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Addresses of the rig: a client pod, two backend pods, a host outside, and the addresses that VPP
// serves.
var (
	clientPod = netip.MustParseAddr("10.1.1.2")
	backendA  = netip.MustParseAddr("10.1.2.2")
	backendB  = netip.MustParseAddr("10.1.3.2")
	outsider  = netip.MustParseAddr("192.168.50.2")
	nodeIP    = netip.MustParseAddr("192.168.50.1")
	vip       = netip.MustParseAddr("10.96.0.1")
	otherVIP  = netip.MustParseAddr("10.96.0.2")
	twiceIP   = netip.MustParseAddr("10.255.255.254")
)

// at is shorthand for an endpoint.
func at(addr netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(addr, port) }

// rig is a node with three pods and an uplink, configured through the socket.
type rig struct {
	t testing.TB
	*VPP
	conn  api.Connection
	clock *fakeClock
}

// fakeClock is a clock that moves only when told to.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time { return c.now }

// advance moves the clock of a rig.
func (r *rig) advance(d time.Duration) {
	r.t.Helper()
	if err := r.with(func(*model.Model) error { r.clock.now = r.clock.now.Add(d); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

// bareRig returns the topology without NAT.
func bareRig(t testing.TB, opts Options) *rig {
	t.Helper()
	clock := &fakeClock{now: time.Unix(1_700_000_000, 0)}
	if opts.Clock == nil {
		opts.Clock = clock.Now
	}
	opts.OnBoot = buildTopology(t)
	v := listen(t, opts)
	return &rig{t: t, VPP: v, conn: connect(t, v), clock: clock}
}

// buildTopology is the CNI of the rig.
func buildTopology(t testing.TB) func(*VPP) {
	return func(v *VPP) {
		check := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		for i, addr := range []netip.Addr{clientPod, backendA, backendB} {
			_, err := v.AddPod(fmt.Sprintf("p%d", i+1), addr)
			check(err)
		}
		_, err := v.AddInterface("host-up", []netip.Prefix{netip.PrefixFrom(nodeIP, 24)}, true)
		check(err)
		check(v.DefaultRoute("host-up", outsider))
	}
}

// newRig returns the topology with NAT as an agent sets it up: forwarding on, a twice-nat address,
// both roles on every interface.
func newRig(t testing.TB) *rig {
	t.Helper()
	r := bareRig(t, Options{})
	r.enableNAT()
	for name := range r.Interfaces() {
		if name != "local0" {
			r.role(name, nat_types.NAT_IS_INSIDE)
			r.role(name, nat_types.NAT_IS_OUTSIDE)
		}
	}
	return r
}

func (r *rig) enableNAT() {
	r.t.Helper()
	r.ok(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
	r.ok(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	r.ok(&nat44_ed.Nat44AddDelAddressRange{
		FirstIPAddress: twiceIP.As4(), LastIPAddress: twiceIP.As4(), VrfID: vnet.None,
		IsAdd: true, Flags: nat_types.NAT_IS_TWICE_NAT,
	})
}

// index returns the sw_if_index of an interface.
func (r *rig) index(name string) interface_types.InterfaceIndex {
	r.t.Helper()
	i, ok := r.Interfaces()[name]
	if !ok {
		r.t.Fatalf("no interface %s", name)
	}
	return interface_types.InterfaceIndex(i)
}

func (r *rig) role(name string, role nat_types.NatConfigFlags) {
	r.t.Helper()
	r.ok(&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, Flags: role, SwIfIndex: r.index(name)})
}

// call sends a request over the socket and returns the return code.
func (r *rig) call(req api.Message) int32 {
	r.t.Helper()
	m := r.catalog.Named(req.GetMessageName())
	reply := model.RetvalReply(m.Reply, 0)
	if err := r.conn.Invoke(timeout(r.t), req, reply); err != nil {
		r.t.Fatalf("%s: %v", m.Name, err)
	}
	code, _ := retvalOf(reply)
	return code
}

// ok sends a request that must succeed.
func (r *rig) ok(req api.Message) {
	r.t.Helper()
	if code := r.call(req); code != 0 {
		r.t.Fatalf("%s: retval %d", req.GetMessageName(), code)
	}
}

// lb returns a load-balancing row for the rig's TCP service.
func lb(external netip.AddrPort, flags nat_types.NatConfigFlags, weight uint8, backends ...netip.AddrPort) *nat44_ed.Nat44AddDelLbStaticMapping {
	row := &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: flags | nat_types.NAT_IS_OUT2IN_ONLY,
		ExternalAddr: external.Addr().As4(), ExternalPort: external.Port(), Protocol: ProtoTCP, Tag: "test",
	}
	for _, b := range backends {
		row.Locals = append(row.Locals, nat44_ed.Nat44LbAddrPort{Addr: b.Addr().As4(), Port: b.Port(), Probability: weight})
	}
	return row
}

// local returns the message that adds or deletes one backend of a row.
func local(add bool, external, backend netip.AddrPort, weight uint8) *nat44_ed.Nat44LbStaticMappingAddDelLocal {
	return &nat44_ed.Nat44LbStaticMappingAddDelLocal{
		IsAdd: add, ExternalAddr: external.Addr().As4(), ExternalPort: external.Port(), Protocol: ProtoTCP,
		Local: nat44_ed.Nat44LbAddrPort{Addr: backend.Addr().As4(), Port: backend.Port(), Probability: weight},
	}
}

// unrow returns the message that deletes a row.
func unrow(external netip.AddrPort) *nat44_ed.Nat44AddDelLbStaticMapping {
	return &nat44_ed.Nat44AddDelLbStaticMapping{
		Flags:        nat_types.NAT_IS_OUT2IN_ONLY,
		ExternalAddr: external.Addr().As4(), ExternalPort: external.Port(), Protocol: ProtoTCP,
	}
}

// tcp is a SYN from a pod or the outside host.
func tcp(from netip.Addr, port uint16, to netip.AddrPort) Packet {
	in := map[netip.Addr]string{clientPod: "p1", backendA: "p2", backendB: "p3", outsider: "host-up"}[from]
	return Packet{In: in, Src: at(from, port), Dst: to, Proto: ProtoTCP, Flags: SYN}
}

// dial opens a connection that must work.
func (r *rig) dial(p Packet) *Connection {
	r.t.Helper()
	c, err := r.Dial(p)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// simpleVIP is the external address of the simple mappings of these tests.
var simpleVIP = netip.MustParseAddr("10.96.0.9")

// noIf is the "no interface" index.
const noIf = interface_types.InterfaceIndex(vnet.None)

// simple returns a message for a simple mapping of 10.96.0.9:80/tcp.
func simple(add bool, flags nat_types.NatConfigFlags, backend string) *nat44_ed.Nat44AddDelStaticMappingV2 {
	b := map[string][4]byte{"a": backendA.As4(), "b": backendB.As4()}[backend]
	return &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: add, Flags: flags, ExternalIPAddress: [4]byte{10, 96, 0, 9}, ExternalPort: 80, Protocol: ProtoTCP,
		LocalIPAddress: b, LocalPort: 8080, ExternalSwIfIndex: noIf,
	}
}

// identity returns a message for an identity mapping of 10.0.0.7:4789/udp.
func identity(add bool, flags nat_types.NatConfigFlags, vrf uint32) *nat44_ed.Nat44AddDelIdentityMapping {
	return &nat44_ed.Nat44AddDelIdentityMapping{
		IsAdd: add, Flags: flags, IPAddress: [4]byte{10, 0, 0, 7}, Port: 4789, Protocol: ProtoUDP,
		SwIfIndex: noIf, VrfID: vrf,
	}
}

func role(add bool, flags nat_types.NatConfigFlags, index uint32) *nat44_ed.Nat44InterfaceAddDelFeature {
	return &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: add, Flags: flags, SwIfIndex: interface_types.InterfaceIndex(index)}
}

func address(add bool, flags nat_types.NatConfigFlags, from, to byte) *nat44_ed.Nat44AddDelAddressRange {
	return &nat44_ed.Nat44AddDelAddressRange{
		IsAdd: add, Flags: flags, VrfID: vnet.None,
		FirstIPAddress: [4]byte{172, 16, 0, from}, LastIPAddress: [4]byte{172, 16, 0, to},
	}
}

func enable(on bool, flags nat44_ed.Nat44ConfigFlags) *nat44_ed.Nat44EdPluginEnableDisable {
	return &nat44_ed.Nat44EdPluginEnableDisable{Enable: on, Flags: flags}
}
