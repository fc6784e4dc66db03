package normalize

import (
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
	// Ignored counts objects of other kinds, and Pods without an address or finished.
	Ignored int
}

// Key returns "namespace/name", the key of a Service, a slice or a Pod in the whole project. The
// key of a Node or a ServiceCIDR is its name.
func Key(namespace, name string) string { return namespace + "/" + name }

// Namespaced reports whether objects of a kind have a namespace.
func Namespaced(kind string) bool { return kind != KindNode && kind != KindServiceCIDR }

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
	out := &Objects{Nodes: o.Nodes, ServiceCIDRs: o.ServiceCIDRs, Ignored: o.Ignored}
	for _, s := range o.Services {
		if SelectedService(s) {
			out.Services = append(out.Services, s)
		}
	}
	for _, s := range o.Slices {
		if SelectedSlice(s) {
			out.Slices = append(out.Slices, s)
		}
	}
	for _, p := range o.Pods {
		if SelectedPod(p, node) {
			out.Pods = append(out.Pods, p)
		}
	}
	return out
}

// SelectedService mirrors the selectors of Services: label
// !service.kubernetes.io/service-proxy-name, fields spec.clusterIP!=None and
// spec.type!=ExternalName. Such a Service needs nothing of a node.
func SelectedService(s *messages.Service) bool {
	return !s.GetHeadless() && !s.GetForeignProxy() && s.GetType() != messages.ServiceType_EXTERNAL_NAME
}

// SelectedSlice mirrors the selector of EndpointSlices: label !service.kubernetes.io/headless. A
// slice without a service is left out too, because it has no use.
func SelectedSlice(s *messages.EndpointSlice) bool { return !s.GetHeadless() && s.GetService() != "" }

// SelectedPod mirrors the selector of Pods: field spec.nodeName=<node>.
func SelectedPod(p *messages.Pod, node string) bool { return node != "" && p.GetNode() == node }
