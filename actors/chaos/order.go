package chaos

import (
	"maps"
	"path"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// groups returns the names of the children of each ordered supervisor of a tree, by its path, in
// the order of their start.
func groups(at string, tree runtime.Spec) map[string][]string {
	found := map[string][]string{}
	for _, child := range tree.Children {
		found[at] = append(found[at], child.Name)
		maps.Copy(found, groups(at+"/"+child.Name, child.Spec))
	}
	return found
}

// order checks the start of groups: a child begins after all its earlier siblings are ready (I13).
type order struct {
	groups map[string][]string
	begun  map[string]bool // children that began in this incarnation of their group
	ready  map[string]int  // Ready messages that a group got in this incarnation
}

func newOrder(tree runtime.Spec) order {
	return order{groups(address.RootName, tree), map[string]bool{}, map[string]int{}}
}

// sees notes a message or a start of an actor, and reports whether the start is too early.
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
