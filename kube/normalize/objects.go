package normalize

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/messages"
)

// Kinds of objects that this package normalises. ObjectError.kind holds one of them, or the kind in
// the input.
const (
	KindService       = "Service"
	KindEndpointSlice = "EndpointSlice"
	KindNode          = "Node"
	KindPod           = "Pod"
	KindServiceCIDR   = "ServiceCIDR"
	KindAddressPool   = "AddressPool"
)

// Objects is a set of normalised objects, each at most once, in the order of the input. The
// messages are immutable.
type Objects struct {
	// Services holds all Services, also headless Services and Services of other proxies.
	Services []*messages.Service
	// Slices holds all EndpointSlices, also slices that belong to no service.
	Slices []*messages.EndpointSlice
	// Nodes holds all Nodes.
	Nodes []*messages.Node
	// Pods holds all Pods, of every node, that have an address and have not finished.
	Pods []*messages.Pod
	// ServiceCIDRs holds all ServiceCIDRs.
	ServiceCIDRs []*ServiceCIDRs
	// AddressPools holds all AddressPools.
	AddressPools []*messages.AddressPool
	// Ignored counts objects of other kinds, and Pods without an address or finished.
	Ignored int
}

// Key returns "namespace/name", the key of a Service, a slice or a Pod in the whole project. The
// key of an object without a namespace is its name.
func Key(namespace, name string) string { return namespace + "/" + name }

// Namespaced reports whether objects of a kind have a namespace.
func Namespaced(kind string) bool {
	return kind != KindNode && kind != KindServiceCIDR && kind != KindAddressPool
}

// ServiceKey returns the key of the Service.
func ServiceKey(s *messages.Service) string { return Key(s.GetNamespace(), s.GetName()) }

// SliceKey returns the key of the slice itself.
func SliceKey(s *messages.EndpointSlice) string { return Key(s.GetNamespace(), s.GetName()) }

// PodKey returns the key of the Pod.
func PodKey(p *messages.Pod) string { return Key(p.GetNamespace(), p.GetName()) }

// SliceOwner returns the key of the Service that the slice belongs to, "" when it belongs to none.
func SliceOwner(s *messages.EndpointSlice) string {
	if s.GetService() == "" {
		return ""
	}
	return Key(s.GetNamespace(), s.GetService())
}

// Select returns the objects that the API server would deliver to the agent of this node through
// the selectors of the Kubernetes source. Every reader of a dump of a whole cluster must call
// Select, so that the dump and its cluster lead to the same snapshot.
func (o *Objects) Select(node string) *Objects {
	out := *o
	out.Services, out.Slices, out.Pods = selected(o.Services, node), selected(o.Slices, node), selected(o.Pods, node)
	return &out
}

func selected[M any](all []M, node string) (out []M) {
	for _, one := range all {
		if Selected(one, node) {
			out = append(out, one)
		}
	}
	return out
}

// Selected reports whether a normalised object is there (not nil) and meant for this node. It
// mirrors the selectors of the Kubernetes source: of EndpointSlices the label
// !service.kubernetes.io/headless, of Pods the field spec.nodeName=<node>. A slice without a
// service is left out too, because it has no use.
func Selected(object any, node string) bool {
	switch o := object.(type) {
	case *messages.Service:
		return o != nil && SelectedService(o)
	case *messages.EndpointSlice:
		return o != nil && !o.GetHeadless() && o.GetService() != ""
	case *messages.Pod:
		return o != nil && node != "" && o.GetNode() == node
	case *messages.Node:
		return o != nil
	case *ServiceCIDRs:
		return o != nil
	case *messages.AddressPool:
		return o != nil
	}
	return false
}

// SelectedService mirrors the selectors of Services: label
// !service.kubernetes.io/service-proxy-name, fields spec.clusterIP!=None and
// spec.type!=ExternalName. Such a Service needs nothing of a node.
func SelectedService(s *messages.Service) bool {
	return !s.GetHeadless() && !s.GetForeignProxy() && s.GetType() != messages.ServiceType_EXTERNAL_NAME
}

// mostErrors is the largest number of recorded problems of one object. The last record counts the
// rest, because a slice of 1000 bad endpoints is one mistake.
const mostErrors = 20

// report collects the problems of one object.
type report struct {
	source, kind, object string
	errors               []*messages.ObjectError
	more                 int // problems counted by the last record
}

// add records a problem with the field of this path. Values from the input must go through show.
func (r *report) add(field, format string, args ...any) {
	if len(r.errors) == mostErrors {
		r.more++
		r.errors[mostErrors-1] = &messages.ObjectError{
			Source: r.source, Kind: r.kind, Object: r.object, Message: fmt.Sprintf("%d more problems", r.more+1),
		}
		return
	}
	r.errors = append(r.errors, &messages.ObjectError{
		Source: r.source, Kind: r.kind, Object: r.object, Field: field, Message: fmt.Sprintf(format, args...),
	})
}

// show quotes and shortens a value from the input, so that hostile input can neither forge a log
// line nor fill the log.
func show(value string) string {
	const limit = 64
	if len(value) > limit {
		return fmt.Sprintf("%q...", value[:limit])
	}
	return fmt.Sprintf("%q", value)
}

// at returns the path of an element of a list.
func at(list string, index int) string { return fmt.Sprintf("%s[%d]", list, index) }

// indexed returns the paths of the elements of a list.
func indexed(list string) func(int) string { return func(i int) string { return at(list, i) } }

// each returns the results of parse for the usable texts of a list, each once.
func each(list []string, path func(int) string, parse func(field, text string) (string, bool)) (out []string) {
	for i, text := range list {
		if canonical, ok := parse(path(i), text); ok && !slices.Contains(out, canonical) {
			out = append(out, canonical)
		}
	}
	return out
}

// choose returns the meaning of a word. An unknown word is a problem and has the zero value.
func choose[K ~string, V any](r *report, field string, in K, known map[K]V, what string) (V, bool) {
	out, ok := known[in]
	if !ok {
		r.add(field, "%s is not %s", show(string(in)), what)
	}
	return out, ok
}

// identify checks the names of an object. An object without a valid name is not delivered, because
// its key could be the key of another object.
func (r *report) identify(namespaced bool, namespace, name string) bool {
	r.object = name
	if namespaced {
		r.object = Key(namespace, name)
	}
	ok := true
	if namespaced && len(validation.IsDNS1123Label(namespace)) > 0 {
		ok = false
		r.add("metadata.namespace", "%s is not a namespace", show(namespace))
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		ok = false
		r.add("metadata.name", "%s is not a name", show(name))
	}
	// An invalid name may contain anything, so it goes into logs and JSON only quoted.
	if !ok {
		r.object = show(r.object)
		for _, e := range r.errors {
			e.Object = r.object
		}
	}
	return ok
}

// ServiceCIDRs are the networks of a ServiceCIDR object, in the form "ip/len".
type ServiceCIDRs struct {
	Name     string
	Networks []string
}

// ServiceCIDR normalises a networking.k8s.io/v1 ServiceCIDR. source names the origin of the object
// in the errors. The result is nil only when the object is nil or has no usable name.
func ServiceCIDR(source string, in *networkingv1.ServiceCIDR) (*ServiceCIDRs, []*messages.ObjectError) {
	if in == nil {
		return nil, nil
	}
	r := &report{source: source, kind: KindServiceCIDR}
	if !r.identify(false, "", in.Name) {
		return nil, r.errors
	}
	return &ServiceCIDRs{in.Name, r.networks(in.Spec.CIDRs, func(i int) string { return at("spec.cidrs", i) })}, r.errors
}

// AddressPool normalises an AddressPool of troupe.dev. source names the origin of the object in the
// errors. The result is nil when the object is nil, has no usable name, or cannot be read.
func AddressPool(source string, in *addresses.AddressPool) (*messages.AddressPool, []*messages.ObjectError) {
	if in == nil {
		return nil, nil
	}
	r := &report{source: source, kind: KindAddressPool}
	if !r.identify(false, "", in.Name) {
		return nil, r.errors
	}
	pool := in.Pool()
	if pool.Wrong != nil {
		r.add("spec", "%v", pool.Wrong)
		return nil, r.errors
	}
	out := &messages.AddressPool{Name: in.Name, Avoid: pool.Avoid, FirstRouter: uint32(pool.First), LastRouter: uint32(pool.Last)}
	for _, one := range pool.Ranges {
		out.Ranges = append(out.Ranges, one.String())
	}
	return out, r.errors
}
