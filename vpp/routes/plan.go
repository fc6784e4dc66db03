package routes

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Stance is what a service wants for packets without a row to one of its addresses. Where several
// apply, in a service or between services, the largest one counts.
type Stance uint8

const (
	// Spare refuses the packet unless another port of the address has a larger stance: every
	// port of the service has a row.
	Spare Stance = iota + 1
	// Ignore drops the packet without an answer: the service has endpoints, but none for
	// clients of this node.
	Ignore
	// Refuse rejects the packet: the service has no endpoints.
	Refuse
	// Leave lets packets follow the routes of VPP: a port of the address is served, here or by
	// another node.
	Leave
	// Network is no stance of a service: a service network is refused as a whole, also where it
	// is one address.
	Network
)

// Claim is the stance of one service for one address.
type Claim struct {
	// Addr is the address.
	Addr netip.Addr
	// Stance for packets without a row.
	Stance Stance
	// External says that the address is not a cluster IP, so that a host may have it. It does
	// not count where another claim is for a cluster IP.
	External bool
}

// ServicePlan is the result of Plan for one service.
type ServicePlan struct {
	// Service is its key, "namespace/name".
	Service string
	// Claims, ordered by address, at most one per address.
	Claims []Claim
	// Refused are the frontends of TCP and UDP that the claims are to refuse, in their order.
	Refused []*messages.Frontend
}

// Plan returns the claims of a service on its addresses, as seen from this node. It is pure: the
// same view and configuration give the same plan.
//
// Cluster IPs are refused, or ignored where Kubernetes drops because no endpoint is local.
// Load-balancer addresses are refused only where no port is served: packets that are dropped here,
// or have no row for another reason (SCTP), may be served by another node, and VPP routes them
// there. External IPs get no route, because their authors may name any host, and a route is for all
// ports of it. Node ports get none, because their addresses are those of VPP.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	plan := &ServicePlan{Service: view.GetKey()}
	claims := map[netip.Addr]Claim{}
	for _, f := range view.GetFrontends() {
		addr, err := netip.ParseAddr(f.GetAddress())
		if err != nil || !usable(addr) {
			continue
		}
		stance := stanceOf(f, cfg)
		if stance == 0 {
			continue
		}
		mine := Claim{Addr: addr, Stance: stance, External: f.GetScope() == messages.Scope_SCOPE_EXTERNAL}
		if other, found := claims[addr]; found {
			mine = mine.merge(other)
		}
		claims[addr] = mine
	}
	for _, f := range view.GetFrontends() {
		addr, _ := netip.ParseAddr(f.GetAddress())
		known := f.GetProtocol() == messages.Protocol_TCP || f.GetProtocol() == messages.Protocol_UDP
		if known && f.GetAction() == messages.Action_ACTION_REJECT && claims[addr].Stance == Refuse {
			plan.Refused = append(plan.Refused, f)
		}
	}
	plan.Claims = slices.SortedFunc(maps.Values(claims), func(a, b Claim) int { return a.Addr.Compare(b.Addr) })
	return plan
}

// merge combines two claims on the same address.
func (c Claim) merge(other Claim) Claim {
	switch {
	case c.External == other.External:
		c.Stance = max(c.Stance, other.Stance)
	case c.External:
		c.Stance, c.External = other.Stance, false
	}
	return c
}

// stanceOf returns the stance of one frontend for its address; 0 = none.
func stanceOf(f *messages.Frontend, cfg Config) Stance {
	action := f.GetAction()
	switch f.GetScope() {
	case messages.Scope_SCOPE_CLUSTER:
		switch {
		case action == messages.Action_ACTION_REJECT:
			return Refuse
		case action == messages.Action_ACTION_DROP:
			return Ignore
		case cfg.OtherPorts:
			return Spare
		}
	case messages.Scope_SCOPE_EXTERNAL:
		switch {
		case action != messages.Action_ACTION_REJECT:
			return Leave
		case rule.RankOf(f) == rule.OfIdleLoadBalancer:
			return Refuse
		}
	}
	return 0
}

// Config holds the settings of Plan.
type Config struct {
	// OtherPorts refuses the ports without a row of a cluster IP that has rows, also after
	// NAT44 has entered the address into the FIB; where one of its ports is to be dropped, all
	// of them are. It costs one route per cluster IP. Without it the route of the service
	// network refuses such a port until NAT44 enters the address, and VPP ignores its packets
	// from then on.
	OtherPorts bool
}
