package chaos

import (
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
)

// TestOrderKnowsEveryRenderer: the order has each renderer of the tree, and reports one that begins
// before its earlier siblings are ready.
func TestOrderKnowsEveryRenderer(t *testing.T) {
	deps := &actors.Deps{NodeName: thisNode, Readiness: &health.Readiness{}, CNAT: &cnat.Config{Node: thisNode}}
	o := newOrder(actors.Tree(deps))
	if all := o.groups[address.Dataplane]; !slices.Equal(all[2:5], deps.Renderers()) {
		t.Fatalf("the dataplane is %q, its renderers are %q", all, deps.Renderers())
	}
	before := []string{address.Link, address.Interfaces}
	for _, name := range deps.Renderers() {
		path := address.Renderer(name)
		o.sees(address.Dataplane, nil, runtime.Starting)
		for range before[1:] {
			o.sees(address.Dataplane, &messages.Ready{}, runtime.Before)
		}
		if !o.sees(path, nil, runtime.Starting) {
			t.Errorf("%s begins when %d of %d are ready, which is not reported", name, len(before)-1, len(before))
		}
		o.sees(address.Dataplane, nil, runtime.Starting)
		for range before {
			o.sees(address.Dataplane, &messages.Ready{}, runtime.Before)
		}
		if o.sees(path, nil, runtime.Starting) {
			t.Errorf("%s begins in its turn, which is reported as too early", name)
		}
		before = append(before, path)
	}
}
