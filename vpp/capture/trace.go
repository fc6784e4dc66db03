package capture

import (
	"net/netip"
	"regexp"
	"strings"
)

// Packet is one traced packet.
type Packet struct {
	// Protocol is TCP, UDP or another one of the first header; Source and Destination are
	// "ip:port" there, without a port where there is none.
	Protocol    string `json:"protocol"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Left are source and destination of the last header, as the packet has left VPP or was
	// dropped.
	LeftSource      string `json:"leftSource"`
	LeftDestination string `json:"leftDestination"`
	// Verdict is the end of the packet: "leaves through NAME", "dropped: REASON", or "goes to
	// VPP itself".
	Verdict string `json:"verdict"`
	Steps   []Step `json:"steps"`
	// headers are all pairs of addresses with their protocol.
	headers []header
}

// Step is one node of VPP's graph.
type Step struct {
	Node string `json:"node"`
	// Words say what the node does.
	Words string `json:"words"`
	// Trace is what VPP has written, one line each.
	Trace []string `json:"trace"`
}

// header is one header of IP with the ports behind it.
type header struct{ protocol, source, destination string }

var (
	stepLine  = regexp.MustCompile(`^\d\d:\d\d:\d\d:\d{6}: (\S+)$`)
	addresses = regexp.MustCompile(`^([A-Z][A-Z0-9_]*): ([0-9a-f.:]+) -> ([0-9a-f.:]+)$`)
	ports     = regexp.MustCompile(`^(TCP|UDP): (\d+) -> (\d+)$`)
)

// Parse reads what "show trace" prints. It leaves out what it does not understand.
func Parse(text string) []Packet {
	var packets []Packet
	var p *Packet
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch step := stepLine.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "Packet ") && len(strings.Fields(line)) == 2:
			packets = append(packets, Packet{})
			p = &packets[len(packets)-1]
		case p == nil || line == "":
		case step != nil:
			p.Steps = append(p.Steps, Step{Node: step[1], Words: words(step[1])})
		case len(p.Steps) > 0:
			last := &p.Steps[len(p.Steps)-1]
			last.Trace = append(last.Trace, line)
			p.header(line)
		}
	}
	for i := range packets {
		packets[i].conclude()
	}
	return packets
}

// header takes the addresses and the ports of a line.
func (p *Packet) header(line string) {
	if m := ports.FindStringSubmatch(line); m != nil && len(p.headers) > 0 {
		last := &p.headers[len(p.headers)-1]
		if _, err := netip.ParseAddr(last.source); err == nil && last.protocol == m[1] {
			last.source, last.destination = withPort(last.source, m[2]), withPort(last.destination, m[3])
		}
		return
	}
	if m := addresses.FindStringSubmatch(line); m != nil {
		if _, err := netip.ParseAddr(m[2]); err == nil {
			p.headers = append(p.headers, header{m[1], m[2], m[3]})
		}
	}
}

// withPort joins an address and a port.
func withPort(address, port string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]:" + port
	}
	return address + ":" + port
}

// conclude works out the verdict of a packet.
func (p *Packet) conclude() {
	if n := len(p.headers); n > 0 {
		p.Protocol, p.Source, p.Destination = p.headers[0].protocol, p.headers[0].source, p.headers[0].destination
		p.LeftSource, p.LeftDestination = p.headers[n-1].source, p.headers[n-1].destination
	}
	for _, s := range p.Steps {
		switch {
		case strings.HasSuffix(s.Node, "-tx"):
			p.Verdict = "leaves through " + strings.TrimSuffix(s.Node, "-tx")
		case s.Node == "drop":
			p.Verdict = "dropped: " + reason(s.Trace)
		case s.Node == "punt":
			p.Verdict = "goes to the host: " + reason(s.Trace)
		case p.Verdict == "" && (s.Node == "ip4-receive" || s.Node == "ip6-receive" || s.Node == "ip4-local" || s.Node == "ip6-local"):
			p.Verdict = "goes to VPP itself"
		}
	}
	if p.Verdict == "" {
		p.Verdict = "the trace ends before the packet does"
	}
}

// reason is the last line of a trace: "node: reason".
func reason(trace []string) string {
	if len(trace) == 0 {
		return "no reason given"
	}
	return trace[len(trace)-1]
}

// Of reports whether a packet is for a frontend, or comes from it: at its entrance or at any node
// behind.
func (p *Packet) Of(address netip.AddrPort, protocol string) bool {
	text := address.String()
	for _, h := range p.headers {
		if h.protocol == protocol && (h.source == text || h.destination == text) {
			return true
		}
	}
	return false
}
