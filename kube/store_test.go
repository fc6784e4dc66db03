package kube_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func svc(name string, ips ...string) *messages.Service {
	return &messages.Service{Namespace: "a", Name: name, ClusterIps: ips}
}

func eps(name, service string, addresses ...string) *messages.EndpointSlice {
	out := &messages.EndpointSlice{Namespace: "a", Name: name, Service: service, Family: messages.IPFamily_IPV4}
	for _, a := range addresses {
		out.Endpoints = append(out.Endpoints, &messages.Endpoint{Address: a, Ready: true, Serving: true})
	}
	return out
}

func problem(kind, object, field string) *messages.ObjectError {
	return &messages.ObjectError{Source: "test", Kind: kind, Object: object, Field: field, Message: "bad"}
}

// describe returns the content of a value in one line.
func describe(in *messages.ServiceInput) string {
	out := in.GetKey() + ":"
	if in.GetService() != nil {
		out += fmt.Sprintf(" service%v", in.GetService().GetClusterIps())
	}
	for _, s := range in.GetSlices() {
		out += " " + s.GetName()
		for _, e := range s.GetEndpoints() {
			out += "," + e.GetAddress()
		}
	}
	for _, e := range in.GetErrors() {
		out += " !" + e.GetField()
	}
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		out += " gone"
	}
	return out
}

// wantChanges commits and compares the changes; "node" stands for the surroundings.
func wantChanges(t *testing.T, s *kube.Store, want ...string) kube.Changes {
	t.Helper()
	changes := s.Commit()
	var got []string
	last := uint64(0)
	for _, input := range changes.Services {
		got = append(got, describe(input))
		if input.GetGeneration() <= last {
			t.Errorf("generations do not grow: %v", changes.Services)
		}
		last = input.GetGeneration()
	}
	if changes.Node != nil {
		got = append(got, "node")
		if changes.Node.GetGeneration() <= last {
			t.Errorf("generation of the node does not grow: %v", changes.Node)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	return changes
}

func TestSlicesBeforeAndAfterTheirService(t *testing.T) {
	s := kube.NewStore("n1")
	s.Set(eps("web-2", "web", "10.0.0.2"), nil)
	s.Set(eps("web-1", "web", "10.0.0.1"), nil)
	wantChanges(t, s, "a/web: web-1,10.0.0.1 web-2,10.0.0.2")
	s.Set(svc("web", "10.96.0.1"), nil)
	wantChanges(t, s, "a/web: service[10.96.0.1] web-1,10.0.0.1 web-2,10.0.0.2")
	s.Delete(normalize.KindService, "a/web")
	wantChanges(t, s, "a/web: web-1,10.0.0.1 web-2,10.0.0.2")
	s.Set(svc("web", "10.96.0.2"), nil)
	s.Delete(normalize.KindEndpointSlice, "a/web-1")
	wantChanges(t, s, "a/web: service[10.96.0.2] web-2,10.0.0.2")
	s.Delete(normalize.KindEndpointSlice, "a/web-2")
	s.Delete(normalize.KindService, "a/web")
	wantChanges(t, s, "a/web: gone")
	wantChanges(t, s)
	if n := len(s.Snapshot().GetServices()); n != 0 {
		t.Errorf("%d services in the snapshot", n)
	}
}

func TestOnlyContentCounts(t *testing.T) {
	s := kube.NewStore("n1")
	s.Set(svc("web", "10.96.0.1"), nil)
	s.Set(eps("web-1", "web", "10.0.0.1"), nil)
	wantChanges(t, s, "a/web: service[10.96.0.1] web-1,10.0.0.1")

	s.Set(svc("web", "10.96.0.1"), nil)
	wantChanges(t, s)
	annotated := eps("web-1", "web", "10.0.0.1")
	annotated.Triggered, annotated.Generation = 5, 9
	s.Set(annotated, nil)
	wantChanges(t, s)
	if got := s.SliceTriggered("a/web-1"); got != 5 {
		t.Errorf("trigger time %d, want that of the last update", got)
	}
	s.Set(svc("web", "10.96.0.9"), nil) // changed and reverted within one commit
	s.Set(svc("web", "10.96.0.1"), nil)
	wantChanges(t, s)
	s.Set(svc("new"), nil)
	s.Delete(normalize.KindService, "a/new")
	wantChanges(t, s)
	s.Delete(normalize.KindService, "a/unknown")
	s.Delete(normalize.KindEndpointSlice, "a/unknown")
	s.Delete(normalize.KindNode, "unknown")
	s.Delete(normalize.KindPod, "a/unknown")
	wantChanges(t, s)

	s.Set(eps("web-1", "web", "10.0.0.2"), nil)
	changes := wantChanges(t, s, "a/web: service[10.96.0.1] web-1,10.0.0.2")
	if got := changes.Services[0].GetSlices()[0].GetTriggered(); got != 0 {
		t.Errorf("trigger time %d, want that of the slice", got)
	}
}

// TestGenerationsOfDisputedSlices: the generations of two slices matter only while both contain the
// same address.
func TestGenerationsOfDisputedSlices(t *testing.T) {
	s := kube.NewStore("n1")
	newer := func(slice *messages.EndpointSlice, generation int64) *messages.EndpointSlice {
		slice.Generation = generation
		return slice
	}
	s.Set(newer(eps("web-1", "web", "10.0.0.1"), 1), nil)
	s.Set(newer(eps("web-2", "web", "10.0.0.2"), 1), nil)
	wantChanges(t, s, "a/web: web-1,10.0.0.1 web-2,10.0.0.2")
	s.Set(newer(eps("web-1", "web", "10.0.0.1"), 2), nil)
	wantChanges(t, s)
	s.Set(newer(eps("web-2", "web", "10.0.0.1"), 2), nil)
	changes := wantChanges(t, s, "a/web: web-1,10.0.0.1 web-2,10.0.0.1")
	if got := changes.Services[0].GetSlices()[0].GetGeneration(); got != 2 {
		t.Errorf("slice of generation %d, want the last one", got)
	}
	s.Set(newer(eps("web-1", "web", "10.0.0.1"), 3), nil)
	wantChanges(t, s, "a/web: web-1,10.0.0.1 web-2,10.0.0.1")
}

func TestRelabelledSliceLeavesItsOldService(t *testing.T) {
	s := kube.NewStore("n1")
	s.Set(eps("x", "old", "10.0.0.1"), nil)
	wantChanges(t, s, "a/old: x,10.0.0.1")
	s.Set(eps("x", "new", "10.0.0.1"), nil)
	wantChanges(t, s, "a/new: x,10.0.0.1", "a/old: gone")
	s.Set(eps("x", "", "10.0.0.1"), nil)
	wantChanges(t, s, "a/new: gone")
	s.Delete(normalize.KindEndpointSlice, "a/x")
	wantChanges(t, s)
}

func TestRecreatedServiceGetsALargerGeneration(t *testing.T) {
	s := kube.NewStore("n1")
	s.Set(svc("web"), nil)
	first := wantChanges(t, s, "a/web: service[]").Services[0].GetGeneration()
	s.Delete(normalize.KindService, "a/web")
	gone := wantChanges(t, s, "a/web: gone").Services[0].GetGeneration()
	s.Set(svc("web"), nil)
	again := wantChanges(t, s, "a/web: service[]").Services[0].GetGeneration()
	if first >= gone || gone >= again {
		t.Errorf("generations %d, %d, %d do not grow", first, gone, again)
	}
}

func TestReplace(t *testing.T) {
	s := kube.NewStore("n1")
	s.Set(svc("same", "10.96.0.1"), nil)
	s.Set(svc("other", "10.96.0.2"), nil)
	s.Set(svc("dropped"), nil)
	s.Set(eps("moved", "same", "10.0.0.1"), nil)
	s.Set(&messages.Node{Name: "n1"}, nil)
	s.Set(&messages.Pod{Namespace: "a", Name: "p", Node: "n1"}, nil)
	s.Commit()
	before := s.Snapshot()

	same := &normalize.Objects{
		Services: []*messages.Service{svc("dropped"), svc("other", "10.96.0.2"), svc("same", "10.96.0.1")},
		Slices:   []*messages.EndpointSlice{eps("moved", "same", "10.0.0.1")},
		Nodes:    []*messages.Node{{Name: "n1"}},
		Pods:     []*messages.Pod{{Namespace: "a", Name: "p", Node: "n1"}},
	}
	s.Replace(same, nil)
	wantChanges(t, s)
	if diff := cmp.Diff(before, s.Snapshot(), protocmp.Transform()); diff != "" {
		t.Errorf("snapshot after the same list (-before +after):\n%s", diff)
	}

	s.Replace(&normalize.Objects{
		Services: []*messages.Service{svc("same", "10.96.0.1"), svc("other", "10.96.0.3")},
		Slices:   []*messages.EndpointSlice{eps("moved", "other", "10.0.0.1")},
		Nodes:    []*messages.Node{{Name: "n2"}},
	}, nil)
	wantChanges(t, s, "a/dropped: gone", "a/other: service[10.96.0.3] moved,10.0.0.1", "a/same: service[10.96.0.1]", "node")
	if node := s.Snapshot().GetNode(); node.GetSelf() != nil || len(node.GetNodes()) != 1 || len(node.GetPods()) != 0 {
		t.Errorf("surroundings after the list: %v", node)
	}
}

func TestSurroundings(t *testing.T) {
	s := kube.NewStore("n1")
	wantChanges(t, s)
	s.Set(&messages.Node{Name: "n2"}, nil)
	first := wantChanges(t, s, "node").Node
	if first.GetSelf() != nil || len(first.GetNodes()) != 1 {
		t.Errorf("without this node: %v", first)
	}
	s.Set(&messages.Node{Name: "n1", Zone: "a"}, nil)
	s.Set(&messages.Pod{Namespace: "b", Name: "a"}, nil)
	s.Set(&messages.Pod{Namespace: "a", Name: "b"}, nil)
	s.Set(&messages.Pod{Namespace: "a-b", Name: "a"}, nil)
	second := wantChanges(t, s, "node").Node
	if second.GetSelf().GetZone() != "a" || len(first.GetNodes()) != 1 {
		t.Errorf("this node %v; the value before now has %v", second.GetSelf(), first.GetNodes())
	}
	var order []string
	for _, p := range second.GetPods() {
		order = append(order, normalize.PodKey(p))
	}
	if diff := cmp.Diff([]string{"a/b", "a-b/a", "b/a"}, order); diff != "" {
		t.Errorf("pods are not ordered by namespace and name:\n%s", diff)
	}
	s.Set(&messages.Node{Name: "n1", Zone: "a"}, nil)
	s.Set(&messages.Pod{Namespace: "b", Name: "a"}, nil)
	wantChanges(t, s)
	s.Set(&messages.Node{Name: "n1", Zone: "b"}, nil)
	if third := wantChanges(t, s, "node").Node; third.GetSelf().GetZone() != "b" || third.GetNodes()["n1"].GetZone() != "b" {
		t.Errorf("changed zone: %v", third)
	}
	s.Delete(normalize.KindPod, "b/a")
	wantChanges(t, s, "node")
	s.Delete(normalize.KindNode, "n1")
	if fourth := wantChanges(t, s, "node").Node; fourth.GetSelf() != nil {
		t.Errorf("deleted node: %v", fourth)
	}
	// kinds without a namespace have their own names
	s.Set(&messages.Node{Name: "x"}, nil)
	s.Set(&normalize.ServiceCIDRs{Name: "x", Networks: []string{"10.96.0.0/16"}}, nil)
	s.Set(&messages.AddressPool{Name: "x"}, nil)
	wantChanges(t, s, "node")
	s.Delete(normalize.KindServiceCIDR, "x")
	if n := wantChanges(t, s, "node").Node; len(n.GetServiceCidrs()) != 0 || len(n.GetAddressPools()) != 1 || n.GetNodes()["x"] == nil {
		t.Errorf("deleted ServiceCIDR: %v", n)
	}
	s.Delete(normalize.KindAddressPool, "x")
	if n := wantChanges(t, s, "node").Node; len(n.GetAddressPools()) != 0 || n.GetNodes()["x"] == nil {
		t.Errorf("deleted AddressPool: %v", n)
	}
}

// TestProblems: a problem is delivered with its service, or with the surroundings if it has none,
// and never twice.
func TestProblems(t *testing.T) {
	s := kube.NewStore("n1")
	bad := []*messages.ObjectError{problem("Service", "a/web", "spec.ports[0]")}
	s.Set(svc("web"), bad)
	wantChanges(t, s, "a/web: service[] !spec.ports[0]")
	s.Set(svc("web"), bad)
	wantChanges(t, s)
	s.Set(eps("web-1", "web", "10.0.0.1"), []*messages.ObjectError{problem("EndpointSlice", "a/web-1", "ports[0]")})
	wantChanges(t, s, "a/web: service[] web-1,10.0.0.1 !ports[0] !spec.ports[0]")
	s.Set(svc("web"), nil)
	wantChanges(t, s, "a/web: service[] web-1,10.0.0.1 !ports[0]")
	s.Set(eps("web-1", "other", "10.0.0.1"), []*messages.ObjectError{problem("EndpointSlice", "a/web-1", "ports[0]")})
	wantChanges(t, s, "a/other: web-1,10.0.0.1 !ports[0]", "a/web: service[]")
	s.Delete(normalize.KindEndpointSlice, "a/web-1")
	wantChanges(t, s, "a/other: gone")
	s.Set(&messages.Node{Name: "n1"}, []*messages.ObjectError{problem("Node", "n1", "status.addresses[0]")})
	if node := wantChanges(t, s, "node").Node; len(node.GetErrors()) != 1 {
		t.Errorf("problems of the node: %v", node.GetErrors())
	}
	s.Set(&messages.Node{Name: "n1"}, nil)
	wantChanges(t, s, "node")

	lost := problem("Service", "a/lost", "")
	s.Replace(&normalize.Objects{Services: []*messages.Service{svc("web")}}, []*messages.ObjectError{lost, problem("", "document 3", "")})
	if node := wantChanges(t, s, "node").Node; len(node.GetErrors()) != 2 {
		t.Errorf("problems without a service: %v", node.GetErrors())
	}
	s.Set(svc("lost"), []*messages.ObjectError{lost})
	changes := wantChanges(t, s, "a/lost: service[] !", "node")
	if len(changes.Node.GetErrors()) != 1 {
		t.Errorf("the problem stands with its service and here: %v", changes.Node.GetErrors())
	}
}

func TestCollect(t *testing.T) {
	got := kube.Collect("n1", &normalize.Objects{
		Services: []*messages.Service{svc("b"), svc("a")}, Nodes: []*messages.Node{{Name: "n1"}},
	}, nil)
	if len(got.GetServices()) != 2 || got.GetServices()[0].GetKey() != "a/a" || got.GetNode().GetSelf().GetName() != "n1" ||
		!got.GetComplete() || got.GetGeneration() != 3 {
		t.Errorf("collected: %v", got)
	}
}

// TestWhatWasGivenOutNeverChanges changes all objects after a snapshot and compares the snapshot
// with its copy.
func TestWhatWasGivenOutNeverChanges(t *testing.T) {
	s := kube.NewStore("n1")
	s.Set(svc("web", "10.96.0.1"), nil)
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		s.Set(eps(name, "web", "10.0.0.1"), nil)
	}
	s.Set(&messages.Node{Name: "n1"}, nil)
	s.Commit()
	given := s.Snapshot()
	copied := proto.CloneOf(given)
	s.Delete(normalize.KindEndpointSlice, "a/web-1")
	s.Set(eps("web-2", "web", "10.0.0.9"), nil)
	s.Set(eps("web-0", "web", "10.0.0.9"), nil)
	s.Set(&messages.Node{Name: "n2"}, nil)
	s.Commit()
	s.Replace(&normalize.Objects{}, nil)
	s.Commit()
	if diff := cmp.Diff(copied, given, protocmp.Transform()); diff != "" {
		t.Errorf("a snapshot changed after it was given out:\n%s", diff)
	}
}
