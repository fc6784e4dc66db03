package simulated

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// serveProbes answers probes on a socket until ctx ends. A probe is a TCP connection that begins on
// an interface: a line "INTERFACE SOURCE DESTINATION", with IP:PORT twice. The answer is the line
// "SOURCE -> DESTINATION" as the endpoint sees the connection, or the reason why there is no
// connection.
func serveProbes(ctx context.Context, path string, vpp *simulator.VPP) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go answerProbes(ctx, conn, vpp)
		}
	}()
	return nil
}

// answerProbes answers one client.
func answerProbes(ctx context.Context, conn net.Conn, vpp *simulator.VPP) {
	defer conn.Close() //nolint:errcheck // the client is gone
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if _, err := fmt.Fprintln(conn, probe(vpp, lines.Text())); err != nil {
			return
		}
	}
}

// probe answers one line.
func probe(vpp *simulator.VPP, line string) string {
	var in, from, to string
	if n, err := fmt.Sscan(line, &in, &from, &to); n != 3 {
		return fmt.Sprintf("expected INTERFACE SOURCE DESTINATION: %v", err)
	}
	src, err := netip.ParseAddrPort(from)
	if err != nil {
		return err.Error()
	}
	dst, err := netip.ParseAddrPort(to)
	if err != nil {
		return err.Error()
	}
	open, err := vpp.Dial(simulator.Packet{In: in, Src: src, Dst: dst, Proto: simulator.ProtoTCP})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s -> %s", open.Opened().Src, open.Opened().Dst)
}
