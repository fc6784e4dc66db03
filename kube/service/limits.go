package service

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/messages"
)

// Size is the amount of resources that a service asks of a node. It is known before Resolve, the
// renderers and VPP do any work for the service.
type Size struct {
	// Frontends counts the addresses of all ports as the Service lists them, including the
	// addresses of the node for node ports.
	Frontends int
	// Backends counts the endpoints behind each frontend, as the slices list them; at least the
	// endpoints of all ports of the slices.
	Backends int
	// VPP and Agent are the bytes that VPP and the agent need for the service, by Config.Costs.
	VPP, Agent int
	// Rules counts rules of access lists. Measure does not know them.
	Rules int
}

// add returns the sum.
func (s Size) add(t Size) Size {
	return Size{s.Frontends + t.Frontends, s.Backends + t.Backends, s.VPP + t.VPP, s.Agent + t.Agent, s.Rules + t.Rules}
}

// sub returns the difference.
func (s Size) sub(t Size) Size {
	return Size{s.Frontends - t.Frontends, s.Backends - t.Backends, s.VPP - t.VPP, s.Agent - t.Agent, s.Rules - t.Rules}
}

// resource is one field of a Size, with its name in texts and the settings that limit it.
type resource struct {
	of                               func(*Size) *int
	what, service, namespace, shared string
}

// resources lists the fields of a Size.
func resources() []resource {
	return []resource{
		{func(s *Size) *int { return &s.Frontends }, "frontends", "frontendsPerService", "frontendsPerNamespace", ""},
		{func(s *Size) *int { return &s.Backends }, "endpoints behind its frontends", "backendsPerService", "backendsPerNamespace", ""},
		{func(s *Size) *int { return &s.VPP }, "memory of VPP", "", "", "vppMemory"},
		{func(s *Size) *int { return &s.Agent }, "memory of the agent", "", "", "agentMemory"},
		{func(s *Size) *int { return &s.Rules }, "rules of access lists", "", "", ""},
	}
}

// Limits bound what services may ask of a node; 0 = no limit. A service above a limit is not served
// at all, because its owner could not know which part of its ports is served.
type Limits struct {
	// Service limits each service. Namespace limits the sum of the services of a namespace,
	// without services above Service.
	Service, Namespace Size
	// Node limits the sum of all namespaces. It is divided between them, see Budget.
	Node Size
}

// over returns the first resource that exceeds a limit; nil = none.
func (s Size) over(limit Size) *resource {
	for _, r := range resources() {
		if most := *r.of(&limit); most > 0 && *r.of(&s) > most {
			return &r
		}
	}
	return nil
}

// Exceeded says why a service of this size is never served, even alone in its namespace; "" = it
// may be served.
func (l Limits) Exceeded(s Size) string {
	if r := s.over(l.Service); r != nil {
		return fmt.Sprintf("it has %d %s, a service may have %d (services.limits.%s)", *r.of(&s), r.what, *r.of(&l.Service), r.service)
	}
	return ""
}

// Cost is the number of bytes that the frontends of one IP family need.
type Cost struct {
	// Frontend counts for each frontend, Backend for each endpoint behind a frontend. Spread
	// counts in addition for each frontend with ClientIP affinity or consistent hashing.
	// Address counts for each address that the Service or its slices list.
	Frontend, Backend, Spread, Address int
}

// Costs are the bytes that services need; the zero value counts nothing.
type Costs struct {
	// IPv4 and IPv6 are bytes of VPP's main heap. Agent are bytes of this process, for both
	// families.
	IPv4, IPv6, Agent Cost
}

// charge enters the bytes for the frontends and backends of one family, at so many addresses.
func (c *Costs) charge(s *Size, family messages.IPFamily, addresses int, spread bool) {
	vpp := c.IPv4
	if family == messages.IPFamily_IPV6 {
		vpp = c.IPv6
	}
	s.VPP = s.Frontends*vpp.Frontend + s.Backends*vpp.Backend + addresses*vpp.Address
	if spread {
		s.VPP += s.Frontends * vpp.Spread
	}
	s.Agent = s.Frontends*c.Agent.Frontend + s.Backends*c.Agent.Backend
}

// Measure returns the size of a service. It reads the objects once and builds no rows. An entry
// that is listed twice counts twice.
func Measure(in *messages.ServiceInput, node *messages.NodeContext, cfg *Config) Size {
	service := in.GetService()
	if notServed(service) != "" {
		return Size{}
	}
	var size Size
	for _, family := range families {
		addresses := countOf(service.GetClusterIps(), family)
		if addresses == 0 {
			continue
		}
		addresses += countOf(service.GetExternalIps(), family)
		for _, ingress := range service.GetLoadBalancer() {
			addresses += countOf([]string{ingress.GetIp()}, family)
		}
		endpoints, listed, different := countEndpoints(in, family)
		nodes := -1
		var of Size
		for _, port := range service.GetPorts() {
			frontends := addresses
			if hasNodePort(port) {
				if nodes < 0 {
					nodes = len(cfg.NodePortAddresses.choose(node, family))
				}
				frontends += nodes
			}
			of = of.add(Size{Frontends: frontends, Backends: frontends * endpoints[nameOf(port)]})
		}
		of.Backends = max(of.Backends, listed)
		cfg.Costs.charge(&of, family, addresses+max(nodes, 0)+different, service.GetAffinitySeconds() > 0 || service.GetMaglev())
		size = size.add(of)
	}
	return size
}

// countOf counts the addresses of a family.
func countOf(texts []string, family messages.IPFamily) (n int) {
	for _, text := range texts {
		if a, ok := parseAddress(text); ok && a.family() == family {
			n++
		}
	}
	return n
}

// portName joins the ports of a Service with the ports of its slices.
type portName struct {
	name     string
	protocol messages.Protocol
}

// named is a port of a Service or of a slice.
type named interface {
	GetName() string
	GetProtocol() messages.Protocol
}

// nameOf returns the name of a port.
func nameOf(p named) portName { return portName{p.GetName(), p.GetProtocol()} }

// countEndpoints counts the endpoints of a family by the name of their port, the sum over all
// ports, and the addresses.
func countEndpoints(in *messages.ServiceInput, family messages.IPFamily) (byPort map[portName]int, all, addresses int) {
	byPort = map[portName]int{}
	for _, slice := range in.GetSlices() {
		if !offersEndpoints(slice, in.GetService(), family) {
			continue
		}
		addresses += len(slice.GetEndpoints())
		for _, p := range slice.GetPorts() {
			byPort[nameOf(p)] += len(slice.GetEndpoints())
			all += len(slice.GetEndpoints())
		}
	}
	return byPort, all, addresses
}

// Refuse returns the view of a service that the agent does not serve, for a reason that is not in
// its objects. The rules of Resolve hold.
func Refuse(in *messages.ServiceInput, why string) *messages.ServiceView {
	service := in.GetService()
	view := &messages.ServiceView{Key: in.GetKey(), Uid: service.GetUid(), Created: service.GetCreated(), Refused: why}
	r := resolver{in: in, view: view}
	view.Errors = append(view.Errors, in.GetErrors()...)
	r.report("", "not served: "+why)
	sortErrors(view.Errors)
	return view
}

// Config is the part of the agent's configuration that changes what a service means on this node.
// The zero value serves node ports on the primary addresses, recognises no local pods and
// masquerades nothing on cluster IPs. A Config is read only, so any number of goroutines may share
// it.
type Config struct {
	// NodePortAddresses are the addresses of this node for node ports and health-check node ports.
	// The zero value means the primary address of each family.
	NodePortAddresses NodePortAddresses
	// ClusterCIDRs is the local detector: a packet whose source lies inside comes from a pod of
	// this node. A family without an entry has no detector, so no client of that family is
	// recognised as a pod, and ClusterIP traffic of that family is not masqueraded.
	ClusterCIDRs []netip.Prefix
	// NodesPodNetworks takes the pod networks of the nodes (spec.podCIDRs) instead of ClusterCIDRs.
	NodesPodNetworks bool
	// ServiceCIDRs are the ranges from which Kubernetes allocates cluster IPs. Table drops packets
	// to an address in these ranges that no service has. Resolve does not use them.
	ServiceCIDRs []netip.Prefix
	// ExternalIPs are the networks whose addresses services may name in spec.externalIPs; nil
	// allows all addresses. An address outside of them is not served.
	ExternalIPs []netip.Prefix
	// MasqueradeAll masquerades every packet to a cluster IP, from any client.
	MasqueradeAll bool
	// Limits bound the size of a service and of all services of the node; the zero value limits
	// nothing.
	Limits Limits
	// Costs are the sizes in bytes by which Limits.Node is counted.
	Costs Costs
}
