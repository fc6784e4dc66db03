package service

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// families are the passes of Resolve, in the order of their results.
var families = [...]messages.IPFamily{messages.IPFamily_IPV4, messages.IPFamily_IPV6}

// Resolve returns the view of one service: the frontends that this node must serve. It is pure and
// total: every input gives a view, and no input causes a panic. Equal inputs give equal views,
// whatever the order of slices and endpoints. A nil input, a nil node (nothing is local, no node
// ports) and the zero Config are allowed. An unusable part of the input, such as an invalid address
// or an unknown protocol, is left out and reported in the errors of the view. The rest is served. A
// service above a limit of the Config is not served: its view has no frontends and says why.
//
// The arguments are not modified. The view shares strings and problems with them, and its rows
// share backends with each other; it is immutable.
func Resolve(in *messages.ServiceInput, node *messages.NodeContext, cfg Config) *messages.ServiceView {
	if cfg.Limits.Service != (Size{}) {
		if why := cfg.Limits.Exceeded(Measure(in, node, &cfg)); why != "" {
			return Refuse(in, why) // before its rows take any memory
		}
	}
	service := in.GetService()
	view := &messages.ServiceView{Key: in.GetKey(), Uid: service.GetUid(), Created: service.GetCreated(), NotServed: notServed(service)}
	r := resolver{in: in, service: service, node: node, cfg: &cfg, view: view}
	// An unknown node has an empty name, which is the node of no endpoint: nothing is local
	// then.
	r.at = place{node: node.GetNode().GetName(), zone: node.GetNode().GetZone()}
	if len(in.GetErrors()) > 0 {
		view.Errors = slices.Clone(in.GetErrors())
	}
	if view.NotServed == "" {
		r.resolve()
	}
	// The order of slices has no meaning, so the view must not depend on it.
	sortErrors(view.Errors)
	return view
}

// notServed returns the reason why a service can have no frontends; "" if it can have some.
func notServed(service *messages.Service) string {
	switch {
	case service == nil:
		return NotServedNoService
	case service.GetForeignProxy():
		return NotServedForeignProxy
	// This case comes before "headless" and "no cluster IP": an ExternalName has no cluster IP
	// either, and its type is the reason that helps a user.
	case service.GetType() == messages.ServiceType_EXTERNAL_NAME:
		return NotServedExternalName
	case service.GetHeadless():
		return NotServedHeadless
	case len(service.GetClusterIps()) == 0:
		return NotServedNoClusterIP
	default:
		return ""
	}
}

// resolver is one call of Resolve.
type resolver struct {
	in      *messages.ServiceInput
	service *messages.Service
	node    *messages.NodeContext
	cfg     *Config
	at      place
	view    *messages.ServiceView

	// ports are the usable ports of the Service, in its order.
	ports []*messages.ServicePort
	// external and loadBalancer are the external IPs and the captured load-balancer IPs, of
	// both families.
	external, loadBalancer []address
	rows                   []*messages.Frontend

	joiner
}

// resolve fills the view of a service that is served.
func (r *resolver) resolve() {
	r.ports = r.usablePorts()
	r.external = r.allowed(r.addresses(r.service.GetExternalIps(), externalIPs))
	r.loadBalancer = r.addresses(r.virtualIngress(), "status.loadBalancer.ingress")
	r.checkRanges()
	served := false
	for _, family := range families {
		if clusterIP, ok := r.clusterIP(family); ok {
			served = true
			r.resolveFamily(family, clusterIP)
		}
	}
	if !served {
		r.view.NotServed = NotServedNoClusterIP
	}
	// unique comes last, because both families and all ports may claim the same address.
	r.view.Frontends = unique(r.rows)
}

// resolveFamily adds the rows of one IP family. The families of a service share only their ports.
func (r *resolver) resolveFamily(family messages.IPFamily, clusterIP address) {
	f := r.frontendsOf(family, clusterIP)
	g := r.gather(family)
	var internal, external uint32
	for _, port := range r.ports {
		endpoints := r.join(g, nameOf(port))
		p := r.policiesOf(&f, port)
		wanted := p.need()
		// A UDP flow never ends by itself, and with affinity a client opens its next
		// connections to the same endpoint. Neither must stay with an endpoint that no
		// longer serves.
		wanted.servingOnly = port.GetProtocol() == messages.Protocol_UDP || r.service.GetAffinitySeconds() > 0
		s := choose(endpoints, wanted, r.at)
		// kube-proxy counts ports, not services, in
		// sync_proxy_rules_no_local_endpoints_total.
		if s.usable && len(s.local) == 0 {
			internal += count(p.internalLocal)
			external += count(p.externalLocal)
		}
		r.addRows(&f, port, p, s)
	}
	if internal+external > 0 {
		r.setNoLocal(family, &messages.NoLocalEndpoints{Internal: internal, External: external})
	}
	if check := r.healthCheck(family, g); check != nil {
		r.view.HealthChecks = append(r.view.HealthChecks, check)
	}
}

// setNoLocal stores the counters of one family. A family that drops nothing has no counters.
func (r *resolver) setNoLocal(family messages.IPFamily, counters *messages.NoLocalEndpoints) {
	if family == messages.IPFamily_IPV4 {
		r.view.NoLocalIpv4 = counters
	} else {
		r.view.NoLocalIpv6 = counters
	}
}

// usablePorts returns the ports of the Service that can be served and reports the others.
func (r *resolver) usablePorts() []*messages.ServicePort {
	ports := make([]*messages.ServicePort, 0, len(r.service.GetPorts()))
	for i, port := range r.service.GetPorts() {
		switch {
		case ProtocolWord(port.GetProtocol()) == unknownWord:
			r.report(fmt.Sprintf("spec.ports[%d].protocol", i), fmt.Sprintf("unsupported protocol %d", port.GetProtocol()))
		case !validPort(port.GetPort()):
			r.report(fmt.Sprintf("spec.ports[%d].port", i), fmt.Sprintf("%d is not a port number", port.GetPort()))
		default:
			if port.GetNodePort() > maxPort {
				// The port stays: its cluster IP works without the node port.
				r.report(fmt.Sprintf("spec.ports[%d].nodePort", i), fmt.Sprintf("%d is not a port number", port.GetNodePort()))
			}
			ports = append(ports, port)
		}
	}
	return ports
}

// clusterIP returns the cluster IP of a family: clusterIPs[i] belongs to ipFamilies[i]; without
// families the first one decides.
func (r *resolver) clusterIP(family messages.IPFamily) (address, bool) {
	ips, of := r.service.GetClusterIps(), r.service.GetIpFamilies()
	for i, text := range ips {
		if len(of) == 0 && i > 0 || len(of) > 0 && (i >= len(of) || of[i] != family) {
			continue
		}
		a, ok := parseAddress(text)
		switch {
		case ok && a.family() == family:
			return a, true
		case !ok && (len(of) > 0 || family == families[0]):
			r.report(fmt.Sprintf("spec.clusterIPs[%d]", i), fmt.Sprintf("%q is not an address", text))
		case ok && len(of) > 0:
			r.report(fmt.Sprintf("spec.clusterIPs[%d]", i), fmt.Sprintf("%q is not of the family in ipFamilies", text))
		}
	}
	return address{}, false
}

// virtualIngress returns the announced load-balancer IPs that this node captures. Traffic to an IP
// with ipMode Proxy goes to the load balancer.
func (r *resolver) virtualIngress() []string {
	if len(r.service.GetLoadBalancer()) == 0 {
		return nil
	}
	ips := make([]string, 0, len(r.service.GetLoadBalancer()))
	for _, ingress := range r.service.GetLoadBalancer() {
		if !ingress.GetProxy() && ingress.GetIp() != "" {
			ips = append(ips, ingress.GetIp())
		}
	}
	return ips
}

// addresses parses the addresses of a field and reports each text that is no address.
func (r *resolver) addresses(texts []string, field string) []address {
	if len(texts) == 0 {
		return nil
	}
	parsed := make([]address, 0, len(texts))
	for _, text := range texts {
		a, ok := parseAddress(text)
		switch {
		case !ok:
			r.report(field, fmt.Sprintf("%q is not an address", text))
		case !containsAddress(parsed, a.ip):
			parsed = append(parsed, a)
		}
	}
	return parsed
}

// externalIPs is the field in which the author of a service chooses addresses.
const externalIPs = "spec.externalIPs"

// allowed leaves out external IPs that services may not name, and reports them.
func (r *resolver) allowed(all []address) []address {
	if r.cfg.ExternalIPs == nil {
		return all
	}
	return slices.DeleteFunc(all, func(a address) bool {
		refused := !slices.ContainsFunc(r.cfg.ExternalIPs, func(p netip.Prefix) bool { return p.Contains(a.ip) })
		if refused {
			r.report(externalIPs, fmt.Sprintf("%s is not served: it is in no network of allowed external IPs", a.text))
		}
		return refused
	})
}

// checkRanges reports source ranges that cannot be read. The empty text was reported when the
// object was normalised.
func (r *resolver) checkRanges() {
	for _, text := range r.service.GetSourceRanges() {
		if _, ok := parsePrefix(text); !ok && text != "" {
			r.report("spec.loadBalancerSourceRanges", fmt.Sprintf("%q is not a CIDR; it admits no client", text))
		}
	}
}

// count returns 1 for true.
func count(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
