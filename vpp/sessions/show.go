package sessions

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// shower reads sessions by commands. Only their output tells the timeout of a session, and by it a
// TCP connection that is established from one that is not, or not any more.
type shower struct {
	caller link.Caller
	// lasting is the timeout in seconds from which a TCP session counts as established.
	lasting float64
	// began is when it was made, by VPP's clock in seconds. Silence ends then: VPP's workers wait
	// while it lists sessions.
	began float64
}

// newShower reads the timeouts that VPP uses, and its clock.
func newShower(ctx context.Context, c link.Caller) (shower, error) {
	s := shower{caller: c}
	text, err := s.command(ctx, "show clock")
	if err != nil {
		return shower{}, err
	}
	if _, err := fmt.Sscanf(text, "Time now %f,", &s.began); err != nil {
		return shower{}, fmt.Errorf("read VPP's clock: %w: %q", ErrNotUnderstood, shorten(text))
	}
	config, err := link.Ask[*nat44_ed.Nat44ShowRunningConfigReply](ctx, c, &nat44_ed.Nat44ShowRunningConfig{})
	if err != nil {
		return shower{}, fmt.Errorf("read the timeouts of NAT sessions: %w", err)
	}
	// otherwise nothing tells them apart
	if t := config.Timeouts; t.TCPEstablished > t.TCPTransitory {
		s.lasting = (float64(t.TCPTransitory) + float64(t.TCPEstablished)) / 2
	}
	return s, nil
}

// show returns the sessions of a backend's address. It costs VPP a pass over its sessions, and
// about 700 bytes of text for each of the result. VPP has filters for ports as well, but reads a
// port into half of its size and so damages other filters.
func (s shower) show(ctx context.Context, backend netip.Addr) ([]Flow, error) {
	text, err := s.command(ctx, "show nat44 sessions filter i2o saddr "+backend.String())
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(text, "NAT44 ED sessions:") {
		return nil, fmt.Errorf("show NAT sessions: %w: %q", ErrNotUnderstood, shorten(text))
	}
	return s.parse(text), nil
}

// command returns the output of a command of VPP's debug CLI.
func (s shower) command(ctx context.Context, text string) (string, error) {
	reply, err := link.Ask[*vlib.CliInbandReply](ctx, s.caller, &vlib.CliInband{Cmd: text})
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return reply.Reply, nil
}

// parse reads the output of "show nat44 sessions" of VPP 25.10 and 26.06. Sessions of
// protocols other than TCP, UDP and ICMP are left out.
func (s shower) parse(text string) (flows []Flow) {
	f := &Flow{} // left out, until the first line of a session is understood
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch first, _, _ := strings.Cut(line, " "); first {
		case "i2o":
			if words := strings.Fields(line); words[1] != "flow:" {
				f = &Flow{}
				if proto := protocolNumber(words); proto != 0 {
					flows = append(flows, Flow{Protocol: proto, Backend: endpointOf(words)})
					f = &flows[len(flows)-1]
				}
			}
		case "o2i":
			if words := strings.Fields(line); protocolNumber(words) != 0 {
				f.Frontend = endpointOf(words)
			}
		case "external": // "external host A:P" or "external host o2i A:P i2o A:P"
			if words := strings.Fields(line); len(words) == 6 {
				f.Client, f.As = parseEndpoint(words[3]), parseEndpoint(words[5])
			} else {
				f.Client = parseEndpoint(words[len(words)-1])
			}
		case "last": // "last heard SECONDS"
			f.Idle = max(0, time.Duration((s.began-lastNumber(line))*float64(time.Second)))
		case "timeout": // "timeout in SECONDS"
			left := lastNumber(line)
			f.Expired = left <= 0
			f.Unsettled = f.Protocol == protoTCP && left+f.Idle.Seconds() < s.lasting
		case "static":
			f.Service = true
		}
	}
	return flows
}

// protocolNumber returns the protocol of the words "i2o ADDRESS proto NAME port PORT fib FIB"; 0 =
// it is another line, or a protocol without ports.
func protocolNumber(words []string) uint8 {
	if len(words) != 8 {
		return 0
	}
	return map[string]uint8{"TCP": protoTCP, "UDP": protoUDP, "ICMP": protoICMP}[words[3]]
}

// endpointOf returns the address and port of such words.
func endpointOf(words []string) netip.AddrPort { return parseEndpoint(words[1] + ":" + words[5]) }

func parseEndpoint(text string) netip.AddrPort {
	at, _ := netip.ParseAddrPort(text)
	return at
}

// lastNumber returns the number at the end of a line.
func lastNumber(line string) float64 {
	n, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
	return n
}

// Flow is one session of a service.
type Flow struct {
	// Protocol is the number of IANA.
	Protocol uint8
	// Frontend, Backend and Client are the ends of the connection; As is the client's address
	// as the backend sees it, if it differs.
	Frontend, Backend, Client, As netip.AddrPort
	// Idle is the time since its last packet, in a dump in whole seconds. Expired sessions only
	// keep their place in the table.
	Idle    time.Duration
	Expired bool
	// Unsettled says that a TCP connection is not established: its handshake is under way, or
	// one side has closed it. Only a shower knows it.
	Unsettled bool
	// Service says that a row made the session.
	Service bool
	Packets uint64
	Bytes   uint64
}

// List dumps the sessions of backends that wanted chooses, at most so many; more says that there
// are others. Each backend costs VPP a pass over all sessions of a worker.
func List(ctx context.Context, c link.Caller, backends []netip.Addr, wanted func(*Flow) bool, most int) (flows []Flow, more bool, err error) {
	for _, backend := range backends {
		err := link.Each(ctx, c, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: backend.As4()}, func(d *nat44_ed.Nat44UserSessionV3Details) {
			f := flowOf(d)
			switch {
			case !wanted(&f):
			case len(flows) == most:
				more = true
			default:
				flows = append(flows, f)
			}
		})
		if err != nil {
			return nil, false, fmt.Errorf("dump NAT sessions of %s: %w", backend, err)
		}
	}
	return flows, more, nil
}

func flowOf(d *nat44_ed.Nat44UserSessionV3Details) Flow {
	at := func(a [4]byte, port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4(a), port) }
	f := Flow{
		Protocol: uint8(d.Protocol), Frontend: at(d.OutsideIPAddress, d.OutsidePort), Backend: at(d.InsideIPAddress, d.InsidePort),
		Client: at(d.ExtHostAddress, d.ExtHostPort), Idle: time.Duration(d.TimeSinceLastHeard) * time.Second, Expired: d.IsTimedOut,
		Service: d.Flags&nat_types.NAT_IS_STATIC != 0,
		Packets: uint64(d.TotalPkts), Bytes: d.TotalBytes,
	}
	if d.ExtHostNatPort != 0 {
		f.As = at(d.ExtHostNatAddress, d.ExtHostNatPort)
	}
	return f
}
