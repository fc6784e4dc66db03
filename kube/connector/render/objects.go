package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Labels and annotations of the objects.
const (
	// LabelManagedBy with the value Manager marks every object of the connector.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// Manager is the value of LabelManagedBy.
	Manager = "troupe-connector"
	// SliceManager is the value of the label endpointslice.kubernetes.io/managed-by.
	SliceManager = "connector.troupe.dev"
	// LabelSource holds the name of the source.
	LabelSource = "troupe.dev/source"
	// LabelCluster holds Options.ClusterID. Objects have no such label if it is empty.
	LabelCluster = "troupe.dev/cluster-id"
	// AnnotationName holds the name in the spelling of the source.
	AnnotationName = "troupe.dev/external-name"
)

// mostSlices is the largest number of EndpointSlices of all services. Instances that listen on
// different ports are in different slices, so a catalog could cause one slice per instance.
const mostSlices = 12_000

// Options of rendering. They are the same for all services.
type Options struct {
	// Namespace of all objects.
	Namespace string
	// ClusterID distinguishes connectors of several clusters that write to the same one. It is a
	// label value and may be empty.
	ClusterID string
	// Prefix of the names of Services; may be empty.
	Prefix string
	// Headless renders Services without a cluster IP.
	Headless bool
	// Flomesh adds the label and annotations of the flomesh connector, for programs that read them.
	Flomesh bool
	// Policy says which addresses instances may have.
	Policy catalog.Policy
}

// Observed holds the objects in the namespace, from informers. They are only read.
type Observed struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
}

// Wanted holds the objects that should be in the cluster.
type Wanted struct {
	// Services ordered by name.
	Services []Want
	// Problems are parts of the snapshots that are not rendered, with the reasons.
	Problems []catalog.Problem
}

// Want is one wanted Service with its slices.
type Want struct {
	// Name of the Service.
	Name string
	// Keep leaves the objects in the cluster unchanged, because only the existence of the service
	// is known.
	Keep bool
	// Service has only the fields that the connector sets. It is nil if no port is known: then no
	// Service is created, and one in the cluster stays unchanged.
	Service *corev1.Service
	// Slices with their endpoints, ordered by name, without an owner reference (see Own). Empty =
	// no endpoints.
	Slices []*discoveryv1.EndpointSlice
}

// Render returns the objects for the services of the sources; if names collide, the earlier source
// wins. seen are the existing objects, which decide the slice of an endpoint. Names must be unique
// within a source. A service that would exceed mostSlices is kept unchanged.
func Render(sources []catalog.Sourced, seen Observed, o Options) Wanted {
	named, problems := catalog.Assign(o.Prefix, sources)
	out := Wanted{Services: make([]Want, 0, len(named)), Problems: problems}
	placed := placements(seen, o, sources)
	count := 0 // slices
	for _, n := range named {
		if n.Service.Unknown {
			out.Services = append(out.Services, Want{Name: n.Label, Keep: true})
			continue
		}
		r := renderer{options: o, named: n}
		want := r.render(placed)
		if count+len(want.Slices) > mostSlices {
			r.problems = nil
			r.report("", catalog.ReasonLimit, "more than %d EndpointSlices of all services", mostSlices)
			want = Want{Name: n.Label, Keep: true}
		}
		count += len(want.Slices)
		out.Services = append(out.Services, want)
		for _, p := range r.problems {
			p.Source, p.Service = n.Source, n.Service.Name
			out.Problems = append(out.Problems, p)
		}
	}
	return out
}

// renderer renders one service.
type renderer struct {
	options  Options
	named    catalog.Named
	problems []catalog.Problem
}

func (r *renderer) render(placed map[string]place) Want {
	used := r.admitted()
	ports := r.ports(used)
	out := Want{Name: r.named.Label}
	if len(ports) == 0 {
		r.report("", catalog.ReasonPort, "no port is known")
		return out
	}
	groups := r.groups(used, ports)
	out.Service = r.service(ports, groups)
	for _, g := range groups {
		prefix := g.prefix(r.named.Label)
		for shard, endpoints := range spread(g.endpoints, placed, prefix) {
			out.Slices = append(out.Slices, r.slice(prefix+strconv.Itoa(shard), g, endpoints))
		}
	}
	slices.SortFunc(out.Slices, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// labels returns the labels that make an object owned.
func (r *renderer) labels() map[string]string {
	out := map[string]string{LabelManagedBy: Manager, LabelSource: r.named.Source}
	if r.options.ClusterID != "" {
		out[LabelCluster] = r.options.ClusterID
	}
	return out
}

// service returns the Service.
func (r *renderer) service(ports []port, groups []group) *corev1.Service {
	out := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: r.named.Label, Namespace: r.options.Namespace, Labels: r.labels(),
			Annotations: map[string]string{AnnotationName: r.named.Service.Name},
		},
		Spec: corev1.ServiceSpec{
			Type:           corev1.ServiceTypeClusterIP,
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			// instances are on no node
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
	if r.options.Headless {
		out.Spec.ClusterIP = corev1.ClusterIPNone
	}
	for _, p := range ports {
		out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{
			Name: p.label, Protocol: p.protocol, Port: int32(p.number), TargetPort: intstr.FromInt32(int32(p.number)),
		})
	}
	if r.options.Flomesh {
		flomesh(out, r.named.Service.Name, groups)
	}
	return out
}

// slice returns one EndpointSlice of a group.
func (r *renderer) slice(name string, g group, endpoints []endpoint) *discoveryv1.EndpointSlice {
	labels := r.labels()
	labels[discoveryv1.LabelServiceName] = r.named.Label
	labels[discoveryv1.LabelManagedBy] = SliceManager
	out := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: r.options.Namespace, Labels: labels},
		AddressType: g.family,
		Endpoints:   make([]discoveryv1.Endpoint, 0, len(endpoints)),
	}
	for _, p := range g.ports {
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{
			Name: new(p.label), Protocol: new(p.protocol), Port: new(int32(p.number)),
		})
	}
	for _, e := range endpoints {
		one := discoveryv1.Endpoint{
			Addresses: []string{e.address.String()},
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(e.state == catalog.Ready), Serving: new(e.state != catalog.NotReady), Terminating: new(e.state == catalog.Terminating),
			},
		}
		if e.zone != "" && len(validation.IsValidLabelValue(e.zone)) == 0 {
			one.Zone = new(e.zone)
		}
		out.Endpoints = append(out.Endpoints, one)
	}
	return out
}

// compareEndpoints orders endpoints by address. At the same address the serving endpoint comes
// first.
func compareEndpoints(a, b endpoint) int {
	return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.state, b.state), cmp.Compare(a.zone, b.zone))
}

// Labels and annotations of the flomesh connector, which other programs read.
const (
	flomeshSourced   = "cloud-sourced-service"
	flomeshService   = "cloud-service"
	flomeshSync      = "flomesh.io/mesh-service-sync"
	flomeshInherited = "flomesh.io/cloud-service-inherited-from"
	flomeshAddress   = "flomesh.io/cloud-endpoint-addr-" // and the IPv4 address as a decimal number
)

// mostFlomesh is the largest number of annotated addresses, because all annotations of an object
// must stay below 256 KiB.
const mostFlomesh = 2000

// flomesh adds the labels and annotations of the flomesh connector to a Service.
func flomesh(s *corev1.Service, name string, groups []group) {
	s.Labels[flomeshSourced] = "true"
	s.Labels[flomeshService] = s.Name
	s.Annotations[flomeshSync] = "false"
	s.Annotations[flomeshInherited] = strings.ToLower(name)
	ports := map[string][]uint16{}
	for _, g := range groups {
		for _, e := range g.endpoints {
			if !e.address.Is4() {
				continue
			}
			key := fmt.Sprintf("%s%d", flomeshAddress, binary.BigEndian.Uint32(e.address.AsSlice()))
			if ports[key] == nil && len(ports) == mostFlomesh {
				continue
			}
			for _, p := range g.ports {
				ports[key] = append(ports[key], p.number)
			}
		}
	}
	for key, numbers := range ports {
		slices.Sort(numbers)
		s.Annotations[key] = fmt.Sprint(slices.Compact(numbers))
	}
}

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
