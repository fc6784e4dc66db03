package informers

import (
	"google.golang.org/protobuf/proto"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// apply brings the Store up to date with the cache for every object in the queue.
func (s *Source) apply() {
	for i, triggered := range s.queue.take() {
		// The cache has the latest object, perhaps newer than the event; the values in between are
		// not needed. GetByKey never fails here. An object that is missing from the cache is
		// deleted, and so is an object that is not meant for this node.
		object, _, _ := s.indexes[i.kind].GetByKey(i.key)
		h, present := object.(*held)
		if !present {
			h = &held{}
		}
		switch i.kind {
		case normalize.KindService:
			s.applyService(i.key, h)
		case normalize.KindEndpointSlice:
			s.applySlice(i.key, h, triggered)
		case normalize.KindNode:
			s.applyNode(i.key, h)
		case normalize.KindPod:
			s.applyPod(i.key, h)
		case normalize.KindServiceCIDR:
			s.applyServiceCIDR(i.key, h)
		}
	}
}

// applyService records a Service. A server that does not implement the selectors also sends
// Services of other proxies, headless Services and ExternalNames.
func (s *Source) applyService(key string, h *held) {
	if out, _ := h.value.(*messages.Service); out != nil && normalize.SelectedService(out) {
		s.store.SetService(out, h.problems)
		return
	}
	s.store.DeleteService(key)
}

// applySlice sets the trigger time to the time of the first change that was not delivered yet,
// because the changes that coalesced with it have waited shorter.
func (s *Source) applySlice(key string, h *held, triggered int64) {
	out, _ := h.value.(*messages.EndpointSlice)
	if out == nil || !normalize.SelectedSlice(out) {
		s.store.DeleteSlice(key)
		return
	}
	if triggered != 0 && triggered < out.Triggered && triggered > s.store.SliceTriggered(key) {
		out = proto.CloneOf(out)
		out.Triggered = triggered
	}
	s.store.SetSlice(out, h.problems)
}

// applyNode records a Node.
func (s *Source) applyNode(key string, h *held) {
	if out, _ := h.value.(*messages.Node); out != nil {
		s.store.SetNode(out, h.problems)
		return
	}
	s.store.DeleteNode(key)
}

// applyPod records a Pod. A Pod of another node, or one that cannot be reached, counts as deleted.
func (s *Source) applyPod(key string, h *held) {
	if out, _ := h.value.(*messages.Pod); out != nil && normalize.SelectedPod(out, s.config.NodeName) {
		s.store.SetPod(out, h.problems)
		return
	}
	s.store.DeletePod(key)
}

// applyServiceCIDR records the networks of a ServiceCIDR as long as it exists, like kube-proxy.
func (s *Source) applyServiceCIDR(key string, h *held) {
	if cidrs, present := h.value.(*normalize.ServiceCIDRs); present {
		s.store.SetServiceCIDR(key, cidrs.Networks)
		return
	}
	s.store.DeleteServiceCIDR(key)
}

// sameVersion reports whether two values are the same version of an object. It is false for servers
// that give no versions.
func sameVersion(a, b any) bool {
	first, err := apimeta.Accessor(a)
	if err != nil {
		return false
	}
	second, err := apimeta.Accessor(b)
	return err == nil && first.GetResourceVersion() != "" &&
		first.GetResourceVersion() == second.GetResourceVersion() && first.GetUID() == second.GetUID()
}
