package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// nodePortMode is the way in which the node-port addresses are chosen.
type nodePortMode uint8

const (
	nodePortsPrimary nodePortMode = iota // the primary address and the CIDRs
	nodePortsAll
	nodePortsCIDRs
)

// NodePortAddresses are the addresses of a node for its node ports (nodePortAddresses of the
// KubeProxyConfiguration). The zero value is "primary", the default of the nftables mode. Make
// others with ParseNodePortAddresses.
type NodePortAddresses struct {
	mode  nodePortMode
	cidrs []netip.Prefix
}

// ParseNodePortAddresses reads the configured words. An empty list, or "all" alone, means every
// address of the node except loopback. Otherwise the list is the union of its words: "primary" is
// the Node's first address of each family, and a CIDR stands for the addresses in it. Without
// "primary", a family that has no CIDR in the list is served on all of its addresses. The error is
// an ErrNodePortAddresses that names the word.
func ParseNodePortAddresses(words []string) (NodePortAddresses, error) {
	if len(words) == 0 {
		return NodePortAddresses{mode: nodePortsAll}, nil
	}
	parsed := NodePortAddresses{mode: nodePortsCIDRs}
	for _, word := range words {
		word = strings.TrimSpace(word)
		switch {
		case word == "all" && len(words) > 1:
			return NodePortAddresses{}, fmt.Errorf("%w: %q must stand alone", ErrNodePortAddresses, word)
		case word == "all":
			return NodePortAddresses{mode: nodePortsAll}, nil
		case word == "primary":
			parsed.mode = nodePortsPrimary
			continue
		}
		prefix, ok := parsePrefix(word)
		if !ok {
			return NodePortAddresses{}, fmt.Errorf("%w: %q is not a CIDR", ErrNodePortAddresses, word)
		}
		parsed.cidrs = append(parsed.cidrs, prefix)
	}
	return parsed, nil
}

// String returns the words that ParseNodePortAddresses reads, separated by commas; the CIDRs in
// canonical form.
func (n NodePortAddresses) String() string {
	var words []string
	switch n.mode {
	case nodePortsPrimary:
		words = append(words, "primary")
	case nodePortsAll:
		words = append(words, "all")
	}
	for _, cidr := range n.cidrs {
		words = append(words, cidr.String())
	}
	return strings.Join(words, ",")
}

// Select returns the addresses of one family on which node ports are served, in the order of the
// node's addresses, canonical, without duplicates. Loopback is never among them: kube-proxy serves
// node ports on 127.0.0.1 in iptables mode only.
func (n NodePortAddresses) Select(node *messages.NodeContext, family messages.IPFamily) []string {
	chosen := n.choose(node, family)
	texts := make([]string, len(chosen))
	for i, a := range chosen {
		texts[i] = a.text
	}
	return texts
}

// choose is Select with the parsed addresses.
func (n NodePortAddresses) choose(node *messages.NodeContext, family messages.IPFamily) []address {
	every := n.mode == nodePortsAll || n.mode == nodePortsCIDRs && !hasFamily(n.cidrs, family)
	primary, _ := primaryAddress(node, family)
	var chosen []address
	for _, text := range node.GetAddresses() {
		a, ok := parseAddress(text)
		if !ok || a.family() != family {
			continue
		}
		meant := every || n.mode == nodePortsPrimary && a.ip == primary.ip || anyContains(n.cidrs, a.ip)
		if meant && !a.ip.IsLoopback() && !containsAddress(chosen, a.ip) {
			chosen = append(chosen, a)
		}
	}
	return chosen
}

// primaryAddress returns the first address of the family in the Node object: InternalIP before
// ExternalIP. Addresses that only VPP has are not primary.
func primaryAddress(node *messages.NodeContext, family messages.IPFamily) (address, bool) {
	for _, text := range node.GetNode().GetAddresses() {
		if a, ok := parseAddress(text); ok && a.family() == family {
			return a, true
		}
	}
	return address{}, false
}

// containsAddress reports whether the list has the address.
func containsAddress(list []address, ip netip.Addr) bool {
	for _, a := range list {
		if a.ip == ip {
			return true
		}
	}
	return false
}

// allowSources returns the canonical ranges of one family in spec.loadBalancerSourceRanges, ordered
// by text. nil allows every client: the family has no range, or one that contains everything. If a
// range contains the node's primary address, the load-balancer addresses of the service are allowed
// too. A packet from this node to the load balancer may come back with the load balancer's address
// as its source.
//
// A range that cannot be read admits no client. If the family has no other range, the result is
// closed: no client is admitted. kube-proxy ignores such a range and admits every client, although
// the list was written to keep clients out.
func allowSources(ranges []string, family messages.IPFamily, loadBalancer []address, node *messages.NodeContext) (allow []string, closed bool) {
	var prefixes []netip.Prefix
	for _, text := range ranges {
		prefix, ok := parsePrefix(text)
		closed = closed || !ok
		if !ok || familyOf(prefix.Addr()) != family {
			continue
		}
		if prefix.Bits() == 0 {
			return nil, false
		}
		prefixes = append(prefixes, prefix)
	}
	if len(prefixes) == 0 {
		return nil, closed
	}
	if primary, ok := primaryAddress(node, family); ok && anyContains(prefixes, primary.ip) {
		for _, lb := range loadBalancer {
			prefixes = append(prefixes, netip.PrefixFrom(lb.ip, lb.ip.BitLen()))
		}
	}
	allowed := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		allowed[i] = prefix.String()
	}
	slices.Sort(allowed)
	return slices.Compact(allowed), false
}

// detects reports whether pods of the family are recognised on the node.
func (c *Config) detects(node *messages.NodeContext, family messages.IPFamily) bool {
	if c.NodesPodNetworks {
		return hasFamily(Networks(node.GetNode().GetPodCidrs()), family)
	}
	return hasFamily(c.ClusterCIDRs, family)
}

// PodNetworks returns the networks of all pods of the cluster, merged: the networks of the
// configuration, or the pod networks of the nodes.
func (c *Config) PodNetworks(nodes map[string]*messages.Node) []netip.Prefix {
	if !c.NodesPodNetworks {
		return merge(slices.Clone(c.ClusterCIDRs))
	}
	var texts []string
	for _, node := range nodes {
		texts = append(texts, node.GetPodCidrs()...)
	}
	return merge(Networks(texts))
}

// Networks parses networks in CIDR notation and leaves out other texts.
func Networks(texts []string) (networks []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, p.Masked())
		}
	}
	return networks
}

// merge orders networks, leaves out those inside others and joins neighbours: the result has the
// same addresses. It reuses the slice.
func merge(networks []netip.Prefix) []netip.Prefix {
	slices.SortFunc(networks, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	merged := networks[:0]
	for _, p := range networks {
		if n := len(merged); n > 0 && merged[n-1].Overlaps(p) {
			continue // the larger one comes first
		}
		merged = append(merged, p)
		for n := len(merged); n > 1; n = len(merged) {
			a, b := merged[n-2], merged[n-1]
			both := netip.PrefixFrom(a.Addr(), a.Bits()-1)
			if a.Bits() == 0 || a.Bits() != b.Bits() || both.Masked() != both || !both.Contains(b.Addr()) {
				break
			}
			merged = append(merged[:n-2], both)
		}
	}
	return merged
}

// rowPolicy names the rule about source addresses that applies to a row.
type rowPolicy uint8

const (
	// policyInternal is a cluster IP.
	policyInternal rowPolicy = iota
	// policyExternalCluster is an external frontend with the Cluster policy, or without any
	// endpoint.
	policyExternalCluster
	// policyExternalLocalRemote is an external frontend with the Local policy, for remote clients,
	// whose address must be kept.
	policyExternalLocalRemote
	// policyExternalLocalLocal is the same frontend for clients on this node, which reach all
	// endpoints of the cluster.
	policyExternalLocalLocal
)

// masqueradeFrom returns the client classes whose source address a forwarding row replaces. A
// cluster IP masquerades every client that the detector does not recognise as a pod of this node;
// without a detector it masquerades no client. An external frontend with the Cluster policy
// masquerades every client, so that answers come back here. With the Local policy the address of a
// remote client is never changed. Clients on this node are masqueraded only if they are host
// processes, because their endpoint may be on any node. Answers to a pod find their way back
// without it.
func masqueradeFrom(policy rowPolicy, detector, masqueradeAll bool) []string {
	switch policy {
	case policyInternal:
		if masqueradeAll {
			return []string{ClassPod, ClassNode, ClassRemote}
		}
		if detector {
			return []string{ClassNode, ClassRemote}
		}
		return nil
	case policyExternalCluster:
		return []string{ClassPod, ClassNode, ClassRemote}
	case policyExternalLocalLocal:
		return []string{ClassNode}
	default:
		return nil
	}
}
