package actors

import (
	"github.com/troupe-vpp/troupe/actors/render/toytest"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// TreeWithToy is Tree with one more line in Deps.renderers.
func TreeWithToy(d *Deps) runtime.Spec {
	return treeOf(d, append(d.renderers(), adapted(toytest.New, struct{}{})))
}
