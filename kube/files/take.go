package files

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// take decodes and normalises one object of a supported kind and keeps it, unless it was seen
// before.
func (d *decoder) take(raw []byte, where place, kind string) error {
	o := d.objects
	switch kind {
	case normalize.KindService:
		return add(d, raw, where, kind, &corev1.Service{}, normalize.Service, &o.Services)
	case normalize.KindEndpointSlice:
		return add(d, raw, where, kind, &discoveryv1.EndpointSlice{}, normalize.EndpointSlice, &o.Slices)
	case normalize.KindNode:
		return add(d, raw, where, kind, &corev1.Node{}, normalize.Node, &o.Nodes)
	case normalize.KindPod:
		return add(d, raw, where, kind, &corev1.Pod{}, normalize.Pod, &o.Pods)
	case normalize.KindServiceCIDR:
		return add(d, raw, where, kind, &networkingv1.ServiceCIDR{}, normalize.ServiceCIDR, &o.ServiceCIDRs)
	case normalize.KindAddressPool:
		return add(d, raw, where, kind, &addresses.AddressPool{}, normalize.AddressPool, &o.AddressPools)
	}
	o.Ignored++
	return nil
}

// add is take for one kind: API is its API type, M its message.
func add[API metav1.Object, M comparable](
	d *decoder, raw []byte, where place, kind string, in API, convert func(string, API) (M, []*messages.ObjectError), into *[]M,
) error {
	if err := utiljson.Unmarshal(raw, in); err != nil {
		return err
	}
	// kubectl would apply an object without a namespace to the namespace of its context, which is
	// "default" unless configured.
	if normalize.Namespaced(kind) && in.GetNamespace() == "" {
		in.SetNamespace(metav1.NamespaceDefault)
	}
	id := object{kind, keyOf(kind, in.GetNamespace(), in.GetName())}
	// The first counts, so that an object appended by mistake does not replace one in use.
	if first, twice := d.seen[id]; twice {
		d.report(kind, id.name, "", "occurs twice: %s is ignored, %s counts", where, first)
		return nil
	}
	out, problems := convert(d.source, in)
	for _, p := range problems {
		d.report(p.GetKind(), p.GetObject(), p.GetField(), "%s (line %d)", p.GetMessage(), where.stream(where.line))
	}
	// An object with bad parts is kept: normalize has left the bad parts out.
	var none M
	// normalize leaves out finished pods without a problem; they count as ignored.
	if out == none {
		if len(problems) == 0 {
			d.objects.Ignored++
		}
		return nil
	}
	d.seen[id] = where
	*into = append(*into, out)
	return nil
}

// keyOf returns the name of an object in ObjectError and in the Store.
func keyOf(kind, namespace, name string) string {
	if !normalize.Namespaced(kind) {
		return name
	}
	return normalize.Key(namespace, name)
}

// nameOf returns the name of an object that cannot be decoded, if the name is valid.
func nameOf(v value, kind string) (string, bool) {
	namespace, name := v.names()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", false
	}
	return keyOf(kind, namespace, name), true
}
