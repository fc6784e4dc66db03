package contract

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// clashVIP is a service whose only backend is backendOf.
const (
	clashVIP  = "10.96.0.1:80"
	backendOf = "10.1.0.9:8080"
)

// newClash makes a node without SNAT, with the same service over TCP and UDP.
func newClash(t *testing.T, v *rig, masquerade bool) *egress {
	t.Helper()
	e := newEgress(t, v)
	udp := e.row(clashVIP+"/UDP", nat44.SelfTwiceNAT, 0, 8080, []int{8})
	e.want.Rows[udp.Key] = udp
	e.want.MasqueradeClashes = masquerade
	e.settle(t, e.want)
	return e
}

// use sends the first packets of a connection through the service, both ways.
func (e *egress) use(proto uint8, client string) {
	e.Helper()
	for _, flags := range []uint8{syn, ack} {
		if got := e.pass(e.backends, e.backends, proto, flags, client, clashVIP); got.src.String() != client || got.dst.String() != backendOf {
			e.Errorf("through the service: %s", got)
		}
		if got := e.pass(e.backends, e.backends, proto, flags|ack, backendOf, client); got.src.String() != clashVIP {
			e.Errorf("answer of the service: %s", got)
		}
	}
}

// direct sends the first packets of a connection to the backend itself, both ways, and returns the
// address that the backend sees.
func (e *egress) direct(proto uint8, client string) (seen netip.AddrPort) {
	e.Helper()
	for _, flags := range []uint8{syn, ack} {
		got := e.pass(e.backends, e.backends, proto, flags, client, backendOf)
		if got.dst.String() != backendOf || seen.IsValid() && got.src != seen {
			e.Errorf("past the service: %s, before from %s", got, seen)
		}
		seen = got.src
		if back := e.pass(e.backends, e.backends, proto, flags|ack, backendOf, seen.String()); back.src.String() != backendOf || back.dst.String() != client {
			e.Errorf("answer past the service: %s", back)
		}
	}
	return seen
}

// clashes fails the test unless connections past the service work: from the given address where a
// session has the addresses and ports, and otherwise untouched.
func (e *egress) clashes(masquerade netip.Addr, port int) {
	e.Helper()
	for i, proto := range []uint8{rule.TCP, rule.UDP} {
		client, free := fmt.Sprintf("10.1.0.5:%d", port+i), fmt.Sprintf("10.1.0.5:%d", port+10+i)
		e.use(proto, client)
		if seen := e.direct(proto, client); seen.Addr() != masquerade {
			e.Errorf("%s is seen as %s, want %s", client, seen, masquerade)
		}
		e.use(proto, client) // both at the same time
		if seen := e.direct(proto, free); seen.String() != free {
			e.Errorf("%s is seen as %s", free, seen)
		}
	}
}

// clashCases are connections past a service, to a backend itself, from the port of a connection
// through the service.
var clashCases = []contractCase{
	{"clash/VPP drops a connection with the addresses and ports of a session", func(t *testing.T, v *rig) {
		e := newClash(t, v, false)
		for _, proto := range []uint8{rule.TCP, rule.UDP} {
			e.use(proto, "10.1.0.5:40000")
			lost := packet{
				port: e.backends, id: 1, src: netip.MustParseAddrPort("10.1.0.5:40000"), dst: netip.MustParseAddrPort(backendOf), proto: proto,
				flags: protoFlags(proto, syn),
			}
			if got, found := e.traffic.exchange(t, []packet{lost})[lost.id]; found {
				t.Errorf("past the service: %s", got)
			}
			e.direct(proto, "10.1.0.5:40001")
		}
	}},
	{"clash/VPP masquerades it where it has an address for that", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		e.plain()
		sessions := len(e.sessions())
		e.direct(rule.TCP, "10.1.0.5:39000")
		e.unchanged(e.backends, e.clients, rule.TCP, syn, "10.1.0.5:39001", "198.18.0.9:443")
		check(t, "sessions of packets past services", sessions, len(e.sessions()))
		e.clashes(e.want.TwiceNAT, 40000)
		e.plain()

		// a pod that reaches itself
		got := e.pass(e.backends, e.backends, rule.TCP, syn, "10.1.0.9:42000", clashVIP)
		if got.src.Addr() != e.want.TwiceNAT || got.dst.String() != backendOf {
			t.Errorf("hairpin: %s", got)
		}
		if back := e.pass(e.backends, e.backends, rule.TCP, syn|ack, backendOf, got.src.String()); back.src.String() != clashVIP || back.dst.String() != "10.1.0.9:42000" {
			t.Errorf("answer of a hairpin: %s", back)
		}
	}},
	{"clash/a connection through the service takes the answers of an open one past it", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		for _, proto := range []uint8{rule.TCP, rule.UDP} {
			e.direct(proto, "10.1.0.5:43000")
			e.use(proto, "10.1.0.5:43000")
			got := e.pass(e.backends, e.backends, proto, ack, backendOf, "10.1.0.5:43000")
			check(t, "source of an answer past the service", clashVIP, got.src.String())
		}
	}},
	{"clash/with dynamic SNAT its address does it, and afterwards ours again", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		before := map[rule.Key]nat44.Row{}
		for k, r := range e.want.Rows {
			before[k] = r
		}
		pool := func(want netip.Addr) {
			t.Helper()
			check(t, "pool", fmt.Sprint([]netip.Addr{want}), fmt.Sprint(v.read(t).Pool))
		}
		pool(e.want.TwiceNAT)
		e.enable("192.0.2.1")
		pool(netip.MustParseAddr("192.0.2.1"))
		e.plain()
		e.clashes(netip.MustParseAddr("192.0.2.1"), 40000)
		e.want.RetiredPool, e.want.Pool, e.want.Rows = e.want.Pool, nil, before
		e.want.Outputs[uint32(e.clients)] = false
		e.settle(t, e.want)
		pool(e.want.TwiceNAT)
		e.plain()
		e.clashes(e.want.TwiceNAT, 41000)
	}},
}
