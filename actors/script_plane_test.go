package actors_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// plane is the VPP of a story, to which packets are sent.
type plane interface {
	// addInterface adds an interface, up, without address and routes, and returns its name in
	// VPP.
	addInterface(name string) (string, error)
	// behind gives an interface an address of VPP, "ip/len", or a host behind it, "ip".
	behind(name, address string) error
	// unreachable adds a route that answers with ICMP.
	unreachable(network netip.Prefix) error
	// send sends the first packet of a TCP connection; fate is "" where it has left VPP, with
	// the addresses of left.
	send(in string, from, to netip.AddrPort) (left simulator.Verdict, fate string)
	// crash ends VPP, and starts it again, empty, when the end was noticed.
	crash(noticed func())
	// dial opens a TCP connection.
	dial(in string, from, to netip.AddrPort) (connection, error)
}

// connection is an open one.
type connection interface {
	// leads returns the endpoint that it leads to.
	leads() netip.AddrPort
	// Exchange sends a packet and its answer.
	Exchange() error
}

// simulated is the plane of the simulator.
type simulated struct{ vpp *simulator.VPP }

func (p simulated) addInterface(name string) (string, error) {
	_, err := p.vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Up: true})
	return name, err
}

func (p simulated) behind(name, address string) error {
	if prefix, err := netip.ParsePrefix(address); err == nil {
		return p.vpp.AddAddress(name, prefix)
	}
	host := netip.MustParseAddr(address)
	return p.vpp.AddRoute(simulator.Route{Prefix: netip.PrefixFrom(host, host.BitLen()), NextHop: host, Interface: name})
}

func (p simulated) unreachable(network netip.Prefix) error {
	return p.vpp.AddRoute(simulator.Route{Prefix: network, Action: simulator.RouteReject})
}

func (p simulated) send(in string, from, to netip.AddrPort) (left simulator.Verdict, fate string) {
	v := p.vpp.Send(simulator.Packet{In: in, Src: from, Dst: to, Proto: simulator.ProtoTCP})
	if v.Action != simulator.Delivered {
		fate = v.Action.String()
	}
	return v, fate
}

func (p simulated) dial(in string, from, to netip.AddrPort) (connection, error) {
	c, err := p.vpp.Dial(simulator.Packet{In: in, Src: from, Dst: to, Proto: simulator.ProtoTCP})
	return dialled{c}, err
}

func (p simulated) crash(noticed func()) {
	p.vpp.Crash() // it restarts by itself
	noticed()
}

// dialled is a connection through the simulator.
type dialled struct{ *simulator.Connection }

func (c dialled) leads() netip.AddrPort { return c.Opened().Dst }

// tangible is the plane of a real VPP: interfaces of its packet generator under the names of the
// stories.
type tangible struct {
	testing.TB
	vpp       *realvpp.Process
	generator *realvpp.Generator
	ports     map[string]uint32
	names     []string // of the ports, in their order
	ip6       bool     // the interfaces pass packets of IPv6
	id        uint64
}

// TCP flags, as on the wire.
const (
	flagSYN = 0x02
	flagACK = 0x10
)

// furnish gives a real VPP the interfaces, addresses and routes of probe.Topology, or with ip6 of
// probe.DualTopology.
func furnish(t testing.TB, vpp *realvpp.Process, ip6 bool) *tangible {
	p := &tangible{TB: t, vpp: vpp, generator: realvpp.NewGenerator(t, vpp), ports: map[string]uint32{}, ip6: ip6}
	uplink, _ := p.addInterface("uplink0")
	p.generator.Command(t, fmt.Sprintf("set interface ip address %s 192.168.16.1/24", uplink))
	p.generator.Command(t, "ip route add 0.0.0.0/0 via 192.168.16.254 "+uplink)
	for i := 2; i <= 5; i++ {
		pod, _ := p.addInterface(fmt.Sprintf("pod%d", i))
		p.generator.Command(t, fmt.Sprintf("set interface unnumbered %s use %s", pod, uplink))
		p.generator.Command(t, fmt.Sprintf("ip route add 10.1.1.%d/32 via 10.1.1.%d %s", i, i, pod))
		if ip6 {
			p.generator.Command(t, "enable ip6 interface "+pod)
			p.generator.Command(t, fmt.Sprintf("ip route add %s%d/128 via %s", probe.PodIPv6, i, pod))
		}
	}
	if ip6 {
		p.generator.Command(t, fmt.Sprintf("set interface ip address %s %s/64", uplink, probe.UplinkIPv6))
		p.generator.Command(t, "ip route add ::/0 via "+uplink)
	}
	return p
}

func (p *tangible) crash(noticed func()) {
	p.vpp.Crash(p)
	noticed()
	p.vpp.Restart(p)
	*p = *furnish(p.TB, p.vpp, p.ip6)
}

func (p *tangible) addInterface(name string) (string, error) {
	inside := fmt.Sprintf("pg%d", len(p.ports))
	p.ports[name], p.names = p.generator.Port(p, p.ip6), append(p.names, name)
	p.generator.Command(p, "set interface state "+inside+" up")
	return inside, nil
}

func (p *tangible) behind(name, address string) error {
	index := fmt.Sprintf("pg%d", slices.Index(p.names, name))
	prefix, err := netip.ParsePrefix(address)
	switch host, _ := netip.ParseAddr(address); {
	case err == nil && prefix.Addr().Is6() != p.ip6: // its packets are of the other family
	case err == nil:
		p.generator.Command(p, fmt.Sprintf("set interface ip address %s %s", index, address))
	case host.Is6() == p.ip6:
		p.generator.Command(p, fmt.Sprintf("ip route add %s/%d via %s", host, host.BitLen(), index))
	}
	return nil
}

func (p *tangible) unreachable(network netip.Prefix) error {
	path := fib_types.FibPath{SwIfIndex: ^uint32(0), Type: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH}
	if network.Addr().Is6() {
		path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	route := &ip.IPRouteAddDel{IsAdd: true, Route: ip.IPRoute{Prefix: forwarding.Prefix(network), NPaths: 1, Paths: []fib_types.FibPath{path}}}
	if retval := realvpp.NewRaw(p, p.vpp.Socket()).Retval(p, route); retval != 0 {
		return fmt.Errorf("VPP returned %d", retval)
	}
	return nil
}

// exchange sends one packet.
func (p *tangible) exchange(port uint32, from, to netip.AddrPort, flags uint8) (left realvpp.Packet, delivered bool) {
	p.id++
	out := p.generator.Exchange(p, []realvpp.Packet{{Port: port, ID: p.id, Src: from, Dst: to, Proto: rule.TCP, Flags: flags}})
	left, delivered = out[p.id]
	return left, delivered
}

// vanished is the fate of a packet that VPP has not sent on. From outside it looks the same whether
// VPP dropped it, answered with an ICMP error, or kept it for itself.
const vanished = "vanished"

func (p *tangible) send(in string, from, to netip.AddrPort) (simulator.Verdict, string) {
	left, delivered := p.exchange(p.ports[in], from, to, flagSYN)
	if !delivered {
		return simulator.Verdict{}, vanished
	}
	return simulator.Verdict{Src: left.Src, Dst: left.Dst}, ""
}

func (p *tangible) dial(in string, from, to netip.AddrPort) (connection, error) {
	c := &path{plane: p, port: p.ports[in], from: from, to: to}
	return c, errors.Join(c.pass(flagSYN), c.Exchange())
}

// path is a connection through a real VPP.
type path struct {
	plane    *tangible
	port     uint32
	from, to netip.AddrPort
	peer     netip.AddrPort
}

func (c *path) leads() netip.AddrPort { return c.peer }

func (c *path) Exchange() error { return c.pass(flagACK) }

// pass sends a packet and its answer; both must get to the ends of the connection.
func (c *path) pass(flags uint8) error {
	there, delivered := c.plane.exchange(c.port, c.from, c.to, flags)
	switch {
	case !delivered:
		return errors.New("the request did not leave VPP")
	case c.peer.IsValid() && there.Dst != c.peer:
		return fmt.Errorf("the request got to %s, but the connection is with %s", there.Dst, c.peer)
	}
	c.peer = there.Dst
	back, delivered := c.plane.exchange(there.Port, there.Dst, there.Src, flags|flagACK)
	if !delivered || back.Src != c.to || back.Dst != c.from || back.Port != c.port {
		return fmt.Errorf("the answer left VPP: %t, %s > %s; the client expects %s > %s", delivered, back.Src, back.Dst, c.to, c.from)
	}
	return nil
}
