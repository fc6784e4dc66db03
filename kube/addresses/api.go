package addresses

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Class is spec.loadBalancerClass of the Services that get addresses from pools.
const Class = "troupe.dev/vpp"

// Annotations of Services.
const (
	// PoolAnnotation is the name of the pool that the Service asks for.
	PoolAnnotation = "troupe.dev/address-pool"
	// AddressesAnnotation has the addresses that the Service asks for, at most one of each family,
	// with a comma between them. It replaces spec.loadBalancerIP.
	AddressesAnnotation = "troupe.dev/addresses"
	// SharingAnnotation is a key: Services of a namespace with the same one may share an address.
	SharingAnnotation = "troupe.dev/address-sharing-key"
)

// Conditions that the allocator keeps.
const (
	// Ready is a condition of an AddressPool: whether it gives addresses.
	Ready = "Ready"
	// AddressesGiven is a condition of a Service: whether it has an address of each of its
	// families. It marks the Services whose status has addresses of the allocator.
	AddressesGiven = "troupe.dev/AddressesGiven"
)

// GroupVersion returns the API group of AddressPool.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "troupe.dev", Version: "v1alpha1"}
}

// AddToScheme makes the types of the group known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &AddressPool{}, &AddressPoolList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// AddressPool has addresses for Services of type LoadBalancer, which nodes announce by VRRP.
type AddressPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   AddressPoolSpec   `json:"spec"`
	Status AddressPoolStatus `json:"status,omitzero"`
}

// AddressPoolSpec says which addresses a pool has, and who may get them.
type AddressPoolSpec struct {
	// Networks such as 192.0.2.0/28 and ranges such as 192.0.2.1-192.0.2.9, of both families. They
	// must not overlap other pools or networks of the cluster, and must have no address of a host.
	Addresses []string `json:"addresses" schema:"{minItems: 1, maxItems: 64, items: {pattern: '^[0-9A-Fa-f.:]+(/[0-9]+| *- *[0-9A-Fa-f.:]+)$', maxLength: 96}}"`
	// Last bytes of IPv4 addresses that are not given, for example 0 and 255, which some networks
	// filter.
	Avoid []int `json:"avoid,omitempty" schema:"{maxItems: 256, items: {minimum: 0, maximum: 255}}"`
	// Addresses are given only to Services that name the pool or one of its addresses.
	OnRequest bool `json:"onRequest,omitempty"`
	// Labels of the namespaces whose Services may get addresses; default: all namespaces.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Labels of the Services that may get addresses; default: all Services.
	ServiceSelector *metav1.LabelSelector `json:"serviceSelector,omitempty"`
	// Virtual router IDs of VRRP that the pool uses, FIRST-LAST; default: 1-255. Pools with
	// addresses of the same family, and other speakers of VRRP in the network, need other IDs.
	VirtualRouters string `json:"virtualRouters,omitempty" schema:"{pattern: '^[0-9]{1,3}-[0-9]{1,3}$'}"`
}

// AddressPoolStatus is written by the allocator.
type AddressPoolStatus struct {
	// Addresses that Services have.
	Given int `json:"given"`
	// Addresses that Services can get. Addresses in the virtual router of a Service with the policy
	// Local are not free.
	Free int `json:"free"`
	// Ready says whether the pool gives addresses, and why not.
	Conditions []metav1.Condition `json:"conditions,omitempty" schema:"{x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type]}"`
}

// AddressPoolList is a list of pools.
type AddressPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []AddressPool `json:"items"`
}

// DeepCopyObject satisfies runtime.Object.
func (p *AddressPool) DeepCopyObject() runtime.Object { return p.deepCopy() }

func (p *AddressPool) deepCopy() *AddressPool {
	out := new(*p)
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Addresses = append([]string(nil), p.Spec.Addresses...)
	out.Spec.Avoid = append([]int(nil), p.Spec.Avoid...)
	out.Spec.NamespaceSelector, out.Spec.ServiceSelector = p.Spec.NamespaceSelector.DeepCopy(), p.Spec.ServiceSelector.DeepCopy()
	out.Status.Conditions = append([]metav1.Condition(nil), p.Status.Conditions...) // no pointers in it
	return out
}

// DeepCopyObject satisfies runtime.Object.
func (l *AddressPoolList) DeepCopyObject() runtime.Object {
	out := new(*l)
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].deepCopy())
	}
	return out
}

// Pool returns the pool that the object describes. It has no ranges and is wrong where the object
// cannot be read.
func (p *AddressPool) Pool() Pool {
	out := Pool{Name: p.Name, OnRequest: p.Spec.OnRequest}
	if err := p.read(&out); err != nil {
		return Pool{Name: p.Name, Wrong: fmt.Errorf("%w %s: %w", ErrPool, p.Name, err)}
	}
	return out
}

// read reads the fields that need it.
func (p *AddressPool) read(out *Pool) (err error) {
	for _, text := range p.Spec.Addresses {
		r, err := ParseRange(text)
		if err != nil {
			return err
		}
		out.Ranges = append(out.Ranges, r)
	}
	for _, n := range p.Spec.Avoid {
		if n < 0 || n > 255 {
			return fmt.Errorf("avoid has %d, which is no byte", n)
		}
		out.Avoid = append(out.Avoid, byte(n))
	}
	if out.First, out.Last, err = parseRouters(cmp.Or(p.Spec.VirtualRouters, "1-255")); err != nil {
		return err
	}
	if out.Namespaces, err = selector(p.Spec.NamespaceSelector); err != nil {
		return fmt.Errorf("namespaceSelector: %w", err)
	}
	if out.Services, err = selector(p.Spec.ServiceSelector); err != nil {
		return fmt.Errorf("serviceSelector: %w", err)
	}
	return nil
}

// parseRouters parses "FIRST-LAST".
func parseRouters(text string) (first, last uint8, err error) {
	low, high, _ := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(low, 10, 8)
	b, errB := strconv.ParseUint(high, 10, 8)
	if errA != nil || errB != nil || a < 1 || b < a {
		return 0, 0, fmt.Errorf("virtualRouters %q is no range from 1 to 255 such as 1-255", text)
	}
	return uint8(a), uint8(b), nil
}

// selector converts a selector; nil = all.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return nil, nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
