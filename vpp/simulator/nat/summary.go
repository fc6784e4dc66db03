package nat

import (
	"container/list"
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

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
