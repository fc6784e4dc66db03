package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompare: networks outside, overlaps, and nodes without a network.
func TestCompare(t *testing.T) {
	nodes := []Node{{"a", []string{"10.1.1.0/24", "fd00:1::/64"}}, {"b", []string{"10.9.1.0/24"}}, {"c", nil}, {"d", []string{"10.96.4.0/24"}}}
	want := Networks{
		Outside: []string{"b 10.9.1.0/24"}, Overlap: []string{"d 10.96.4.0/24", "services.clusterCIDRs 10.96.0.0/16"}, Without: []string{"c"},
	}
	if diff := cmp.Diff(want, Compare(nodes, []string{"10.1.0.0/16", "10.96.0.0/16", "none"}, []string{"10.96.0.0/12"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Networks{}, Compare(nodes[:1], nil, []string{"10.96.0.0/12"})); diff != "" {
		t.Error(diff)
	}
}
