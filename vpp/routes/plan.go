package routes

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Stance is what a service wants for packets to one of its addresses that have no row. Where wishes meet, in a service or between
// services, the larger one counts.
type Stance uint8

const (
	// Spare wants the client to be told where no other port of the address says otherwise: every port that matters has a row.
	Spare Stance = iota + 1
	// Ignore wants silence: the service has endpoints, but none for clients here.
	Ignore
	// Refuse wants the client to be told: the service has no endpoints.
	Refuse
	// Leave wants the packet to follow the routes of VPP: somebody else in the network may serve it.
	Leave
	// Network is no wish of a service: a service network is refused as a whole, also where it is one address.
	Network
)

// Claim is the wish of one service for one address.
type Claim struct {
	// Addr is the address.
	Addr netip.Addr
	// Stance is what is wanted.
	Stance Stance
	// External says that the address is not a cluster IP, so that it may be that of a host.
	External bool
}

// ServicePlan is what this package makes of one service.
type ServicePlan struct {
	// Service is its key, "namespace/name".
	Service string
	// Claims, ordered by address, at most one per address.
	Claims []Claim
}

// Plan returns what a service wants to happen at its addresses, as seen from this node. It is pure: the same view and configuration give
// the same plan.
//
// Cluster IPs are refused, or ignored where Kubernetes drops for want of local endpoints. External addresses are refused only where the
// service has no endpoints at all: what is dropped here, and what has no row for another reason (SCTP), may be served by another node, to
// which the packet finds its way. Node ports are no affair of routes, their addresses are those of VPP.
func Plan(view *messages.ServiceView, cfg Config) *ServicePlan {
	plan := &ServicePlan{Service: view.GetKey()}
	claims := map[netip.Addr]Claim{}
	for _, f := range view.GetFrontends() {
		addr, err := netip.ParseAddr(f.GetAddress())
		if err != nil || !usable(addr) {
			continue
		}
		stance := stanceOf(f, addr, cfg)
		if stance == 0 {
			continue
		}
		mine := Claim{Addr: addr, Stance: stance, External: f.GetScope() == messages.Scope_SCOPE_EXTERNAL}
		if other, found := claims[addr]; found {
			mine = mine.merge(other)
		}
		claims[addr] = mine
	}
	plan.Claims = slices.SortedFunc(maps.Values(claims), func(a, b Claim) int { return a.Addr.Compare(b.Addr) })
	return plan
}

// merge combines two wishes for the same address.
func (c Claim) merge(other Claim) Claim {
	c.Stance = max(c.Stance, other.Stance)
	c.External = c.External && other.External
	return c
}

// stanceOf returns what one frontend wants for its address; 0 = it does not care.
func stanceOf(f *messages.Frontend, addr netip.Addr, cfg Config) Stance {
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
		case action == messages.Action_ACTION_REJECT:
			return Refuse
		case action == messages.Action_ACTION_DROP, !served(f, addr, cfg):
			return Leave
		}
	}
	return 0
}

// served reports whether a frontend that forwards has a row.
func served(f *messages.Frontend, addr netip.Addr, cfg Config) bool {
	proto := f.GetProtocol()
	return (addr.Is4() || cfg.IPv6) && (proto == messages.Protocol_TCP || proto == messages.Protocol_UDP)
}
