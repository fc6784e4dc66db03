package nat

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

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
	n := NewPlugin(net)
	net.Watch(n)
	net.AddInterface(&vnet.Interface{Name: "local0"})
	for i, addr := range pods {
		pod := &vnet.Interface{Name: fmt.Sprintf("p%d", i+1)}
		net.AddInterface(pod)
		net.SetAdmin(pod, true)
		net.Tables[0][0].Set(netip.PrefixFrom(addr, 32), vnet.SourceAPI, []vnet.Path{{Kind: vnet.NextHop, SwIf: pod.Index, NextHop: addr, Weight: 1}})
	}
	return n
}

// cross sends a packet through NAT and the forwarding table. It returns the interface through which
// the packet leaves, none if it does not, and the answer to it.
func cross(n *Plugin, p vnet.Packet) (out uint32, back vnet.Packet) {
	t := n.Begin(p, n.net.Interface(p.InIndex))
	if !t.Input() {
		return vnet.None, vnet.Packet{}
	}
	h := n.net.Forward(t.Table(), t.Dst.Addr())
	if h.Kind != vnet.NextHop || !t.Output(h.SwIf) {
		return vnet.None, vnet.Packet{}
	}
	back = vnet.Packet{InIndex: h.SwIf, Src: t.Dst, Dst: t.Src, Proto: p.Proto}
	if p.Proto == vnet.ProtoTCP {
		back.Flags = vnet.ACK
		if p.Flags == vnet.SYN {
			back.Flags = vnet.SYN | vnet.ACK
		}
	}
	return h.SwIf, back
}

// TestOutsideInterfaceChangesTable: the FIBs of outside interfaces follow.
func TestOutsideInterfaceChangesTable(t *testing.T) {
	n := newNode(time.Now)
	n.Enable(Config{})
	loop := n.net.CreateLoopback([6]byte{})
	n.AddInterface(loop, false)
	fib := n.net.FindOrCreateFIB(0, 5)
	if code := n.net.BindTable(n.net.Interface(loop), 0, 5); code != vnet.RetOK {
		t.Fatalf("bind: retval %d", code)
	}
	if len(n.outside) != 1 || n.outside[0] != (fibCount{fib: fib, refs: 1}) {
		t.Errorf("outside FIBs %+v", n.outside)
	}
}

// TestRandomIsVPPs: the sequence of a fresh VPP.
func TestRandomIsVPPs(t *testing.T) {
	var r random
	for i, want := range []uint32{1013904223, 1196435762, 3519870697} {
		if got := r.next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

// TestRandomPort stays in range, and its low bits are as bad as VPP's.
func TestRandomPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random{seed: rapid.Uint32().Draw(t, "seed")}
		limit := rapid.Uint16().Draw(t, "limit")
		if got := r.port(limit); got > limit {
			t.Fatalf("port %d beyond %d", got, limit)
		}
		if a, b := r.next(), r.next(); a&1 == b&1 {
			t.Fatalf("the lowest bit does not alternate: %d, %d", a, b)
		}
	})
}

func TestSwapDelete(t *testing.T) {
	for at, want := range map[int][]int{0: {4, 2, 3}, 1: {1, 4, 3}, 3: {1, 2, 3}} {
		if got := swapDelete([]int{1, 2, 3, 4}, at); !slices.Equal(got, want) {
			t.Errorf("delete %d: %v, want %v", at, got, want)
		}
	}
}

// TestPickIsTotal: for every weight vector whose sum is 1..255 the choice is a backend with weight,
// and over one period of draws the shares are exact.
func TestPickIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNode(time.Now)
		n.Enable(Config{})
		weights := rapid.SliceOfN(rapid.Uint8Range(0, 50), 2, 20).Draw(t, "weights")
		sum := 0
		var locals []Backend
		for i, w := range weights {
			sum += int(w)
			locals = append(locals, Backend{At: at(backendA, uint16(i+1)), Probability: w})
		}
		if sum == 0 || sum > 255 {
			t.Skip("not a legal row")
		}
		mp := &Mapping{Flags: MapOut2inOnly, External: at(vip, 80), Proto: vnet.ProtoTCP}
		if code := n.AddLB(mp, locals); code != 0 {
			t.Fatalf("retval %d", code)
		}
		for range 200 {
			l, _ := n.pick(mp)
			if l == nil || l.Probability == 0 {
				t.Fatalf("picked %+v of %v", l, weights)
			}
		}
	})
}
