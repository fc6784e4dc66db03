package cnat

import (
	"net/netip"
	"reflect"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Config holds the settings of the planner. The zero value serves IPv6 only, without source NAT.
type Config struct {
	// Node is the name of the node. It seeds the choice of backends where a service has more
	// than fit into a row.
	Node string
	// IPv4 says that this renderer serves IPv4 too; otherwise another one does.
	IPv4 bool
	// SNAT are the addresses, at most one of each family, that replace the source of clients
	// where answers have to come back through this node, and where a pod reaches itself: routed
	// to this node and not used by any other host, by default the last address of the node's
	// pod CIDR of the family. The address of a family that is not served is not set.
	SNAT []netip.Addr
	// OthersNAT says that source NAT belongs to another client of VPP, so that the source of no
	// client is replaced (Others).
	OthersNAT bool
	// Unreachable says that addresses without a row are refused by unreachable routes
	// (vpp/routes). It changes no row, only what the plan reports for frontends without one.
	Unreachable bool
	// Services are the networks of the cluster IPs.
	Services []netip.Prefix
	// Others are the pod networks of the other nodes.
	Others []netip.Prefix
	// Ground are the addresses that no service may claim.
	Ground rule.Ground
}

// ForNode completes the configuration for a node: an unset SNAT address is the last one of the
// node's pod CIDR of its family. The agent and a dry run both use it, so that they plan the same
// rows.
func (c Config) ForNode(self *messages.Node) Config {
	if len(c.SNAT) > 0 {
		return c
	}
	found := map[bool]netip.Addr{}
	for _, prefix := range rule.Networks(self.GetPodCidrs()) {
		if prefix.Addr().Is4In6() || prefix.Addr().BitLen()-prefix.Bits() < 2 {
			continue
		}
		if ip6 := prefix.Addr().Is6(); !found[ip6].IsValid() {
			found[ip6] = rule.LastAddress(prefix)
			c.SNAT = append(c.SNAT, found[ip6])
		}
	}
	return c
}

// InCluster completes the configuration with the state of the cluster.
func (c Config) InCluster(begin *messages.Begin) Config {
	for _, p := range rule.Networks(begin.GetServiceCidrs()) {
		if !slices.Contains(c.Services, p.Masked()) {
			c.Services = append(slices.Clip(c.Services), p.Masked())
		}
	}
	own := rule.Networks(begin.GetNode().GetNode().GetPodCidrs())
	for _, p := range rule.Networks(begin.GetPodNetworks()) {
		if p.Bits() > 0 && !slices.Contains(own, p) {
			c.Others = append(c.Others, p.Masked())
		}
	}
	return c
}

// snat is the address of a family; unspecified = none, as in VPP.
func (c Config) snat(ip6 bool) netip.Addr {
	for _, a := range c.SNAT {
		if a.Is6() == ip6 {
			return a
		}
	}
	if ip6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// Equal reports whether both plan the same.
func (c Config) Equal(other Config) bool { return reflect.DeepEqual(c, other) }
