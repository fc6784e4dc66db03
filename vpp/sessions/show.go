package sessions

import (
	"context"
	"fmt"
	"net/netip"
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
	if t := config.Timeouts; t.TCPEstablished > t.TCPTransitory { // otherwise nothing tells them apart
		s.lasting = (float64(t.TCPTransitory) + float64(t.TCPEstablished)) / 2
	}
	return s, nil
}

// show returns the sessions of a backend's address. It costs VPP a pass over its sessions, and about
// 700 bytes of text for each of the result. VPP has filters for ports as well, but reads a port into
// half of its size and so damages other filters.
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
	protocols := map[string]uint8{"TCP": protoTCP, "UDP": protoUDP, "ICMP": protoICMP}
	f, fib := &Flow{}, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var addr, other, name string
		var port uint16
		var seconds float64
		read := func(format string, into ...any) bool {
			n, err := fmt.Sscanf(line, format, into...)
			return err == nil && n == len(into)
		}
		switch {
		case strings.HasPrefix(line, "i2o flow:"), strings.HasPrefix(line, "o2i flow:"), strings.HasPrefix(line, "index "):
		case strings.HasPrefix(line, "i2o "):
			f = &Flow{} // left out, unless the line is understood
			if read("i2o %s proto %s port %d fib %d", &addr, &name, &port, &fib) && protocols[name] != 0 {
				flows = append(flows, Flow{Protocol: protocols[name], Backend: endpointOf(addr, port)})
				f = &flows[len(flows)-1]
			}
		case read("o2i %s proto %s port %d fib %d", &addr, &name, &port, &fib):
			f.Frontend = endpointOf(addr, port)
		case read("external host o2i %s i2o %s", &addr, &other):
			f.Client, f.As = parseEndpoint(addr), parseEndpoint(other)
		case read("external host %s", &addr):
			f.Client = parseEndpoint(addr)
		case read("last heard %f", &seconds):
			f.Idle = max(0, time.Duration((now-seconds)*float64(time.Second)))
		case read("timeout in %f", &seconds):
			f.Expired = seconds <= 0
			f.Unsettled = f.Protocol == protoTCP && seconds+f.Idle.Seconds() < s.lasting
		case line == "static translation":
			f.Service = true
		case read("total pkts %d, total bytes %d", &f.Packets, &f.Bytes):
		}
	}
	return flows
}

func endpointOf(addr string, port uint16) netip.AddrPort {
	a, _ := netip.ParseAddr(addr)
	return netip.AddrPortFrom(a, port)
}

func parseEndpoint(text string) netip.AddrPort {
	at, _ := netip.ParseAddrPort(text)
	return at
}
