package nat

import (
	"container/list"
	"fmt"
	"net/netip"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// protocolName is a protocol of sessions with ports, as VPP prints it.
func protocolName(proto uint8) string {
	return map[uint8]string{vnet.ProtoTCP: "TCP", vnet.ProtoUDP: "UDP", vnet.ProtoICMP: "ICMP"}[proto]
}

// Show is the output of "show nat44 sessions" with filters; ok is false where VPP would not
// understand them.
func (n *Plugin) Show(filters string) (text string, ok bool) {
	words := strings.Fields(filters) // "filter i2o saddr ADDRESS", also several
	if len(words)%4 != 0 {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "NAT44 ED sessions:\n-------- thread 0 vpp_main: %d sessions --------\n", n.Sessions.Len())
	shown := 0
	for _, s := range n.Sessions.All {
		fits := true
		for i := 0; i < len(words); i += 4 {
			f := s.i2o.match
			if words[i+1] == "o2i" {
				f = s.o2i.match
			}
			at := f.Src
			switch {
			case words[i] != "filter":
				return "", false
			case words[i+2] == "daddr":
				at = f.Dst
			case words[i+2] != "saddr": // what VPP does with filters for ports is not defined
				return "", false
			}
			fits = fits && at.Addr().String() == words[i+3]
		}
		if fits {
			shown++
			n.showSession(&b, s)
		}
	}
	if len(words) > 0 {
		fmt.Fprintf(&b, "Showed: %d, Filtered: %d of total %d sessions of thread 0\n\n", shown, n.Sessions.Len()-shown, n.Sessions.Len())
	}
	return b.String(), true
}

// showSession prints one session.
func (n *Plugin) showSession(b *strings.Builder, s *Session) {
	line := func(format string, args ...any) { fmt.Fprintf(b, "       "+format+"\n", args...) }
	if vnet.KnownProto(s.Proto) {
		name := protocolName(s.Proto)
		fmt.Fprintf(b, "    i2o %s proto %s port %d fib %d\n", s.Inside.Addr(), name, s.Inside.Port(), s.InsideFIB)
		fmt.Fprintf(b, "    o2i %s proto %s port %d fib %d\n", s.Outside.Addr(), name, s.Outside.Port(), s.outsideFIB)
	} else {
		fmt.Fprintf(b, "    i2o %s proto %d fib %d\n    o2i %s proto %d fib %d\n", s.Inside.Addr(), s.Proto, s.InsideFIB, s.Outside.Addr(), s.Proto, s.outsideFIB)
	}
	if s.Has(SessionTwice) {
		line("external host o2i %s i2o %s", s.Ext, s.ExtNAT)
	} else if s.Ext.Addr() != netip.AddrFrom4([4]byte{}) {
		line("external host %s", s.Ext)
	}
	line("i2o flow: %s", s.i2o)
	line("o2i flow: %s", s.o2i)
	line("index %d", s.index)
	line("last heard %.2f", s.LastHeard)
	line("timeout in %.2f", n.timeout(s)-(n.net.Now()-s.LastHeard))
	line("total pkts %d, total bytes %d", s.Packets, s.Bytes)
	if s.Has(SessionStatic) {
		line("static translation")
	} else {
		line("dynamic translation")
	}
	for _, has := range []struct {
		flag SessionFlags
		name string
	}{{sessionBypass, "forwarding-bypass"}, {sessionLB, "load-balancing"}, {SessionTwice, "twice-nat"}} {
		if s.Has(has.flag) {
			line("%s", has.name)
		}
	}
	b.WriteString("\n")
}

// String describes a flow, without the rewrites.
func (f flow) String() string {
	return fmt.Sprintf("match: saddr %s sport %d daddr %s dport %d proto %s fib_idx %d", f.match.Src.Addr(), f.match.Src.Port(),
		f.match.Dst.Addr(), f.match.Dst.Port(), protocolName(f.match.Proto), f.match.FIB)
}

// tally counts sessions, and the expired ones among them.
type tally struct{ total, timedOut int }

func (t tally) String() string {
	return fmt.Sprintf("total: %d (timed out: %d)", t.total, t.timedOut)
}

// add counts one session.
func (t *tally) add(dead bool) {
	t.total++
	if dead {
		t.timedOut++
	}
}

// Summary is the output of "show nat44 summary": limits by FIB index, the head of every LRU list,
// sessions by protocol.
func (n *Plugin) Summary() string {
	var tcp, established, transitory, udp, icmp, other, all tally
	for _, s := range n.Sessions.All {
		dead := n.LooksTimedOut(s)
		all.add(dead)
		switch s.Proto {
		case vnet.ProtoICMP:
			icmp.add(dead)
		case vnet.ProtoTCP:
			tcp.add(dead)
			if s.state == tcpEstablished {
				established.add(dead)
			} else {
				transitory.add(dead)
			}
		case vnet.ProtoUDP:
			udp.add(dead)
		default:
			other.add(dead)
		}
	}
	var b strings.Builder
	for fib, limit := range n.limits {
		fmt.Fprintf(&b, "max translations per thread: %d fib %d\n", limit, fib)
	}
	n.summarizeLRU(&b)
	fmt.Fprintf(&b, "total sessions: %d (timed out: %d)\n", all.total, all.timedOut)
	fmt.Fprintf(&b, "tcp sessions:\n    %s\n", tcp)
	fmt.Fprintf(&b, "        established: %d (timed out: %d)\n", established.total, established.timedOut)
	fmt.Fprintf(&b, "        transitory: %d (timed out: %d)\n", transitory.total, transitory.timedOut)
	fmt.Fprintf(&b, "udp sessions:\n    %s\n", udp)
	fmt.Fprintf(&b, "icmp sessions:\n    %s\n", icmp)
	fmt.Fprintf(&b, "other sessions:\n    %s\n", other)
	return b.String()
}

// summarizeLRU lists when the oldest session of each LRU list expires.
func (n *Plugin) summarizeLRU(b *strings.Builder) {
	for _, l := range []struct {
		name string
		*list.List
	}{
		{"established tcp", n.lru.tcpEstablished},
		{"transitory tcp", n.lru.tcpTransitory},
		{"udp", n.lru.udp},
		{"unknown protocol", n.lru.other},
		{"icmp", n.lru.icmp},
	} {
		head := l.Front()
		if head == nil {
			continue
		}
		if s, ok := head.Value.(*Session); ok {
			fmt.Fprintf(b, "%s LRU min session timeout %d (now %d)\n", l.name, uint64(s.LastHeard+n.timeout(s)), uint64(n.net.Now()))
		}
	}
}
