package acceptance_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// dialFrom opens a connection, or a UDP flow, from a port of a client.
func (n *node) dialFrom(client netip.AddrPort, at string, proto uint8) *simulator.Connection {
	n.Helper()
	c, err := n.VPP.Dial(simulator.Packet{In: n.places.of(client.Addr()), Src: client, Dst: netip.MustParseAddrPort(at), Proto: proto})
	if err != nil {
		n.Fatalf("%s at %s: %v", client, at, err)
	}
	return c
}

// closed closes a connection.
func (n *node) closed(c *simulator.Connection) {
	n.Helper()
	for _, flags := range []simulator.TCPFlags{simulator.FIN | simulator.ACK, simulator.ACK} {
		if err := c.ExchangeFlags(flags); err != nil {
			n.Error(err)
		}
	}
}

// sessionsAt waits until VPP has so many sessions with an endpoint.
func (n *node) sessionsAt(endpoint netip.Addr, want int) {
	n.Helper()
	n.Until("sessions", func() string {
		replies, err := n.VPP.Exec(&nat44_ed.Nat44UserSessionV3Dump{IPAddress: endpoint.As4()})
		if err != nil || len(replies) != want {
			return fmt.Sprintf("%d sessions with %s, want %d; %v", len(replies), endpoint, want, err)
		}
		return ""
	})
}

// pass lets time pass for VPP.
func (n *node) pass(d time.Duration) { n.ahead.Add(int64(d)) }

// TestEndedConnectionsHoldNothing: a pod leaves a service with TCP and UDP on one port, and another
// service with UDP on it. A new connection from the port of an ended one, and the next packet of a
// UDP flow, reach an endpoint that serves. Open connections live, and the entry goes with the last
// of them.
func TestEndedConnectionsHoldNothing(t *testing.T) {
	n := newCluster(t)
	goes, stays := localPod(0), localPod(1)
	services := map[string]*messages.Service{}
	apply := func(endpoints ...netip.Addr) {
		n.Source.Change(func(store *kube.Store) {
			for i, name := range []string{"dns", "udp"} {
				s := serviceSpec{name: name, ip: fmt.Sprint("10.96.1.", 1+i), portName: "a"}
				service, slice := s.service(), s.slice(heldPort, endpoints...)
				service.Ports = append(service.Ports, &messages.ServicePort{Name: "b", Protocol: messages.Protocol_UDP, Port: 80})
				slice.Ports = append(slice.Ports, &messages.EndpointPort{Name: "b", Protocol: messages.Protocol_UDP, Port: heldPort})
				services[name] = service
				store.Set(service, nil)
				store.Set(slice, nil)
			}
		})
		n.settled()
	}
	n.Start()
	apply(goes, stays)
	var held, ended, flows []*simulator.Connection
	port := func(i int) netip.AddrPort { return netip.AddrPortFrom(localPod(10), uint16(20000+i)) }
	for i := range 200 {
		at := fmt.Sprint("10.96.1.", 1+i%2, ":80")
		if c := n.dialFrom(port(i), at, simulator.ProtoUDP); c.Opened().Dst.Addr() == goes {
			flows = append(flows, c)
		}
		switch c := n.dialFrom(port(i), at, simulator.ProtoTCP); {
		case c.Opened().Dst.Addr() != goes:
		case i < 20:
			held = append(held, c)
		default:
			n.closed(c)
			ended = append(ended, c)
		}
	}
	n.pass(2 * time.Second)
	apply(stays)
	n.sessionsAt(goes, len(held))
	for i, c := range append(ended, flows...) {
		p := c.Opened().Packet
		if again := n.dialFrom(p.Src, p.Dst.String(), p.Proto); again.Opened().Dst.Addr() != stays {
			t.Errorf("%d of %d, protocol %d: %s reaches %s", i, len(ended)+len(flows), p.Proto, p.Src, again.Opened().Dst)
		}
	}
	for _, c := range held {
		if err := c.Exchange(); err != nil {
			t.Errorf("an open connection: %v", err)
		}
		n.closed(c)
	}
	n.pass(2 * time.Second)
	n.Until("the entry is gone", func() string {
		for _, row := range n.VPP.Rows() {
			if strings.Contains(row, goes.String()) {
				return row
			}
		}
		return ""
	})
	t.Logf("%d ended, %d UDP flows, %d held", len(ended), len(flows), len(held))
}

// TestAffinityEnds: a client chooses again when it has been silent for the time of the affinity,
// and not before.
func TestAffinityEnds(t *testing.T) {
	for _, seconds := range []uint32{10, 125, 600} {
		t.Run(fmt.Sprint(seconds, " s"), func(t *testing.T) {
			n := newCluster(t)
			s := serviceSpec{name: "sticky", ip: "10.96.1.1", affinity: seconds}
			n.apply(s, heldPort, localPod(0), localPod(1), remotePod(0), remotePod(1))
			n.Start()
			n.settled()
			homes, port := map[netip.Addr]netip.Addr{}, uint16(20000)
			round := func() (moved int) {
				for i := range 40 {
					client := netip.AddrFrom4([4]byte{198, 51, 100, byte(1 + i)})
					port++
					c := n.dialFrom(netip.AddrPortFrom(client, port), s.ip+":80", simulator.ProtoTCP)
					if home := c.Opened().Dst.Addr(); homes[client] != home {
						homes[client], moved = home, moved+1
					}
					n.closed(c)
				}
				return moved
			}
			round()
			affinity := time.Duration(seconds) * time.Second
			n.pass(affinity - 3*time.Second)
			if moved := round(); moved > 0 {
				t.Errorf("%d clients have moved early", moved)
			}
			n.pass(affinity / 2)
			if moved := round(); moved > 0 {
				t.Errorf("%d clients have moved early", moved)
			}
			if seconds > 240 {
				n.pass(240 * time.Second)
			} else {
				n.pass(affinity)
			}
			for _, pod := range []netip.Addr{localPod(0), localPod(1), remotePod(0), remotePod(1)} {
				n.sessionsAt(pod, 0)
			}
			if seconds > 240 {
				n.pass(affinity - 240*time.Second)
			}
			n.pass(2 * time.Second)
			if moved := round(); moved < 15 {
				t.Errorf("%d of 40 clients have moved", moved)
			}
		})
	}
}
