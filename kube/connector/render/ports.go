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

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// port is one port of the Service.
type port struct {
	name     string // at the source
	label    string // in Kubernetes
	protocol corev1.Protocol
	number   uint16
	declared bool // number comes from the source; instances without ports have it too
}

// mostPorts is the largest number of ports of a Service, because older API servers allow no more in
// an EndpointSlice.
const mostPorts = 100

// admitted is an instance whose address may be used.
type admitted struct {
	catalog.Instance
	address netip.Addr
}

// report adds a problem of the service.
func (r *renderer) report(instance string, reason catalog.Reason, format string, args ...any) {
	r.problems = append(r.problems, catalog.Problem{Instance: instance, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// admitted returns the instances whose address may be used.
func (r *renderer) admitted() []admitted {
	var out []admitted
	for _, i := range r.named.Service.Instances {
		address, problem := r.options.Policy.Address(i)
		if problem != nil {
			r.problems = append(r.problems, *problem)
			continue
		}
		out = append(out, admitted{i, address})
	}
	return out
}

// ports returns the ports of the Service, ordered by label. The number of a port comes from the
// source, otherwise from the instances. If instances have different numbers, it is the lowest, with
// a problem. Unhealthy instances count, so that health does not change the Service.
func (r *renderer) ports(used []admitted) []port {
	numbers := map[string][]uint16{} // by name at the source, ordered
	for _, i := range used {
		for name, number := range i.Ports {
			if number != 0 {
				numbers[name] = append(numbers[name], number)
			}
		}
	}
	for name := range numbers {
		slices.Sort(numbers[name])
		numbers[name] = slices.Compact(numbers[name])
	}
	declared := r.named.Service.Ports
	if len(declared) == 0 {
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			declared = append(declared, catalog.Port{Name: name})
		}
	}
	if n := len(declared); n > mostPorts {
		r.report("", catalog.ReasonLimit, "%d ports, at most %d are used", n, mostPorts)
		declared = declared[:mostPorts]
	}
	var out []port
	for _, d := range declared {
		if p, ok := r.port(d, numbers[d.Name], out, len(declared)); ok {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b port) int { return cmp.Compare(a.label, b.label) })
	return out
}

// port returns the port of a Service for a port of the source. before are the ports that the
// Service has already, count is the number of ports at the source.
func (r *renderer) port(d catalog.Port, numbers []uint16, before []port, count int) (port, bool) {
	p := port{name: d.Name, label: d.Name, number: d.Number, declared: d.Number != 0}
	p.protocol = corev1.Protocol(strings.ToUpper(cmp.Or(d.Protocol, string(corev1.ProtocolTCP))))
	if d.Name != "" {
		p.label = catalog.Label("", d.Name)
	}
	if p.number == 0 && len(numbers) > 0 {
		p.number = numbers[0]
	}
	same := func(q port) bool {
		return q.label == p.label || q.number == p.number && q.protocol == p.protocol
	}
	known := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	switch {
	case !slices.Contains(known, p.protocol):
		r.report("", catalog.ReasonPort, "port %.40q: protocol %.20q is not one of TCP, UDP, SCTP", d.Name, d.Protocol)
	case p.label == "" && count > 1:
		r.report("", catalog.ReasonPort, "a port without a name must be the only one")
	case p.number == 0:
		r.report("", catalog.ReasonPort, "port %.40q: neither the service nor an instance has a number for it", d.Name)
	case slices.ContainsFunc(before, same):
		r.report("", catalog.ReasonPort, "port %.40q: name or number %d/%s occurs twice", d.Name, p.number, p.protocol)
	default:
		if !p.declared && len(numbers) > 1 {
			r.report("", catalog.ReasonPort, "port %.40q: instances use %d numbers, the Service has the lowest, %d", d.Name, len(numbers), p.number)
		}
		return p, true
	}
	return port{}, false
}

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
