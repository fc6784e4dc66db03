package render

import (
	"cmp"
	"encoding/binary"
	"fmt"
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
