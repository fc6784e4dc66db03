package service

import (
	"fmt"

	"github.com/troupe-vpp/troupe/messages"
)

// Size is what a service asks of a node: it says how much Resolve, renderers and VPP have to do for it, before any of them does.
type Size struct {
	// Frontends counts the addresses of all ports as the Service lists them, the addresses of the node for node ports among them.
	Frontends int
	// Backends counts the endpoints behind each frontend, as the slices list them; at least the endpoints of all ports of the slices.
	Backends int
}

// add returns the sum.
func (s Size) add(t Size) Size { return Size{s.Frontends + t.Frontends, s.Backends + t.Backends} }

// sub returns the difference.
func (s Size) sub(t Size) Size { return Size{s.Frontends - t.Frontends, s.Backends - t.Backends} }

// Limits are how much a service, and all services of a namespace together, may ask of a node; 0 = any number. One that asks for more is not served
// at all: to serve a part of it would hand out some of its ports by an order that its owner does not know.
type Limits struct {
	// Service limits each service, Namespace the sum of those of one namespace that are within Service.
	Service, Namespace Size
}

// exceeds reports whether a size is above a limit.
func (s Size) exceeds(limit Size) bool {
	return limit.Frontends > 0 && s.Frontends > limit.Frontends || limit.Backends > 0 && s.Backends > limit.Backends
}

// Exceeded says why a service of this size is not served, whatever else there is in its namespace; "" = it may be.
func (l Limits) Exceeded(s Size) string {
	switch most := l.Service; {
	case !s.exceeds(most):
		return ""
	case most.Frontends > 0 && s.Frontends > most.Frontends:
		return fmt.Sprintf("it has %d frontends, a service may have %d (services.limits.frontendsPerService)", s.Frontends, most.Frontends)
	default:
		return fmt.Sprintf("it has %d endpoints behind its frontends, a service may have %d (services.limits.backendsPerService)", s.Backends, most.Backends)
	}
}

// Measure returns the size of a service. Its cost is that of reading the objects once: nothing is multiplied out. What is listed twice counts
// twice.
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
		endpoints, listed := countEndpoints(in, family)
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
			of = of.add(Size{frontends, frontends * endpoints[nameOf(port)]})
		}
		of.Backends = max(of.Backends, listed)
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

// portName is what joins the ports of a Service with those of its slices.
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

// countEndpoints counts the endpoints of a family by the name of their port, and all of them.
func countEndpoints(in *messages.ServiceInput, family messages.IPFamily) (byPort map[portName]int, all int) {
	byPort = map[portName]int{}
	for _, slice := range in.GetSlices() {
		if !offersEndpoints(slice, in.GetService(), family) {
			continue
		}
		for _, p := range slice.GetPorts() {
			byPort[nameOf(p)] += len(slice.GetEndpoints())
			all += len(slice.GetEndpoints())
		}
	}
	return byPort, all
}

// Refuse returns the view of a service that the agent does not serve, for a reason that is not in its objects. The rules of Resolve hold.
func Refuse(in *messages.ServiceInput, why string) *messages.ServiceView {
	service := in.GetService()
	view := &messages.ServiceView{Key: in.GetKey(), Uid: service.GetUid(), Created: service.GetCreated(), Refused: why}
	r := resolver{in: in, view: view}
	view.Errors = append(view.Errors, in.GetErrors()...)
	r.report("", "not served: "+why)
	sortErrors(view.Errors)
	return view
}
