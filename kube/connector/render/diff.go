package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Verb is the kind of a write.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Update Verb = "update" // only if the object still has the compared resource version
	// Only if the object still has the compared UID and resource version.
	Delete Verb = "delete"
)

// Write is one write of one object: either Service or Slice is set.
type Write struct {
	Verb    Verb
	Service *corev1.Service
	Slice   *discoveryv1.EndpointSlice
}

// Object returns the kind of the object, and the object.
func (w *Write) Object() (kind string, object metav1.Object) {
	if w.Service != nil {
		return "Service", w.Service
	}
	return "EndpointSlice", w.Slice
}

// Work holds the writes of one service.
type Work struct {
	// Service is the name of the Service, the key under which work is retried.
	Service string
	// Writes in their order. After the Service has been created, Own gives the slices their owner.
	Writes []Write
}

// Changes are the differences between wanted and observed objects.
type Changes struct {
	// Work of each service that differs, ordered by name.
	Work []Work
	// Problems are wanted objects that cannot be written, with the reasons.
	Problems []catalog.Problem
}

// differ collects the result of Diff.
type differ struct {
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	owns     func(metav1.Object) bool
	work     map[string][]Write
	problems []catalog.Problem
}

// Diff returns the writes that turn the observed objects into the wanted objects. sources are the
// sources from which wanted was rendered; objects of other sources are foreign.
func Diff(wanted Wanted, seen Observed, sources []catalog.Sourced, o Options) Changes {
	d := &differ{
		services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}, work: map[string][]Write{},
		owns: func(object metav1.Object) bool { return o.owns(object, sources) },
	}
	for _, s := range seen.Services {
		d.services[s.Name] = s
	}
	for _, s := range seen.Slices {
		d.slices[s.Name] = s
	}
	// Names that must not be deleted: whole services, Services, slices.
	keep, services, parts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, w := range wanted.Services {
		services[w.Name] = true
		if w.Keep {
			keep[w.Name] = true
			continue
		}
		if d.service(w) {
			for _, s := range w.Slices {
				parts[s.Name] = true
				d.slice(w, s)
			}
		}
	}
	for _, s := range seen.Services {
		if !services[s.Name] && d.owns(s) && s.DeletionTimestamp == nil {
			d.add(s.Name, Write{Verb: Delete, Service: s})
		}
	}
	for _, s := range seen.Slices {
		if service := serviceOf(s.Name); !parts[s.Name] && !keep[service] && d.owns(s) && s.DeletionTimestamp == nil {
			d.add(service, Write{Verb: Delete, Slice: s})
		}
	}
	out := Changes{Problems: d.problems}
	for _, name := range slices.Sorted(maps.Keys(d.work)) {
		out.Work = append(out.Work, Work{Service: name, Writes: d.work[name]})
	}
	return out
}

func (d *differ) add(service string, w Write) { d.work[service] = append(d.work[service], w) }

func (d *differ) report(w Want, reason catalog.Reason, format string, args ...any) {
	problem := catalog.Problem{Service: w.Name, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if w.Service != nil {
		problem.Source, problem.Service = w.Service.Labels[LabelSource], w.Service.Annotations[AnnotationName]
	}
	if have := d.services[w.Name]; have != nil {
		problem.Object, problem.UID = have.Name, string(have.UID)
	}
	d.problems = append(d.problems, problem)
}

// service compares a Service, and reports whether its slices may be written.
func (d *differ) service(w Want) bool {
	have := d.services[w.Name]
	switch {
	case have == nil:
		if w.Service != nil {
			d.add(w.Name, Write{Verb: Create, Service: w.Service})
		}
		return w.Service != nil
	case !d.owns(have):
		d.report(w, catalog.ReasonForeign, "Service %s/%s does not belong to the connector and is not changed", have.Namespace, have.Name)
		return false
	case have.DeletionTimestamp != nil:
		return false // Kubernetes is deleting it; a later pass creates it again
	case w.Service == nil:
		return true
	case (have.Spec.ClusterIP == corev1.ClusterIPNone) != (w.Service.Spec.ClusterIP == corev1.ClusterIPNone):
		d.report(w, catalog.ReasonImmutable, "Service %s/%s has to be deleted before its cluster IP can change", have.Namespace, have.Name)
		return true
	}
	if now := merged(have, w.Service); !equality.Semantic.DeepEqual(have, now) {
		d.add(w.Name, Write{Verb: Update, Service: now})
	}
	return true
}

// merged returns the existing Service with the fields that the connector wants. It shares all other
// fields with the existing Service, so a comparison is cheap.
func merged(have, want *corev1.Service) *corev1.Service {
	out := new(*have)
	out.Labels = joined(have.Labels, want.Labels)
	out.Annotations = joined(have.Annotations, want.Annotations)
	stale := func(key, _ string) bool { return strings.HasPrefix(key, flomeshAddress) && want.Annotations[key] == "" }
	maps.DeleteFunc(out.Annotations, stale)
	out.Spec.Type = want.Spec.Type
	out.Spec.Selector = nil
	out.Spec.Ports = want.Spec.Ports
	out.Spec.IPFamilyPolicy = want.Spec.IPFamilyPolicy
	out.Spec.InternalTrafficPolicy = want.Spec.InternalTrafficPolicy
	return out
}

// slice compares an EndpointSlice.
func (d *differ) slice(w Want, want *discoveryv1.EndpointSlice) {
	have, service := d.slices[want.Name], d.services[w.Name]
	if have != nil && !d.owns(have) {
		d.report(w, catalog.ReasonForeign, "EndpointSlice %s/%s does not belong to the connector and is not changed", have.Namespace, have.Name)
		return
	}
	if have != nil && have.DeletionTimestamp != nil {
		return
	}
	if have == nil {
		d.add(w.Name, Write{Verb: Create, Slice: Own(want, service)})
		return
	}
	now := new(*have)
	now.Labels = joined(have.Labels, want.Labels)
	now.OwnerReferences = Own(want, service).OwnerReferences
	now.Ports = want.Ports
	now.Endpoints = want.Endpoints
	if !equality.Semantic.DeepEqual(have, now) {
		d.add(w.Name, Write{Verb: Update, Slice: now})
	}
}

// Own returns the slice with the Service as its owner, so that Kubernetes deletes both together. If
// the Service is missing or not created yet, the slice has no owner.
func Own(slice *discoveryv1.EndpointSlice, service *corev1.Service) *discoveryv1.EndpointSlice {
	out := new(*slice)
	out.OwnerReferences = nil
	if service != nil && service.UID != "" {
		// The reference must not block the deletion of the owner: the connector may delete the
		// Service, but it may not change finalizers.
		out.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID, BlockOwnerDeletion: new(false),
		}}
	}
	return out
}

// Owned returns the names, at the source, of its Services in the cluster, for its gate.
func Owned(seen Observed, source string, o Options) []string {
	var out []string
	for _, s := range seen.Services {
		if o.owns(s, []catalog.Sourced{{Source: source}}) && s.DeletionTimestamp == nil {
			name := s.Annotations[AnnotationName]
			if name == "" { // removed by a user
				name = s.Name
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// owns reports whether an object belongs to one of these sources.
func (o *Options) owns(object metav1.Object, sources []catalog.Sourced) bool {
	labels := object.GetLabels()
	return labels[LabelManagedBy] == Manager && labels[LabelCluster] == o.ClusterID && object.GetNamespace() == o.Namespace &&
		slices.ContainsFunc(sources, func(s catalog.Sourced) bool { return s.Source == labels[LabelSource] })
}

// joined returns the entries of both maps; want overrides have.
func joined(have, want map[string]string) map[string]string {
	out := make(map[string]string, len(have)+len(want))
	maps.Copy(out, have)
	maps.Copy(out, want)
	return out
}

// perSlice is the largest number of endpoints of a slice. The API allows 1000, but each change in a
// slice rewrites the whole slice and sends it to every node.
const perSlice = 100

// place is the shard, the number of the slice within its group, for each address.
type place = map[string]int

// placements returns the places of the addresses in the existing owned slices, by the prefix of the
// slices' names.
func placements(seen Observed, o Options, sources []catalog.Sourced) map[string]place {
	out := map[string]place{}
	for _, s := range seen.Slices {
		prefix, shard, ok := splitName(s.Name)
		if !ok || !o.owns(s, sources) {
			continue
		}
		if out[prefix] == nil {
			out[prefix] = place{}
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 1 {
				out[prefix][e.Addresses[0]] = shard
			}
		}
	}
	return out
}

// splitName splits the name of a slice into the prefix of its group and its shard.
func splitName(name string) (prefix string, shard int, ok bool) {
	at := strings.LastIndexByte(name, '-') + 1
	shard, err := strconv.Atoi(name[at:])
	return name[:at], shard, err == nil && shard >= 0 && strconv.Itoa(shard) == name[at:]
}

// serviceOf returns the name of the Service in the name of a slice; "" if the name has another
// form.
func serviceOf(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) < 4 {
		return ""
	}
	return strings.Join(parts[:len(parts)-3], "-")
}

// spread puts ordered endpoints into shards. A placed endpoint stays in its shard; new endpoints
// fill the first shards that have room. If half of the shards would be enough, all endpoints are
// placed anew.
func spread(endpoints []endpoint, placed map[string]place, prefix string) map[int][]endpoint {
	out := fill(endpoints, placed[prefix])
	if need := (len(endpoints) + perSlice - 1) / perSlice; need*2 < len(out) {
		return fill(endpoints, nil)
	}
	return out
}

func fill(endpoints []endpoint, where place) map[int][]endpoint {
	out := map[int][]endpoint{}
	var homeless []endpoint
	for _, e := range endpoints {
		if shard, known := where[e.address.String()]; known && len(out[shard]) < perSlice {
			out[shard] = append(out[shard], e)
		} else {
			homeless = append(homeless, e)
		}
	}
	shard := 0
	changed := map[int]bool{}
	for _, e := range homeless {
		for len(out[shard]) >= perSlice {
			shard++
		}
		out[shard] = append(out[shard], e)
		changed[shard] = true
	}
	for shard := range changed {
		slices.SortFunc(out[shard], compareEndpoints)
	}
	return out
}
