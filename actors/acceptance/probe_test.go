package acceptance_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Fates of a packet: the words of the file, and other outcomes of a dataplane.
const (
	forward     = "forward"
	reject      = "reject"
	drop        = "drop"
	untouched   = "none"        // it goes where the routes lead, unchanged
	unreachable = "unreachable" // answered with an ICMP error, which is not "connection refused"
	nothing     = "nothing"     // of rows: there is none
)

// Kinds of clients, as the file calls them ("class").
const (
	classPod    = "pod"
	classNode   = "node"
	classRemote = "remote"
)

// target is a frontend taken apart.
type target struct {
	frontend string
	at       netip.AddrPort
	proto    uint8
}

func (r *run) target(frontend string) target {
	r.Helper()
	at, protocol, err := service.ParseFrontendText(frontend)
	if err != nil {
		r.Fatal(err)
	}
	return target{frontend, at, uint8(protocol)}
}

// verdict is what Kubernetes asks for a packet.
type verdict struct {
	action    string
	endpoints []string
	// masquerade says whether the source is replaced, hairpin apart.
	masquerade bool
	// exact says that masquerade holds for hairpin, too.
	exact    bool
	affinity uint32
	optional bool
	from     string
	probe    string
}

// seen is what became of one connection.
type seen struct {
	action     string
	endpoint   netip.AddrPort
	masked     bool
	verdict    simulator.Verdict
	wrongPlace string
}

// class is the kind of client of a source address, by the rule of the file.
func (r *run) class(src netip.Addr) string {
	switch {
	case slices.ContainsFunc(r.Serving.ClusterCIDRs, func(p netip.Prefix) bool { return p.Contains(src) }):
		return classPod
	case r.places.nodes[src]:
		return classNode
	default:
		return classRemote
	}
}

// from is the word of rows for a client.
func (r *run) from(src netip.Addr) string {
	if r.class(src) == classRemote {
		return "remote"
	}
	return "local"
}

// send opens a connection and says where it leads.
func (r *run) send(src netip.Addr, to target) seen {
	p := simulator.Packet{In: r.places.of(src), Src: netip.AddrPortFrom(src, r.clientPort()), Dst: to.at, Proto: to.proto}
	v := r.VPP.Send(p)
	s := seen{verdict: v, endpoint: v.Dst, masked: v.Src.Addr() != src}
	switch {
	case v.Action == simulator.Died:
		r.Fatalf("%s: VPP died: %s", r.step, v)
	case v.Action == simulator.Rejected:
		s.action = unreachable
	case v.Action == simulator.Dropped:
		s.action = drop
	case v.Dst != to.at:
		s.action = forward
		if !r.places.reached(v, v.Dst.Addr()) {
			s.wrongPlace = fmt.Sprintf("%s leads to %s, but it is behind %s", v.Dst, v.Out, r.places.of(v.Dst.Addr()))
		}
	case v.Action == simulator.Local && !r.places.nodes[to.at.Addr()]:
		s.action = endsInVPP(to.proto)
	default:
		s.action = untouched
	}
	return s
}

// endsInVPP is what a client sees of a packet to an address that VPP takes for its own: UDP is
// refused, TCP gets no answer.
func endsInVPP(proto uint8) string {
	if proto == simulator.ProtoUDP {
		return reject
	}
	return drop
}

// findings collects how connections to a frontend deviate from what is wanted, each kind once.
type findings struct {
	to        target
	want      verdict
	misplaced bool
	found     []deviation
}

func (f *findings) add(a aspect, wanted, got, detail string) {
	d := deviation{
		frontend: f.to.frontend, from: f.want.from, aspect: a, want: wanted, got: got, detail: detail,
		misplaced: f.misplaced, optional: f.want.optional, probe: f.want.probe,
	}
	if !slices.ContainsFunc(f.found, func(o deviation) bool { return o.aspect == a && o.want == wanted && o.got == got }) {
		f.found = append(f.found, d)
	}
}

// most is how many connections are opened until every endpoint of n has got one. With equal shares
// one in e^40 runs needs more.
func most(n int) int { return 40 * max(n, 1) }

// probe opens connections from a client to a frontend until every wanted endpoint has got one, and
// compares each with what is wanted.
func (r *run) probe(src netip.Addr, to target, want verdict) []deviation {
	r.Helper()
	f := &findings{to: to, want: want, misplaced: r.places.here(src) != (r.from(src) == "local")}
	missing := map[string]bool{}
	for _, e := range want.endpoints {
		missing[e] = true
	}
	sticky := want.affinity > 0
	for range most(len(want.endpoints)) {
		r.tally.count("connections opened", 1)
		s := r.send(src, to)
		if s.action != want.action {
			f.add(aspectAction, want.action, s.action, s.verdict.String())
			return f.found
		}
		if s.action != forward {
			return f.found
		}
		r.compare(src, f, s)
		delete(missing, s.endpoint.String())
		if len(missing) == 0 || sticky {
			break
		}
	}
	if !sticky {
		for e := range missing {
			f.add(aspectStarved, "connections to "+e, nothing, fmt.Sprintf("after %d connections", most(len(want.endpoints))))
		}
	}
	return f.found
}

// compare looks at one connection that was forwarded.
func (r *run) compare(src netip.Addr, f *findings, s seen) {
	want, to := f.want, f.to
	endpoint := s.endpoint.Addr()
	switch {
	case !slices.Contains(want.endpoints, s.endpoint.String()):
		f.add(aspectEndpoint, "one of "+strings.Join(want.endpoints, " "), s.endpoint.String(), s.verdict.String())
	case s.wrongPlace != "":
		f.add(aspectEndpoint, "at its place", "elsewhere", s.wrongPlace)
	}
	hairpin := src == endpoint && !want.exact
	comesBack := r.places.here(src) || r.places.here(endpoint)
	wanted := want.masquerade || hairpin
	switch {
	case s.masked && !wanted:
		f.add(aspectMasquerade, "source kept", "source replaced", s.verdict.String())
		return
	case !s.masked && src == endpoint && wanted:
		f.add(aspectMasquerade, "source replaced", "source kept", "the endpoint would answer itself: "+s.verdict.String())
		return
	case !s.masked && wanted && !r.places.nodes[src]: // an address of this node is one already
		f.add(aspectMasquerade, "source replaced", "source kept", s.verdict.String())
		if !comesBack {
			return
		}
	case s.masked && !r.places.nodes[s.verdict.Src.Addr()] && s.verdict.Src.Addr() != r.Deps.NAT44.ForNode(r.context.GetNode()).TwiceNAT:
		f.add(aspectMasquerade, "an address of this node", s.verdict.Src.Addr().String(), s.verdict.String())
	case !s.masked && !comesBack:
		return // Kubernetes asks for this; the answer never comes here
	}
	back := r.VPP.Reply(s.verdict)
	if s.verdict.Action == simulator.Local {
		back = r.VPP.Send(r.answerOf(s.verdict))
	}
	// Where a client with the address of a frontend is, only its own node knows: the answer is
	// translated, and that is all to be said.
	if back.Src != to.at || back.Dst != s.verdict.Packet.Src || !r.vips[src] && !r.places.reached(back, src) {
		f.add(aspectAnswer, "back to the client as from the frontend", "elsewhere", back.String())
	}
}

// answerOf is the answer of a process of this node, which enters VPP from the host.
func (r *run) answerOf(v simulator.Verdict) simulator.Packet {
	p := simulator.Packet{In: host, Src: v.Dst, Dst: v.Src, Proto: v.Packet.Proto}
	if p.Proto == simulator.ProtoTCP {
		p.Flags = simulator.SYN | simulator.ACK
	}
	return p
}
