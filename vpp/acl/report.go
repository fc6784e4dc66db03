package acl

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Reasons why VPP does not do exactly what Kubernetes asks for.
const (
	whyClass     = "an access list recognises a client by the interface through which it enters, Kubernetes by its address"
	whyFamily    = "ACLs are made for IPv4 only"
	whyFragments = "later fragments carry no port: VPP compares address and protocol only"
	whyClosed    = "later fragments carry no port, so that rules for its source ranges would drop those to every UDP port of an address that others use"
	whyUnserved  = "VPP can have no ACL for it: the ACL plugin is not loaded, or there is no room"
)

// NoRow is the rendering of a frontend whose source ranges cannot be enforced.
const NoRow = "no row: not served"

// unserved reports, once per frontend, that the current frontend is not served without its rules.
func (p *planner) unserved(sources []string) {
	if n := len(p.plan.Unserved); n > 0 && p.plan.Unserved[n-1].GetFrontend() == p.name {
		return
	}
	const most = 8 // every frontend of the service says it
	text := strings.Join(sources[:min(most, len(sources))], ", ")
	if more := len(sources) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	p.plan.Unserved = append(p.plan.Unserved, &messages.Approximation{
		Service: p.plan.Service, Frontend: p.name, Wanted: "only clients from " + text, Rendered: NoRow, Why: whyUnserved,
	})
}

// reportClass reports that a rule for one class of clients misses clients whose address is of the
// other class: pods of other nodes, which enter from outside, and where there is no cluster CIDR
// the pods of this node.
func (p *planner) reportClass(r Rule) {
	if r.Class == Any {
		return
	}
	p.plan.Approximations = append(p.plan.Approximations, &messages.Approximation{
		Service: p.plan.Service, Frontend: p.name, Wanted: "from " + r.Class.String() + ": drop, by the address of the client",
		Rendered: "drop what enters from " + map[Class]string{Remote: "outside this node", Local: "this node"}[r.Class] + ", whatever its address",
		Why:      whyClass,
	})
}

// reportFragments reports, once per frontend, that fragmented datagrams to other ports of the
// address are dropped as well.
func (p *planner) reportFragments(r Rule) {
	if !udp(r) || p.told == p.name {
		return
	}
	p.told = p.name
	p.plan.Approximations = append(p.plan.Approximations, &messages.Approximation{
		Service: p.plan.Service, Frontend: p.name, Wanted: "datagrams to port " + strconv.Itoa(int(r.Port)) + " dropped",
		Rendered: "also those to other UDP ports of " + r.VIP.String() + " that come in fragments, from the same clients", Why: whyFragments,
	})
}

// unrendered reports that the current frontend, or a part of it, has no rule.
func (p *planner) unrendered(f *messages.Frontend, field, message string) {
	p.plan.Unrendered = append(p.plan.Unrendered, &messages.ObjectError{
		Source: Renderer, Kind: "Service", Object: p.plan.Service, Field: "ports[" + f.GetPortName() + "]." + field, Message: message,
	})
}

// frontendText returns "ip:port/PROTO", IPv6 in brackets; an invalid address is returned as it is.
func frontendText(f *messages.Frontend) string {
	if addr, err := netip.ParseAddr(f.GetAddress()); err == nil {
		return rule.Key{Addr: addr, Port: uint16(f.GetPort()), Proto: uint8(f.GetProtocol())}.String()
	}
	return f.GetAddress() + ":" + strconv.FormatUint(uint64(f.GetPort()), 10) + "/" + strconv.Itoa(int(f.GetProtocol()))
}
