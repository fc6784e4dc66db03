package chaos

import (
	"maps"
	"path"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// groups are the supervisors of a tree that start their children one after the other, by path, with
// the names of the children in this order.
func groups(at string, tree runtime.Spec) map[string][]string {
	found := map[string][]string{}
	for _, child := range tree.Children {
		found[at] = append(found[at], child.Name)
		maps.Copy(found, groups(at+"/"+child.Name, child.Spec))
	}
	return found
}

// order watches the start of groups: a child begins when all its earlier siblings are ready (I13).
type order struct {
	groups map[string][]string
	begun  map[string]bool // children, in this life of their group
	ready  map[string]int  // words of readiness that a group has heard in this life
}

func newOrder(tree runtime.Spec) order {
	return order{groups(address.RootName, tree), map[string]bool{}, map[string]int{}}
}

// sees takes what happens to an actor and reports whether it came too early.
func (o *order) sees(at string, msg any, phase runtime.Phase) (early bool) {
	switch phase {
	case runtime.Before:
		if _, ok := msg.(*messages.Ready); ok {
			o.ready[at]++
		}
	case runtime.Starting:
		for _, child := range o.groups[at] {
			delete(o.begun, at+"/"+child)
		}
		o.ready[at] = 0
		place := slices.Index(o.groups[path.Dir(at)], path.Base(at))
		early = place > o.ready[path.Dir(at)] && !o.begun[at]
		o.begun[at] = true
	}
	return early
}
