package informers

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/troupe-vpp/troupe/kube/normalize"
)

// apply brings the Store up to date with the cache for everything that is in the queue.
func (s *Source) apply() {
	for i, trigger := range s.queue.take() {
		// The cache has the latest object, perhaps newer than the event; the value in between is not needed.
		object, present, err := s.indexes[i.kind].GetByKey(i.key)
		if err != nil || !present { // the cache of client-go has no errors
			object = nil
		}
		switch i.kind {
		case normalize.KindService:
			service, _ := object.(*corev1.Service)
			s.applyService(i.key, service)
		case normalize.KindEndpointSlice:
			slice, _ := object.(*discoveryv1.EndpointSlice)
			s.applySlice(i.key, slice, trigger)
		case normalize.KindNode:
			node, _ := object.(*corev1.Node)
			s.applyNode(i.key, node)
		case normalize.KindPod:
			pod, _ := object.(*corev1.Pod)
			s.applyPod(i.key, pod)
		case normalize.KindServiceCIDR:
			cidr, _ := object.(*networkingv1.ServiceCIDR)
			s.applyServiceCIDR(i.key, cidr)
		}
	}
}

// applyService records a Service; nil, or one that this node is not to see, is a deletion.
func (s *Source) applyService(key string, in *corev1.Service) {
	out, problems := normalize.Service(sourceName, in)
	// A server that does not implement the selectors sends objects of other proxies and headless ones.
	if out == nil || !normalize.SelectedService(out) {
		s.store.DeleteService(key)
		return
	}
	s.store.SetService(out, problems)
}

// applySlice sets the trigger time to that of the first change that was not delivered yet: the changes that coalesced with it have
// waited shorter.
func (s *Source) applySlice(key string, in *discoveryv1.EndpointSlice, trigger string) {
	out, problems := normalize.EndpointSlice(sourceName, in)
	if out == nil || !normalize.SelectedSlice(out) {
		s.store.DeleteSlice(key)
		return
	}
	if first, err := time.Parse(time.RFC3339Nano, trigger); err == nil {
		if at := first.UnixNano(); at < out.Triggered && at > s.store.SliceTriggered(key) {
			out.Triggered = at
		}
	}
	s.store.SetSlice(out, problems)
}

// applyNode records a Node; nil is a deletion.
func (s *Source) applyNode(key string, in *corev1.Node) {
	out, problems := normalize.Node(sourceName, in)
	if out == nil {
		s.store.DeleteNode(key)
		return
	}
	s.store.SetNode(out, problems)
}

// applyPod records a Pod; nil, one of another node or one that cannot be reached is a deletion.
func (s *Source) applyPod(key string, in *corev1.Pod) {
	out, problems := normalize.Pod(sourceName, in)
	if out == nil || !normalize.SelectedPod(out, s.config.NodeName) {
		s.store.DeletePod(key)
		return
	}
	s.store.SetPod(out, problems)
}

// applyServiceCIDR records the networks of a ServiceCIDR, as kube-proxy does from its creation to its end; nil is a deletion.
func (s *Source) applyServiceCIDR(key string, in *networkingv1.ServiceCIDR) {
	if in == nil {
		s.store.DeleteServiceCIDR(key)
		return
	}
	var networks []string
	for _, text := range in.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil { // the API server admits no other
			networks = append(networks, p.Masked().String())
		}
	}
	s.store.SetServiceCIDR(key, networks)
}

// sameVersion says whether two objects are the same version of one; servers that give no versions say nothing.
func sameVersion(a, b any) bool {
	first, err := apimeta.Accessor(a)
	if err != nil {
		return false
	}
	second, err := apimeta.Accessor(b)
	return err == nil && first.GetResourceVersion() != "" &&
		first.GetResourceVersion() == second.GetResourceVersion() && first.GetUID() == second.GetUID()
}
