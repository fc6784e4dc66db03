package nat

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator/fib"
	"github.com/troupe-vpp/troupe/vpp/simulator/packet"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Addresses of the tests: pods, and what VPP serves.
var (
	clientPod = netip.MustParseAddr("10.1.1.2")
	backendA  = netip.MustParseAddr("10.1.2.2")
	backendB  = netip.MustParseAddr("10.1.3.2")
	vip       = netip.MustParseAddr("10.96.0.1")
	twiceIP   = netip.MustParseAddr("10.255.255.254")
)

// at is shorthand for an endpoint.
func at(addr netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(addr, port) }

// fakeClock is a clock that moves only when told to.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time { return c.now }

// newNode returns the plugin of a VPP with local0 and an interface for each pod, numbered from 1.
func newNode(clock func() time.Time, pods ...netip.Addr) *Plugin {
	net := vnet.NewNetwork(clock)
	n := NewPlugin(net, 0)
	net.Watch(n)
	net.AddInterface(&vnet.Interface{Name: "local0"})
	for i, addr := range pods {
		pod := &vnet.Interface{Name: fmt.Sprintf("p%d", i+1)}
		net.AddInterface(pod)
		net.SetAdmin(pod, true)
		net.Tables[0][0].Set(netip.PrefixFrom(addr, 32), fib.SourceAPI, []fib.Path{{Kind: fib.NextHop, SwIf: pod.Index, NextHop: addr, Weight: 1}})
	}
	return n
}

// cross sends a packet through NAT and the forwarding table. It returns the interface through which
// the packet leaves, none if it does not, and the answer to it.
func cross(n *Plugin, p packet.Packet) (out uint32, back packet.Packet) {
	t := n.Begin(p, n.net.Interface(p.InIndex))
	if !t.Input() {
		return pool.None, packet.Packet{}
	}
	h := n.net.Forward(t.Table(), t.Dst.Addr(), t.Src.Addr())
	if h.Kind != fib.NextHop || !t.Output(h.SwIf) {
		return pool.None, packet.Packet{}
	}
	back = packet.Packet{InIndex: h.SwIf, Src: t.Dst, Dst: t.Src, Proto: p.Proto}
	if p.Proto == packet.ProtoTCP {
		back.Flags = packet.ACK
		if p.Flags == packet.SYN {
			back.Flags = packet.SYN | packet.ACK
		}
	}
	return h.SwIf, back
}

// TestOutsideInterfaceChangesTable: the FIBs of outside interfaces follow.
func TestOutsideInterfaceChangesTable(t *testing.T) {
	n := newNode(time.Now)
	n.Enable(Config{})
	loop, _ := n.net.CreateLoopback([6]byte{}, false, 0)
	n.AddInterface(loop, false)
	fib := n.net.FindOrCreateFIB(0, 5)
	if code := n.net.BindTable(n.net.Interface(loop), 0, 5); code != vnet.RetOK {
		t.Fatalf("bind: retval %d", code)
	}
	if len(n.outside) != 1 || n.outside[0] != (fibCount{fib: fib, refs: 1}) {
		t.Errorf("outside FIBs %+v", n.outside)
	}
}
