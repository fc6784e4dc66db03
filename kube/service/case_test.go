package service_test

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// objects holds the normalised objects of a case after its steps so far. A problem of an object
// fails the test. It belongs to the goroutine of the test.
type objects struct {
	// Node is this node, Config is the configuration of the agent.
	Node   *messages.NodeContext
	Config service.Config

	t        testing.TB
	services map[string]*messages.Service
	slices   map[string]*messages.EndpointSlice
}

// newObjects returns the objects at the start of a case.
func newObjects(t testing.TB, c *kubetest.Case) *objects {
	t.Helper()
	w := &objects{t: t, services: map[string]*messages.Service{}, slices: map[string]*messages.EndpointSlice{}}
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
func (w *objects) Do(s *kubetest.Step) {
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
func (w *objects) Inputs() map[string]*messages.ServiceInput {
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
func (w *objects) apply(objects *kubetest.Objects) {
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
func (w *objects) setNode(n *kubetest.Node) {
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

func (w *objects) prefixes(texts []string) (list []netip.Prefix) {
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
