package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestLocalEndpointsAreDerivedNotCounted(t *testing.T) {
	service := &messages.Service{Namespace: "default", Name: "web"}
	on := func(node, address string) *messages.Endpoint { return &messages.Endpoint{Address: address, Node: node} }
	inputs := []*messages.ServiceInput{
		{Service: service, Slices: []*messages.EndpointSlice{
			{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.2"), on("n2", "10.1.2.2"), on("", "10.1.1.9")}},
			{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.2")}}, // the same pod in two slices
		}},
		{Service: service, Slices: []*messages.EndpointSlice{{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.1"), on("n1", "")}}}},
		// slices without a service
		{Slices: []*messages.EndpointSlice{{Endpoints: []*messages.Endpoint{on("n1", "10.1.1.7")}}}},
	}
	lists := map[string][]string{}
	for i, in := range inputs {
		lists[string(rune('a'+i))] = localEndpoints(in, "n1")
	}
	if diff := cmp.Diff(map[string][]string{"a": {"10.1.1.2"}, "b": {"10.1.1.1"}, "c": nil}, lists); diff != "" {
		t.Errorf("local endpoints by service (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.1.1.1", "10.1.1.2"}, union(lists)); diff != "" {
		t.Errorf("local endpoints (-want +got):\n%s", diff)
	}
}
