package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
)

// TestRosterHalves: every part of a node comes and goes without the others.
func TestRosterHalves(t *testing.T) {
	m, v := newModel(), view{}
	r := roster{nodes: map[string]*messages.ClusterNode{}}
	look := func(what string, changed bool, want *messages.ClusterNode) {
		t.Helper()
		before := r.snapshot()
		if got := r.refreshAll(m.keyspace(testLayout, nil), v); got != changed {
			t.Errorf("%s: changed = %v, want %v", what, got, changed)
		}
		if diff := cmp.Diff(want, r.nodes["a"], protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if changed && before["a"] != nil && before["a"] == r.nodes["a"] {
			t.Errorf("%s: a node that was given away has been changed", what)
		}
	}
	look("nothing", false, nil)
	m.record(testLayout, 2, "a", "ua")
	look("ID", true, &messages.ClusterNode{Name: "a", Id: 2, Uid: "ua"})
	m.set(testLayout.addresses("a"), `{"name":"a","vppAddresses":["10.0.0.2/24"]}`)
	look("addresses", true, &messages.ClusterNode{Name: "a", Id: 2, Uid: "ua", VppAddresses: []string{"10.0.0.2/24"}})
	v = v.next(nodesOf("", &messages.Node{Name: "a", Uid: "ub", Addresses: []string{"192.0.2.1"}, PodCidrs: []string{"10.1.0.0/24"}}))
	all := &messages.ClusterNode{
		Name: "a", Id: 2, Uid: "ub", VppAddresses: []string{"10.0.0.2/24"}, ManagementAddresses: []string{"192.0.2.1"},
		PodCidrs: []string{"10.1.0.0/24"},
	}
	look("Kubernetes", true, all)
	look("again", false, all)
	m.drop(testLayout.id(2), testLayout.name("a"))
	all.Id = 0
	look("ID gone", true, all)
	m.drop(testLayout.addresses("a"))
	all.VppAddresses = nil
	look("addresses gone", true, all)
	v = v.next(nodesOf(""))
	look("gone", true, nil)
}
