package sessions

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// shower reads sessions by commands. Only their output tells the timeout of a session, and by it a
// TCP connection that is established from one that is not, or not any more.
type shower struct {
	caller link.Caller
	// lasting is the timeout in seconds from which a TCP session counts as established.
	lasting float64
}

// newShower reads the timeouts that VPP uses.
func newShower(ctx context.Context, c link.Caller) (shower, error) {
	config, err := call[*nat44_ed.Nat44ShowRunningConfigReply](ctx, c, &nat44_ed.Nat44ShowRunningConfig{})
	if err != nil {
		return shower{}, fmt.Errorf("read the timeouts of NAT sessions: %w", err)
	}
	s := shower{caller: c}
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
	results, err := s.caller.Do(ctx, []api.Message{&vlib.CliInband{Cmd: "show clock"}, &vlib.CliInband{Cmd: "show nat44 sessions filter i2o saddr " + backend.String()}})
	var text [2]string
	for i := range text {
		if err == nil {
			err = results[i].Err
		}
		if err != nil {
			return nil, fmt.Errorf("show NAT sessions: %w", err)
		}
		if reply, ok := results[i].Reply.(*vlib.CliInbandReply); ok {
			text[i] = reply.Reply
		}
	}
	var now float64
	if _, err := fmt.Sscanf(text[0], "Time now %f,", &now); err != nil || !strings.HasPrefix(text[1], "NAT44 ED sessions:") {
		return nil, fmt.Errorf("show NAT sessions: %w: %q, %q", ErrNotUnderstood, shorten(text[0]), shorten(text[1]))
	}
	return s.parse(now, text[1]), nil
}

// parse reads the output of "show nat44 sessions" of VPP 25.10 and 26.06 at the time now of VPP.
// Sessions of protocols other than TCP, UDP and ICMP are left out.
func (s shower) parse(now float64, text string) (flows []Flow) {
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
			f.Idle = max(0, time.Duration((now-lastNumber(line))*float64(time.Second)))
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
