package capture

import "strings"

// known are words for nodes, the exact name or a prefix with "*" before or behind it; the first
// that fits counts.
var known = []struct{ node, words string }{
	{"ip4-input", "checks the header of IPv4"},
	{"ip4-input-no-checksum", "checks the header of IPv4"},
	{"ip6-input", "checks the header of IPv6"},
	{"ethernet-input", "reads the Ethernet header"},
	{"cnat-input*", "CNAT: destination of a service becomes an endpoint"},
	{"cnat-output*", "CNAT: source of an answer becomes the service"},
	{"cnat-snat*", "CNAT: source of the client is replaced"},
	{"cnat-lookup*", "CNAT: looks for the session"},
	{"ip4-sv-reassembly*", "finds the ports, for fragments too"},
	{"ip6-sv-reassembly*", "finds the ports, for fragments too"},
	{"*worker-handoff", "NAT: hands the packet to the worker with its session"},
	{"nat44-ed-classify", "NAT: to a service, or from an endpoint?"},
	{"nat44-ed-out2in-slowpath", "NAT: new connection to a service, an endpoint is chosen"},
	{"nat44-ed-out2in", "NAT: known connection to a service, destination becomes the endpoint"},
	{"nat44-ed-in2out-slowpath", "NAT: no session from inside; new one, or left as it is"},
	{"nat44-ed-in2out*", "NAT: answer of an endpoint, source becomes the service"},
	{"nat44-ed-hairpin*", "NAT: client and endpoint are the same pod"},
	{"nat-pre-*", "NAT: finds the direction"},
	{"acl-plugin-*", "access list: source ranges of services, drops"},
	{"ip4-lookup", "looks for the route"},
	{"ip6-lookup", "looks for the route"},
	{"ip4-load-balance", "chooses one path of the route"},
	{"ip6-load-balance", "chooses one path of the route"},
	{"ip4-rewrite*", "writes the header of the next hop"},
	{"ip6-rewrite*", "writes the header of the next hop"},
	{"ip4-midchain", "puts the packet into a tunnel"},
	{"ip6-midchain", "puts the packet into a tunnel"},
	{"ip4-arp", "does not know the neighbour yet: asks by ARP instead"},
	{"ip6-discover-neighbor", "does not know the neighbour yet: asks by ND instead"},
	{"ip4-glean", "does not know the neighbour yet: asks by ARP instead"},
	{"ip6-glean", "does not know the neighbour yet: asks by ND instead"},
	{"ip4-icmp-error", "answers with an ICMP error"},
	{"ip6-icmp-error", "answers with an ICMP error"},
	{"ip4-receive", "for an address of VPP"},
	{"ip6-receive", "for an address of VPP"},
	{"ip4-local", "for an address of VPP"},
	{"ip6-local", "for an address of VPP"},
	{"ip4-drop", "dropped by the route"},
	{"ip6-drop", "dropped by the route"},
	{"error-drop", "dropped"},
	{"drop", "dropped, for the reason given"},
	{"*-output", "goes to the interface"},
	{"*-tx", "leaves VPP"},
	{"*-input", "enters VPP"},
}

// words says what a node of VPP's graph does; "" = it is not known.
func words(node string) string {
	for _, k := range known {
		switch before, behind := strings.CutPrefix(k.node, "*"); {
		case behind && strings.HasSuffix(node, before), node == k.node:
			return k.words
		}
		if prefix, is := strings.CutSuffix(k.node, "*"); is && strings.HasPrefix(node, prefix) {
			return k.words
		}
	}
	return ""
}
