package service

import (
	"fmt"
	"net/netip"
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
