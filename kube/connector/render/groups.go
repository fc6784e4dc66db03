package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// group holds the endpoints of one family that listen on the same ports.
type group struct {
	family    discoveryv1.AddressType
	ports     []port // number = port number of the endpoints
	endpoints []endpoint
}

// endpoint is one address of a group.
type endpoint struct {
	address netip.Addr
	state   catalog.State
	zone    string
}

// groups returns the instances grouped by family and ports, ordered.
func (r *renderer) groups(used []admitted, ports []port) []group {
	byKey := map[string]*group{}
	for _, i := range used {
		listening := r.listening(i, ports)
		if len(listening) == 0 {
			r.report(cmp.Or(i.ID, i.Address), catalog.ReasonPort, "serves none of the ports")
			continue
		}
		g := group{family: discoveryv1.AddressTypeIPv4, ports: listening}
		if i.address.Is6() {
			g.family = discoveryv1.AddressTypeIPv6
		}
		key := g.prefix("")
		if byKey[key] == nil {
			byKey[key] = &g
		}
		byKey[key].endpoints = append(byKey[key].endpoints, endpoint{i.address, i.State, i.Zone})
	}
	var out []group
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		g := byKey[key]
		slices.SortFunc(g.endpoints, compareEndpoints)
		unique := slices.CompactFunc(g.endpoints, func(a, b endpoint) bool { return a.address == b.address })
		if n := len(g.endpoints) - len(unique); n > 0 {
			r.report("", catalog.ReasonDuplicate, "%d instances have the address and ports of another one", n)
		}
		g.endpoints = unique
		out = append(out, *g)
	}
	return out
}

// listening returns the ports of the Service that an instance serves, with the instance's port
// numbers.
func (r *renderer) listening(i admitted, ports []port) []port {
	var out []port
	served := 0
	for _, p := range ports {
		number, named := i.Ports[p.name]
		switch {
		case i.Ports == nil && p.declared:
			out = append(out, p)
		case named && number != 0:
			p.number = number
			out = append(out, p)
		}
		if named {
			served++
		}
	}
	if served < len(i.Ports) {
		r.report(cmp.Or(i.ID, i.Address), catalog.ReasonPort, "the service does not have %d of its ports", len(i.Ports)-served)
	}
	return out
}

// prefix returns the beginning of the names of the slices of the group: "web-ipv4-0a1b2c3d-".
func (g *group) prefix(service string) string {
	hash := sha256.New()
	for _, p := range g.ports {
		fmt.Fprintf(hash, "%s %s %d\n", p.label, p.protocol, p.number) // never fails
	}
	return fmt.Sprintf("%s-%s-%s-", service, strings.ToLower(string(g.family)), hex.EncodeToString(hash.Sum(nil)[:4]))
}
