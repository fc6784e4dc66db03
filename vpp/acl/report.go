package acl

import (
	"fmt"
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
	if n := len(p.plan.Unserved); n > 0 && p.plan.Unserved[n-1].GetFrontend() == p.Frontend {
		return
	}
	const most = 8 // every frontend of the service says it
	text := strings.Join(sources[:min(most, len(sources))], ", ")
	if more := len(sources) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	p.plan.Unserved = append(p.plan.Unserved, &messages.Approximation{
		Service: p.Service, Frontend: p.Frontend, Wanted: "only clients from " + text, Rendered: NoRow, Why: whyUnserved,
	})
}

// reportClass reports that a rule for one class of clients misses clients whose address is of the
// other class: pods of other nodes, which enter from outside, and where there is no cluster CIDR
// the pods of this node.
func (p *planner) reportClass(r Rule) {
	if r.Class == Any {
		return
	}
	p.Approximate("from "+r.Class.String()+": drop, by the address of the client",
		"drop what enters from "+map[Class]string{Remote: "outside this node", Local: "this node"}[r.Class]+", whatever its address", whyClass)
}

// reportFragments reports, once per frontend, that fragmented datagrams to other ports of the
// address are dropped as well.
func (p *planner) reportFragments(r Rule) {
	if r.Proto != rule.UDP || p.told == p.Frontend {
		return
	}
	p.told = p.Frontend
	p.Approximate("datagrams to port "+strconv.Itoa(int(r.Port))+" dropped",
		"also those to other UDP ports of "+r.VIP.String()+" that come in fragments, from the same clients", whyFragments)
}
