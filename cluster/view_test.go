package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestViewTouched(t *testing.T) {
	a, b, c := node("a", "1"), node("b", "1"), node("c", "1")
	before := view{}.next(nodesOf("", a, b, c))
	after := before.next(nodesOf("", node("a", "1"), node("b", "2"), node("d", "1")))
	got := before.touched(after)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"b", "c", "d"}, got); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
	if got := after.touched(after.next(nil)); len(got) != 0 {
		t.Errorf("no longer vouching for a view touched %v", got)
	}
}

// TestViewTakesSelf: the view uses the node's own object if the list lacks it, and does not change
// the caller's value.
func TestViewTakesSelf(t *testing.T) {
	in := nodesOf("", node("a", "1"))
	in.Self = node("me", "u")
	v := view{}.next(in)
	if v.nodes["me"].GetUid() != "u" || !v.complete("me") {
		t.Errorf("own node missing: %v", v.nodes)
	}
	if len(in.GetNodes()) != 1 {
		t.Errorf("the caller's map was changed: %v", in.GetNodes())
	}
	if v := (view{}).next(&messages.NodeInput{Self: node("me", "u")}); v.nodes["me"] == nil {
		t.Error("own node missing from an empty list")
	}
}
