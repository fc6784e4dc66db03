package normalize_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestSelect(t *testing.T) {
	all := &normalize.Objects{
		Services: []*messages.Service{
			{Namespace: "a", Name: "plain"},
			{Namespace: "a", Name: "headless", Headless: true},
			{Namespace: "a", Name: "foreign", ForeignProxy: true},
			{Namespace: "a", Name: "name", Type: messages.ServiceType_EXTERNAL_NAME},
		},
		Slices: []*messages.EndpointSlice{
			{Namespace: "a", Name: "plain-1", Service: "plain"}, {Namespace: "a", Name: "h-1", Service: "h", Headless: true}, {Namespace: "a", Name: "orphan"},
		},
		Nodes:   []*messages.Node{{Name: "n1"}, {Name: "n2"}},
		Pods:    []*messages.Pod{{Namespace: "a", Name: "here", Node: "n1"}, {Namespace: "a", Name: "there", Node: "n2"}, {Namespace: "a", Name: "nowhere"}},
		Ignored: 3,
	}
	got := all.Select("n1")
	if len(got.Services) != 1 || len(got.Slices) != 1 || len(got.Nodes) != 2 || len(got.Pods) != 1 || got.Ignored != 3 {
		t.Errorf("selected for n1: %v", got)
	}
	if got := all.Select(""); len(got.Pods) != 0 {
		t.Errorf("a node without a name has pods: %v", got.Pods)
	}
	if len(all.Services) != 4 || len(all.Pods) != 3 {
		t.Error("Select changed its receiver")
	}
}

func TestKeys(t *testing.T) {
	slice := &messages.EndpointSlice{Namespace: "a", Name: "web-1", Service: "web"}
	for got, want := range map[string]string{
		normalize.ServiceKey(&messages.Service{Namespace: "a", Name: "web"}): "a/web",
		normalize.SliceKey(slice):                                                "a/web-1",
		normalize.PodKey(&messages.Pod{Namespace: "a", Name: "p"}):               "a/p",
		normalize.SliceOwner(slice):                                              "a/web",
		normalize.SliceOwner(&messages.EndpointSlice{Namespace: "a", Name: "x"}): "",
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}
