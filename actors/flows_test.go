package actors

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// udpFlow is a client that keeps its port, as a resolver does: nothing but the node ends its flow.
type udpFlow struct {
	service string
	packet  simulator.Packet
	backend netip.AddrPort
}

// flows are clients of services with UDP ports.
type flows struct {
	*world
	*testing.T
	random    *rand.Rand
	endpoints map[string][]string // of the services that exist
	open      []udpFlow
	port      uint16
	ended     int
	kept      int
}

// udpServices are one whose clients keep their address, and one whose clients are masqueraded at an external address. The same pods serve
// both, each at a port of its own.
var udpServices = map[string]uint32{"dns": 5353, "log": 5514}

// set gives a service these endpoints; nil removes the service.
func (f *flows) set(s *kube.Store, name string) {
	key := "default/" + name
	if f.endpoints[name] == nil {
		s.DeleteService(key)
		return
	}
	one := testService(name, map[string]string{"dns": "10.96.0.53", "log": "10.96.0.54"}[name])
	one.Ports[0].Name, one.Ports[0].Protocol = "udp", messages.Protocol_UDP
	if name == "log" {
		one.ExternalIps = []string{"203.0.113.54"}
	}
	slice := testSlice(name, f.endpoints[name]...)
	slice.Ports[0] = &messages.EndpointPort{Name: "udp", Protocol: messages.Protocol_UDP, Port: udpServices[name]}
	s.SetService(one, nil)
	s.SetSlice(slice, nil)
}

// shuffle changes the endpoints of both services: some, none, or no service any more.
func (f *flows) shuffle() {
	for name := range udpServices {
		var some []string
		for _, pod := range []string{"10.1.1.2", "10.1.1.3", "10.1.1.4", "10.1.2.9", "10.1.2.10"} {
			if f.random.IntN(3) > 0 {
				some = append(some, pod)
			}
		}
		switch f.random.IntN(8) {
		case 0:
			delete(f.endpoints, name)
		case 1:
			f.endpoints[name] = []string{}
		default:
			f.endpoints[name] = append([]string{}, some...)
		}
	}
}

// agreed waits until the troupe has brought to VPP what the cluster says.
func (f *flows) agreed() {
	f.Helper()
	f.until(fmt.Sprint("served: ", f.endpoints), func() bool {
		for name, port := range udpServices {
			var want []string
			for _, pod := range f.endpoints[name] {
				want = append(want, fmt.Sprint(pod, ":", port))
			}
			got := slices.Clone(f.status("default/" + name).GetView().GetServingUdp())
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				return false
			}
		}
		return f.readiness.Load().Ready && f.inSync()
	})
}

// dial opens flows from a pod and from outside.
func (f *flows) dial() {
	f.Helper()
	for _, way := range []struct{ service, in, src, dst string }{
		{"dns", "pod5", "10.1.1.5", "10.96.0.53:80"},
		{"log", "pod5", "10.1.1.5", "10.96.0.54:80"},
		{"log", "uplink0", "198.51.100.7", "203.0.113.54:80"},
	} {
		for range 2 * len(f.endpoints[way.service]) {
			f.port++
			p := simulator.Packet{
				In: way.in, Src: netip.AddrPortFrom(netip.MustParseAddr(way.src), f.port), Dst: netip.MustParseAddrPort(way.dst), Proto: simulator.ProtoUDP,
			}
			v := f.vpp.Send(p)
			if !v.NewSession || v.Dst == p.Dst {
				f.Fatalf("the first packet of a client gets nowhere: %v", v)
			}
			f.open = append(f.open, udpFlow{way.service, p, v.Dst})
		}
	}
}

// check has every client send once more: a flow to an endpoint that serves goes on, one that kube-proxy would remove (service.StaleFlows) does
// not reach its endpoint any more.
func (f *flows) check(when string) {
	f.Helper()
	var open []udpFlow
	for _, flow := range f.open {
		view := f.status("default/" + flow.service).GetView()
		orphaned := view == nil // with the service its frontends went
		stale := orphaned || len(service.StaleFlows(view, []service.Flow{{Frontend: flow.packet.Dst, Backend: flow.backend}}, service.OrphansDeleted)) > 0
		v := f.vpp.Send(flow.packet)
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

// TestStaleUDPFlowsEnd: a client that keeps its port does not send into the void when its endpoint has gone, and is not disturbed by what
// becomes of others, whoever dies meanwhile. VPP ends the flows itself, with the endpoint that leaves the row.
func TestStaleUDPFlowsEnd(t *testing.T) {
	t.Parallel()
	f := &flows{world: newWorld(t), T: t, random: rand.New(rand.NewPCG(53, 0)), endpoints: map[string][]string{}, port: 20000}
	f.endpoints["dns"], f.endpoints["log"] = []string{"10.1.1.2", "10.1.1.3", "10.1.2.9"}, []string{"10.1.1.2", "10.1.1.4", "10.1.2.9"}
	apply := func(s *kube.Store) {
		for name := range udpServices {
			f.set(s, name)
		}
	}
	f.source.commit(apply)
	f.start()
	f.agreed()
	f.dial()
	for i := range 40 {
		what := "a change"
		f.shuffle()
		switch f.random.IntN(4) {
		case 0:
			what = "a change while the agent is away"
			f.stop()
			f.source.commit(apply)
			f.start()
		case 1:
			what = "a change while the renderer dies"
			f.change(apply)
			f.kill(PathRenderer("nat44"))
		default:
			f.change(apply)
		}
		f.agreed()
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
}
