package nat44

import (
	"net/netip"
	"reflect"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Config holds the settings of the planner. The zero value plans for an unnamed node without
// twice-NAT address and without pads; an agent sets at least TwiceNAT and Pads.
type Config struct {
	// Node is the name of the node. It seeds the choice of backends where a service has more
	// than fit into a row, so that nodes choose different ones.
	Node string
	// TwiceNAT is the address that replaces the address of clients, the NAT loopback: IPv4,
	// routed to this node and not used by any other host, by default the last address of the
	// node's pod CIDR. Without it, connections that need it are dropped by VPP ("out of
	// ports"); the plan says so.
	TwiceNAT netip.Addr
	// Pads adds two entries of weight 0 to every row. It is safe where one worker does NAT;
	// with more VPP may choose an entry of weight 0, or divide by zero.
	Pads bool
	// OutsideAlone gives all interfaces the outside role alone, as if packets that are not TCP,
	// UDP or ICMP entered everywhere, see Want.OtherProtocols. The planner does not use it.
	OutsideAlone bool
	// MasqueradeClashes lets VPP masquerade a connection that goes past a service where a
	// session of the service has the same addresses and ports, see Globals. ForNode clears it
	// where TwiceNAT is an address of the node, with which VPP must do nothing else.
	MasqueradeClashes bool
	// AllWorkers leaves NAT to all workers of VPP, see Globals.
	AllWorkers bool
	// SessionLimit is the number of NAT sessions per worker that VPP must be able to hold: peak
	// of new flows per second x the longest relevant timeout x 1.5, for example 262144. VPP
	// allocates the sessions when the plugin is enabled. 0 means VPP's default, 64512.
	SessionLimit uint32
	// Timeouts of sessions; a field that is 0 means its value in DefaultTimeouts.
	Timeouts Timeouts
	// Guarded says that access lists in front of NAT (vpp/acl) drop packets that a frontend
	// does not accept: from clients outside its source ranges, or of a class whose action is to
	// drop. Then a row serves the remaining clients as if they were the only ones.
	Guarded bool
	// Unreachable says that addresses without a row are refused by unreachable routes
	// (vpp/routes). It changes no row, only what the plan reports for frontends without one.
	Unreachable bool
	// Ground are the addresses that no service may claim.
	Ground rule.Ground
	// Tables are the tables in which backends are reached, where they are not in table 0.
	Tables forwarding.Tables
	// DrainLimit is how long a backend that has left the slices keeps its connections; 0 =
	// until the last one ends. The planner does not use it.
	DrainLimit time.Duration
	// IPv6Elsewhere says that another renderer serves IPv6 frontends, so that the plan does not
	// report them as errors.
	IPv6Elsewhere bool
}

// ForNode completes the configuration for a node: an unset TwiceNAT is the last address of its pod
// CIDR, or without a pod CIDR the node's own address, which is routed to this node as well. The
// agent and a dry run both use it, so that they plan the same rows.
func (c Config) ForNode(self *messages.Node) Config {
	if !c.TwiceNAT.IsValid() {
		c.TwiceNAT = lastAddress(self)
	}
	for _, text := range self.GetAddresses() {
		a, err := netip.ParseAddr(text)
		if err == nil && a.Is4() && !c.TwiceNAT.IsValid() {
			c.TwiceNAT = a
		}
		c.MasqueradeClashes = c.MasqueradeClashes && (err != nil || a != c.TwiceNAT)
	}
	return c
}

// lastAddress is the last unicast address of the node's first IPv4 pod CIDR, which no pod gets.
func lastAddress(self *messages.Node) netip.Addr {
	for _, prefix := range rule.Networks(self.GetPodCidrs()) {
		if prefix.Addr().Is4() && prefix.Bits() <= 30 {
			return rule.LastAddress(prefix)
		}
	}
	return netip.Addr{}
}

// Globals returns the settings of the plugin as a whole.
func (c Config) Globals() Globals {
	return Globals{SessionLimit: c.SessionLimit, Timeouts: c.Timeouts.withDefaults(), TwiceNAT: c.TwiceNAT, MasqueradeClashes: c.MasqueradeClashes, AllWorkers: c.AllWorkers}
}

// remembered is the Remembered of a row. An ended session stays until its timeout is over, so that
// both times add up to the affinity. Where the affinity is shorter than the timeout, package
// sessions deletes the session earlier.
func (c Config) remembered(affinity uint32, proto uint8) uint32 {
	silent := c.Timeouts.withDefaults().TCPTransitory
	if proto == rule.UDP {
		silent = c.Timeouts.withDefaults().UDP
	}
	return max(affinity, silent+1) - silent
}

// Equal reports whether both plan the same.
func (c Config) Equal(other Config) bool { return reflect.DeepEqual(c, other) }

// Timeouts are the lifetimes of idle NAT sessions in seconds (nat_set_timeouts).
type Timeouts struct {
	// UDP is the lifetime of a UDP session. VPP's default of 300 keeps one session per DNS
	// query for five minutes.
	UDP uint32
	// TCPEstablished is the lifetime of a TCP session after a SYN and an ACK in both
	// directions.
	TCPEstablished uint32
	// TCPTransitory is the lifetime of a TCP session before that, and after a FIN or RST.
	TCPTransitory uint32
	// ICMP is the lifetime of an ICMP session.
	ICMP uint32
}

// DefaultTimeouts returns VPP's defaults except for UDP, which is one minute: VPP frees an expired
// session only when a packet needs its place, so short flows would fill the table.
func DefaultTimeouts() Timeouts {
	return Timeouts{UDP: 60, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}
}

// vppTimeouts returns the timeouts that VPP sets when the plugin is enabled.
func vppTimeouts() Timeouts {
	return Timeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}
}

// withDefaults returns the timeouts with every zero field replaced.
func (t Timeouts) withDefaults() Timeouts {
	defaults := DefaultTimeouts()
	for _, field := range [...]struct{ value, byDefault *uint32 }{
		{&t.UDP, &defaults.UDP},
		{&t.TCPEstablished, &defaults.TCPEstablished},
		{&t.TCPTransitory, &defaults.TCPTransitory},
		{&t.ICMP, &defaults.ICMP},
	} {
		if *field.value == 0 {
			*field.value = *field.byDefault
		}
	}
	return t
}
