package kubetest

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// World holds the normalised objects of a case after its steps so far. A problem of an object fails
// the test. It belongs to the goroutine of the test.
type World struct {
	// Node is this node, Config is the configuration of the agent.
	Node   *messages.NodeContext
	Config service.Config

	t        testing.TB
	services map[string]*messages.Service
	slices   map[string]*messages.EndpointSlice
}

// NewWorld returns the world at the start of a case.
func NewWorld(t testing.TB, c *Case) *World {
	t.Helper()
	w := &World{t: t, services: map[string]*messages.Service{}, slices: map[string]*messages.EndpointSlice{}}
	addresses, err := service.ParseNodePortAddresses(c.Config.NodePortAddresses)
	if err != nil {
		t.Fatal(err)
	}
	w.Config = service.Config{
		NodePortAddresses: addresses, MasqueradeAll: c.Config.MasqueradeAll,
		ClusterCIDRs: w.prefixes(c.Config.ClusterCIDRs), ServiceCIDRs: w.prefixes(c.Config.ServiceCIDRs),
	}
	w.setNode(&c.Node)
	w.apply(&c.Objects)
	return w
}

// Do makes the changes of a step.
func (w *World) Do(s *Step) {
	w.t.Helper()
	w.apply(&s.Apply)
	for _, key := range s.Delete.Services {
		if w.services[key] == nil {
			w.t.Fatalf("no service %s to delete", key)
		}
		delete(w.services, key)
	}
	for _, key := range s.Delete.EndpointSlices {
		if w.slices[key] == nil {
			w.t.Fatalf("no slice %s to delete", key)
		}
		delete(w.slices, key)
	}
	if s.Node != nil {
		w.setNode(s.Node)
	}
}

// Inputs groups the objects by service, as a source does. The slices of a service are ordered by
// name.
func (w *World) Inputs() map[string]*messages.ServiceInput {
	inputs := map[string]*messages.ServiceInput{}
	of := func(key string) *messages.ServiceInput {
		if inputs[key] == nil {
			inputs[key] = &messages.ServiceInput{Key: key}
		}
		return inputs[key]
	}
	for key, s := range w.services {
		of(key).Service = s
	}
	for _, key := range slices.Sorted(maps.Keys(w.slices)) {
		if owner := normalize.SliceOwner(w.slices[key]); owner != "" {
			in := of(owner)
			in.Slices = append(in.Slices, w.slices[key])
		}
	}
	return inputs
}

// apply creates or replaces objects.
func (w *World) apply(objects *Objects) {
	w.t.Helper()
	for _, object := range objects.Services {
		s, problems := normalize.Service("case", object)
		if len(problems) > 0 {
			w.t.Errorf("service: %v", problems)
		}
		w.services[normalize.ServiceKey(s)] = s
	}
	for _, object := range objects.EndpointSlices {
		s, problems := normalize.EndpointSlice("case", object)
		if len(problems) > 0 {
			w.t.Errorf("slice: %v", problems)
		}
		w.slices[normalize.SliceKey(s)] = s
	}
}

// setNode replaces the node.
func (w *World) setNode(n *Node) {
	w.t.Helper()
	node, problems := normalize.Node("case", n.Object())
	if len(problems) > 0 || node == nil {
		w.t.Fatalf("node: %v", problems)
	}
	if node.GetZone() != n.Zone {
		w.t.Fatalf("zone of the labels is %q, of the case %q", node.GetZone(), n.Zone)
	}
	w.Node = &messages.NodeContext{Node: node, Addresses: n.Addresses}
}

func (w *World) prefixes(texts []string) (list []netip.Prefix) {
	w.t.Helper()
	for _, text := range texts {
		prefix, err := normalize.ParsePrefix(text)
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, prefix)
	}
	return list
}

// Object returns the Node object of the node.
func (n *Node) Object() *corev1.Node {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, a := range n.Addresses {
		out.Status.Addresses = append(out.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return out
}
