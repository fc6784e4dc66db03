package simulated

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// connections is the number of connections of one probe: enough to reach every endpoint of a small
// service.
const connections = 30

// Outcomes of a packet, with the names of the acceptance cases.
const (
	forward = "forward"
	reject  = "reject"
	drop    = "drop"
	none    = "none"
)

// client is the origin of probes.
type client struct {
	from    string // "pod", "node", "outside"
	in      string // interface of VPP
	address netip.Addr
}

// prober sends packets through the simulated VPP and compares their destinations with the model of
// Kubernetes.
type prober struct {
	vpp      *simulator.VPP
	statuses []*messages.ServiceStatus
	pod      client
	node     client
	outside  client
	port     uint16 // of the last client; each connection has another one
}

// firstPort is the smallest port of a client, above every port of a service.
const firstPort = 20000

// newProber makes a prober with the origins that exist on this node.
func newProber(a *agent.Agent, statuses []*messages.ServiceStatus) *prober {
	p := &prober{vpp: a.Simulator(), statuses: statuses, port: firstPort}
	address, in := a.Pod()
	p.pod = client{from: "pod", in: in, address: address}
	p.node = client{from: "node", in: agent.HostInterface, address: netip.MustParseAddr("172.30.0.2")}
	p.outside = client{from: "outside", in: agent.UplinkInterface, address: netip.MustParseAddr("192.0.2.77")}
	return p
}

// all probes every frontend from every origin that it serves.
func (p *prober) all() []Probe {
	var probes []Probe
	for _, s := range p.statuses {
		for _, f := range s.GetView().GetFrontends() {
			for _, c := range p.clients(f) {
				probes = append(probes, p.probe(c, s, f))
			}
		}
	}
	return probes
}

// clients are the origins on this node that a row serves.
func (p *prober) clients(f *messages.Frontend) []client {
	return slices.DeleteFunc(p.places(f), func(c client) bool { return !c.address.IsValid() })
}

// places are the origins that a row serves. Cluster addresses are not probed from outside: the
// network does not route them.
func (p *prober) places(f *messages.Frontend) []client {
	switch {
	case f.GetScope() == messages.Scope_SCOPE_CLUSTER:
		return []client{p.pod, p.node}
	case f.GetFrom() == messages.ClientClass_FROM_LOCAL:
		return []client{p.pod}
	case f.GetFrom() == messages.ClientClass_FROM_REMOTE:
		return []client{p.outside}
	default:
		return []client{p.pod, p.outside}
	}
}

// probe makes a number of connections and evaluates them.
func (p *prober) probe(c client, s *messages.ServiceStatus, f *messages.Frontend) Probe {
	out := Probe{
		From: c.from, Client: c.address.String(), To: service.FrontendText(f), Service: s.GetKey(), Want: service.Word(f.GetAction()),
		Shares: map[string]int{}, OK: true,
	}
	to := netip.AddrPortFrom(netip.MustParseAddr(f.GetAddress()), uint16(f.GetPort()))
	for range connections {
		p.port = max(p.port+1, firstPort) // the port may wrap around
		v := p.vpp.Send(simulator.Packet{In: c.in, Src: netip.AddrPortFrom(c.address, p.port), Dst: to, Proto: uint8(f.GetProtocol())})
		p.judge(&out, c, f, v)
	}
	if why := unexpressed(&out, s, f); why != "" {
		out.OK, out.Why = true, why
	}
	if f.GetAction() == messages.Action_ACTION_FORWARD && out.OK {
		judgeShares(&out, f, approximation(s, f))
	}
	return out
}

// judge evaluates one connection: its destination, and whether the answer has the source address of
// the frontend.
func (p *prober) judge(out *Probe, c client, f *messages.Frontend, v simulator.Verdict) {
	out.Got = gotWord(v)
	fail := func(why string) { out.OK, out.Why = false, why }
	if out.Got != out.Want {
		fail(v.String())
		return
	}
	if out.Got != forward {
		return
	}
	arrived := v.Dst.String()
	out.Shares[arrived]++
	out.SourceTranslated = out.SourceTranslated || v.Src.Addr() != c.address
	reply := p.vpp.Reply(v)
	if v.Action == simulator.Local {
		// an endpoint in the node's own network: its answer comes from outside the
		// simulation
		reply.Src, reply.Dst = v.Packet.Dst, v.Packet.Src
	}
	switch {
	case !slices.ContainsFunc(f.GetBackends(), func(b *messages.Backend) bool { return service.BackendText(b) == arrived }):
		fail("arrived at " + arrived + ", which is no endpoint of it")
	case reply.Dst != v.Packet.Src || reply.Src != v.Packet.Dst:
		fail("the answer came as " + reply.String())
	case f.GetFrom() == messages.ClientClass_FROM_REMOTE && v.Src.Addr() != c.address:
		fail("the client's address was lost although the policy is Local")
	}
}

// judgeShares checks that every endpoint gets connections, or exactly one with affinity. If the
// renderer has reported that it keeps clients of this node on it, only the endpoints on this node
// count.
func judgeShares(out *Probe, f *messages.Frontend, approximated string) {
	used, wanted := len(out.Shares), len(f.GetBackends())
	switch {
	case f.GetAffinitySeconds() > 0 && used != 1:
		out.OK, out.Why = false, "affinity, but "+strconv.Itoa(used)+" backends were used"
	case f.GetAffinitySeconds() > 0 || used == wanted:
	case f.GetFrom() == messages.ClientClass_FROM_LOCAL && approximated != "" && used == localBackends(f):
		out.Why = approximated
	default:
		out.OK, out.Why = false, fmt.Sprintf("only %d of %d backends were used", used, wanted)
	}
}

// approximation is the reported approximation of a frontend, as "wanted, but rendered"; "" = none.
func approximation(s *messages.ServiceStatus, f *messages.Frontend) string {
	for _, r := range s.GetRenders() {
		for _, a := range r.GetApproximations() {
			if a.GetFrontend() == service.FrontendText(f) {
				return a.GetWanted() + ", but " + a.GetRendered()
			}
		}
	}
	return ""
}

// unexpressed accepts a packet that left untranslated although VPP should have rejected or dropped
// it. A renderer cannot do this without a row outside the service networks. The renderer must have
// reported it, and VPP must have no row for the frontend. "" = not accepted.
func unexpressed(out *Probe, s *messages.ServiceStatus, f *messages.Frontend) string {
	if out.Got != none || f.GetScope() == messages.Scope_SCOPE_CLUSTER || hasRow(s, f) {
		return ""
	}
	for _, other := range s.GetView().GetFrontends() {
		if service.FrontendText(other) == out.To && other.GetAction() != messages.Action_ACTION_FORWARD {
			return approximation(s, f)
		}
	}
	return ""
}

// hasRow reports whether a renderer has a row for the frontend.
func hasRow(s *messages.ServiceStatus, f *messages.Frontend) bool {
	for _, r := range s.GetRenders() {
		for _, row := range r.GetRows() {
			if row.GetVip() == service.FrontendText(f) {
				return true
			}
		}
	}
	return false
}

// localBackends counts the endpoints on this node.
func localBackends(f *messages.Frontend) int {
	n := 0
	for _, b := range f.GetBackends() {
		if b.GetLocal() {
			n++
		}
	}
	return n
}

// gotWord is the outcome of a packet. An untranslated packet was not service traffic for VPP.
func gotWord(v simulator.Verdict) string {
	switch {
	case v.Action == simulator.Rejected:
		return reject
	case (v.Action == simulator.Delivered || v.Action == simulator.Local) && v.Dst != v.Packet.Dst:
		return forward
	case v.Action == simulator.Delivered || v.Action == simulator.Local:
		return none
	default:
		return drop
	}
}
