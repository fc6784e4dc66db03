package nat44_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// udpFlow is a client that keeps its port, as a resolver does: only the node can end its flow.
type udpFlow struct {
	service string
	packet  simulator.Packet
	backend netip.AddrPort
}

// flows are clients of two services with UDP ports: one whose clients keep their address, and one
// whose clients are masqueraded at an external address. The same pods serve both, each at a port of
// its own.
type flows struct {
	scene
	random      *rand.Rand
	views       map[string]*messages.ServiceView // nil = the service is gone
	generation  uint64
	open        []udpFlow
	port        uint16
	ended, kept int
}

// udpServices are the frontends of each service, and the port of its endpoints.
var udpServices = map[string]struct {
	addresses []string
	port      uint32
}{"default/dns": {[]string{"10.96.0.53"}, 5353}, "default/log": {[]string{"10.96.0.54", "203.0.113.54"}, 5514}}

// view is a service with these endpoints.
func (f *flows) view(key string, endpoints []string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: 1}
	for _, addr := range udpServices[key].addresses {
		row := &messages.Frontend{Address: addr, Port: 80, Protocol: messages.Protocol_UDP, Action: messages.Action_ACTION_REJECT}
		for _, endpoint := range endpoints {
			row.Action = messages.Action_ACTION_FORWARD
			row.Backends = append(row.Backends, &messages.Backend{Address: endpoint, Port: udpServices[key].port, Local: true})
		}
		if addr == "203.0.113.54" {
			row.MasqueradeFrom = []string{"0.0.0.0/0"}
		}
		v.Frontends = append(v.Frontends, row)
	}
	return v
}

// backends are the endpoints of a service, also of one that is gone.
func (f *flows) backends(key string) []*messages.Backend {
	if v := f.views[key]; v != nil {
		return v.GetFrontends()[0].GetBackends()
	}
	return nil
}

// shuffle changes the endpoints of both services: some, none, or no service any more.
func (f *flows) shuffle() {
	for _, key := range []string{"default/dns", "default/log"} {
		var some []string
		for _, pod := range []string{"10.1.1.2", "10.1.1.3", "10.1.1.4", "10.1.2.9", "10.1.2.10"} {
			if f.random.IntN(3) > 0 {
				some = append(some, pod)
			}
		}
		switch f.random.IntN(8) {
		case 0:
			f.views[key] = nil
		case 1:
			f.views[key] = f.view(key, nil)
		default:
			f.views[key] = f.view(key, some)
		}
	}
}

// say sends what the services want, with the list before it when the renderer is new.
func (f *flows) say(list bool) {
	f.generation++
	if list {
		begin := &messages.Begin{Generation: f.generation, Node: &messages.NodeContext{Node: probe.ThisNode()}}
		for _, key := range []string{"default/dns", "default/log"} {
			if f.views[key] != nil {
				begin.Keys, begin.Generations = append(begin.Keys, key), append(begin.Generations, f.generation)
			}
		}
		f.Tell(begin)
	}
	for _, key := range []string{"default/dns", "default/log"} {
		m := &messages.Render{Key: key, Generation: f.generation}
		if v := f.views[key]; v != nil {
			m = rendertest.RenderMessage(f.generation, v)
		}
		f.Tell(m)
	}
}

// found has the client's pod among the interfaces.
func (f *flows) found(generation uint64) { f.Tell(f.Interfaces(generation, "uplink0", "pod5")) }

// dial opens flows from a pod and from outside.
func (f *flows) dial() {
	f.Helper()
	for _, way := range []struct{ service, in, src, dst string }{
		{"default/dns", "pod5", "10.1.1.5", "10.96.0.53:80"},
		{"default/log", "pod5", "10.1.1.5", "10.96.0.54:80"},
		{"default/log", "uplink0", "198.51.100.7", "203.0.113.54:80"},
	} {
		for range 2 * len(f.backends(way.service)) {
			f.port++
			p := simulator.Packet{
				In: way.in, Src: netip.AddrPortFrom(netip.MustParseAddr(way.src), f.port), Dst: netip.MustParseAddrPort(way.dst), Proto: simulator.ProtoUDP,
			}
			v := f.VPP.VPP.Send(p)
			if !v.NewSession || v.Dst == p.Dst {
				f.Fatalf("the first packet of a client gets nowhere: %v", v)
			}
			f.open = append(f.open, udpFlow{way.service, p, v.Dst})
		}
	}
}

// check sends one more packet of every client. A flow to an endpoint of the service goes on; any
// other flow does not reach its endpoint any more.
func (f *flows) check(when string) {
	f.Helper()
	var open []udpFlow
	for _, flow := range f.open {
		stale := !slices.ContainsFunc(f.backends(flow.service), func(b *messages.Backend) bool {
			return service.BackendText(b) == flow.backend.String()
		})
		v := f.VPP.VPP.Send(flow.packet)
		goesOn := v.Dst == flow.backend && !v.NewSession
		switch {
		case goesOn == stale:
			f.Errorf("%s: the flow %v > %v to %v: stale %t, goes on %t: %v", when, flow.packet.Src, flow.packet.Dst, flow.backend, stale, goesOn, v)
		case goesOn:
			f.kept++
			open = append(open, flow)
		default:
			f.ended++
			if v.NewSession { // the next packet of the client has found another endpoint
				open = append(open, udpFlow{flow.service, flow.packet, v.Dst})
			}
		}
	}
	f.open = open
}

// TestStaleUDPFlowsEnd: a client that keeps its port gets another endpoint when its own is gone,
// and is not disturbed by changes of others, even if the renderer crashes meanwhile. VPP ends the
// flows itself, with the endpoint that leaves the row.
func TestStaleUDPFlowsEnd(t *testing.T) {
	withServices(t, []string{"default/dns", "default/log"}, func(sc scene) {
		f := &flows{scene: sc, random: rand.New(rand.NewPCG(53, 0)), views: map[string]*messages.ServiceView{}, port: 20000}
		f.views["default/dns"] = f.view("default/dns", []string{"10.1.1.2", "10.1.1.3", "10.1.2.9"})
		f.views["default/log"] = f.view("default/log", []string{"10.1.1.2", "10.1.1.4", "10.1.2.9"})
		f.found(2)
		f.say(true)
		f.dial()
		for i := range 60 {
			what := "a change"
			f.shuffle()
			switch f.random.IntN(4) {
			case 0:
				what = "a change while the renderer is away"
				f.Kill()
				f.Connected()
				f.found(uint64(i + 3))
				f.say(true)
			case 1:
				what = "a change that the renderer crashes of"
				f.Before = func(msg any, handle func(any)) {
					if _, render := msg.(*messages.Render); render {
						f.Before = nil
						handle(msg)
						panic("crash")
					}
					handle(msg)
				}
				f.Restarts(func() { f.say(false) })
				f.Connected()
				f.found(uint64(i + 3))
				f.say(true)
			default:
				f.say(false)
			}
			if !f.Health().GetOk() {
				f.Fatalf("%d: %s: %v", i, what, f.Health())
			}
			f.check(fmt.Sprint(i, ": ", what))
			f.dial()
			if t.Failed() {
				break
			}
		}
		if f.ended == 0 || f.kept == 0 {
			t.Errorf("%d flows ended, %d went on: the changes show nothing", f.ended, f.kept)
		}
		t.Logf("%d flows ended with their endpoint, %d times one went on", f.ended, f.kept)
	})
}
