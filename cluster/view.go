package cluster

import (
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// view is the latest argument of SetNodes. It is immutable.
type view struct {
	// serial counts the views.
	serial uint64
	// known is true after the first call of SetNodes.
	known bool
	// current is false while the view may be out of date.
	current bool
	// whole is false if a Node object could not be read.
	whole bool
	nodes map[string]*messages.Node
}

// next returns the view after SetNodes; nil keeps the nodes and marks them as not current.
func (v view) next(in *messages.NodeInput) view {
	if in == nil {
		v.current = false
		v.serial++
		return v
	}
	next := view{serial: v.serial + 1, known: true, current: true, whole: true, nodes: in.GetNodes()}
	for _, e := range in.GetErrors() {
		next.whole = next.whole && e.GetKind() != "Node"
	}
	if self := in.GetSelf(); self.GetName() != "" && next.nodes[self.GetName()] == nil {
		next.nodes = maps.Clone(next.nodes)
		if next.nodes == nil {
			next.nodes = map[string]*messages.Node{}
		}
		next.nodes[self.GetName()] = self
	}
	return next
}

// complete reports whether a node that is missing in the view has left Kubernetes. It is true if
// the view is current, without unreadable nodes, and plausible, because it contains this node.
func (v view) complete(self string) bool {
	return v.known && v.current && v.whole && v.nodes[self] != nil
}

// without reports whether Kubernetes has nodes, but not this node. A view without any node proves
// nothing.
func (v view) without(self string) bool {
	return v.known && v.whole && len(v.nodes) > 0 && v.nodes[self] == nil
}

// touched returns the names of the nodes that differ between two views.
func (v view) touched(next view) []string {
	var names []string
	for name, node := range next.nodes {
		if old := v.nodes[name]; old != node && !proto.Equal(old, node) {
			names = append(names, name)
		}
	}
	for name := range v.nodes {
		if next.nodes[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// ahead counts the nodes of Kubernetes that have no ID and come before this node, by name.
func (v view) ahead(k *keyspace, self string) int {
	count := 0
	for name := range v.nodes {
		if name < self && len(k.owners[name]) == 0 {
			count++
		}
	}
	return count
}
