package kube_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// model holds the objects of a Store in the simplest form.
type model struct {
	services map[string]*messages.Service
	slices   map[string]*messages.EndpointSlice
	nodes    map[string]*messages.Node
	pods     map[string]*messages.Pod
	problems map[string][]*messages.ObjectError // by kind and object
}

func newModel() *model {
	return &model{
		map[string]*messages.Service{},
		map[string]*messages.EndpointSlice{},
		map[string]*messages.Node{},
		map[string]*messages.Pod{},
		map[string][]*messages.ObjectError{},
	}
}

// list returns everything in an arbitrary order.
func (m *model) list() (*normalize.Objects, []*messages.ObjectError) {
	return &normalize.Objects{
		Services: slices.Collect(maps.Values(m.services)), Slices: slices.Collect(maps.Values(m.slices)),
		Nodes: slices.Collect(maps.Values(m.nodes)), Pods: slices.Collect(maps.Values(m.pods)),
	}, slices.Concat(slices.Collect(maps.Values(m.problems))...)
}

// change draws one change and applies it to the model and the store.
func change(t *rapid.T, m *model, s *kube.Store) {
	kind := rapid.SampledFrom([]string{"Service", "EndpointSlice", "EndpointSlice", "Node", "Pod"}).Draw(t, "kind")
	name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")
	key := "a/" + name
	remove := rapid.IntRange(0, 3).Draw(t, "remove") == 0
	id := kind + " " + key
	if kind == "Node" {
		id = kind + " " + name
	}
	var problems []*messages.ObjectError
	if !remove && rapid.IntRange(0, 4).Draw(t, "problem") == 0 {
		object := key
		if kind == "Node" {
			object = name
		}
		problems = []*messages.ObjectError{problem(kind, object, rapid.SampledFrom([]string{"f", "g"}).Draw(t, "field"))}
	}
	m.problems[id] = problems
	value := rapid.IntRange(1, 2)
	switch {
	case kind == "Service" && remove:
		delete(m.services, key)
		s.Delete(normalize.KindService, key)
	case kind == "Service":
		m.services[key] = svc(name, fmt.Sprintf("10.96.0.%d", value.Draw(t, "ip")))
		s.Set(m.services[key], problems)
	case kind == "EndpointSlice" && remove:
		delete(m.slices, key)
		s.Delete(normalize.KindEndpointSlice, key)
	case kind == "EndpointSlice":
		slice := eps(name, rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "service"), fmt.Sprintf("10.0.0.%d", value.Draw(t, "address")))
		slice.Generation, slice.Triggered = int64(value.Draw(t, "generation")), int64(value.Draw(t, "triggered"))
		m.slices[key] = slice
		s.Set(slice, problems)
	case kind == "Node" && remove:
		delete(m.nodes, name)
		s.Delete(normalize.KindNode, name)
	case kind == "Node":
		m.nodes[name] = &messages.Node{Name: name, Zone: fmt.Sprint(value.Draw(t, "zone"))}
		s.Set(m.nodes[name], problems)
	case remove:
		delete(m.pods, key)
		s.Delete(normalize.KindPod, key)
	default:
		m.pods[key] = &messages.Pod{Namespace: "a", Name: name, Addresses: []string{fmt.Sprintf("10.0.0.%d", value.Draw(t, "address"))}}
		s.Set(m.pods[key], problems)
	}
}

// meaning leaves out values that a Store may keep from an earlier update with the same content: the
// trigger time of a slice, and its generation if no other slice of the service has the same
// address.
func meaning(in *messages.Snapshot) *messages.Snapshot {
	out := kubetest.Meaning(in)
	for _, input := range out.GetServices() {
		count := map[string]int{}
		for _, slice := range input.GetSlices() {
			for _, e := range slice.GetEndpoints() {
				count[e.GetAddress()]++
			}
		}
		for _, slice := range input.GetSlices() {
			slice.Triggered = 0
			disputed := slices.ContainsFunc(slice.GetEndpoints(), func(e *messages.Endpoint) bool { return count[e.GetAddress()] > 1 })
			if !disputed {
				slice.Generation = 0
			}
		}
	}
	return out
}

// TestIncrementalEqualsFromScratch: after any changes, in any order and any commits, the Store
// holds the same values as a new Store with the same objects. A receiver that got only the changes
// holds the same values too.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, s, mirror := newModel(), kube.NewStore("x"), kubetest.NewMirror()
		mirror.Snapshot(s.Snapshot())
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				change(t, m, s)
			}
			if rapid.IntRange(0, 9).Draw(t, "relist") == 0 {
				s.Replace(m.list())
			}
			s.Commit().Deliver(mirror)
			if again := s.Commit(); !empty(again) {
				t.Fatalf("a second commit changed %v", again)
			}
		}
		objects, problems := m.list()
		want := meaning(kube.Collect("x", objects, problems))
		if diff := cmp.Diff(want, meaning(s.Snapshot()), protocmp.Transform(), protocmp.SortRepeatedFields(&messages.ServiceInput{}, "errors")); diff != "" {
			t.Fatalf("the store differs from a new one (-new +store):\n%s", diff)
		}
		if diff := cmp.Diff(s.Snapshot().GetServices(), mirror.View().Snapshot().GetServices(), protocmp.Transform()); diff != "" {
			t.Fatalf("the receiver differs from the store (-store +receiver):\n%s", diff)
		}
		if a, b := s.Snapshot().GetNode().GetGeneration(), mirror.View().Node.GetGeneration(); a != b {
			t.Fatalf("the node has generation %d in the store, %d in the receiver", a, b)
		}
		mirror.Check(t)
	})
}

// TestConcurrentUse is for the race detector: changes, commits and reads at once.
func TestConcurrentUse(t *testing.T) {
	s := kube.NewStore("n1")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 100 {
				name := fmt.Sprintf("s%d", i%10)
				s.Set(svc(name, fmt.Sprintf("10.96.%d.%d", worker, i)), nil)
				s.Set(eps(name+"-1", name, fmt.Sprintf("10.0.%d.%d", worker, i)), nil)
				s.Set(&messages.Node{Name: name}, nil)
				s.Commit()
				_ = s.Snapshot().GetServices()
				_ = s.SliceTriggered("a/" + name + "-1")
			}
		})
	}
	all.Wait()
}
