package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// roster joins the three parts of each node: its ID, its VPP addresses, and its Kubernetes object.
// Each part may be missing. The roster belongs to one goroutine. Its nodes are immutable: a change
// replaces the node.
type roster struct {
	nodes map[string]*messages.ClusterNode
}

// refresh joins the named nodes again and reports whether any of them has changed.
func (r *roster) refresh(names []string, k *keyspace, v view) bool {
	changed := false
	for _, name := range names {
		node := joined(name, k, v)
		old := r.nodes[name]
		switch {
		case node == nil && old == nil, node != nil && old != nil && proto.Equal(node, old):
			continue
		case node == nil:
			delete(r.nodes, name)
		default:
			r.nodes[name] = node
		}
		changed = true
	}
	return changed
}

// refreshAll joins all nodes again and reports whether any of them has changed.
func (r *roster) refreshAll(k *keyspace, v view) bool {
	names := map[string]bool{}
	collect(names, r.nodes)
	collect(names, v.nodes)
	if k != nil {
		collect(names, k.owners)
		collect(names, k.addresses)
	}
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	return r.refresh(list, k, v)
}

func collect[T any](into map[string]bool, from map[string]T) {
	for name := range from {
		into[name] = true
	}
}

// snapshot returns a copy of the map.
func (r *roster) snapshot() map[string]*messages.ClusterNode { return maps.Clone(r.nodes) }

// joined returns a node with all its parts; nil if it has no part.
func joined(name string, k *keyspace, v view) *messages.ClusterNode {
	object := v.nodes[name]
	node := &messages.ClusterNode{
		Name: name, Uid: object.GetUid(), ManagementAddresses: object.GetAddresses(), PodCidrs: object.GetPodCidrs(),
	}
	if k != nil {
		node.Id = k.idOf(name)
		node.VppAddresses = k.addresses[name].value.GetVppAddresses()
		node.Uid = cmp.Or(node.Uid, k.uidOf(name))
	}
	if object == nil && node.Id == 0 && len(node.VppAddresses) == 0 {
		return nil
	}
	return node
}

// wanted is the latest argument of Publish.
type wanted struct {
	asked     bool
	addresses []string // canonical
	invalid   []string
}

// want parses the argument of Publish.
func want(addresses []string) wanted {
	canonical, invalid := canonicalAddresses(addresses)
	return wanted{asked: true, addresses: canonical, invalid: invalid}
}

// decidePublish compares the stored addresses with the wanted addresses. It returns whether they
// are equal, a reason that names the invalid addresses, and the transaction that makes them equal.
// The name record is guarded too, so that a node without its ID does not publish.
func decidePublish(in input) (published bool, reason string, op *operation) {
	if !in.want.asked {
		return false, "", nil
	}
	if len(in.want.invalid) > 0 {
		reason = fmt.Sprintf("not published, because not an IP with a prefix length: %.200s", strings.Join(in.want.invalid, ", "))
	}
	k, self := in.keys, in.self.name
	stored := k.addresses[self]
	if stored.err == nil && slices.Equal(stored.value.GetVppAddresses(), in.want.addresses) && (stored.mod == 0) == (len(in.want.addresses) == 0) {
		return reason == "", reason, nil
	}
	op = &operation{
		verb: verbPublish, about: fmt.Sprintf("addresses %v of %s", in.want.addresses, self),
		guards: []guard{k.guardAddresses(self), k.guardName(self)},
	}
	if len(in.want.addresses) == 0 {
		op.branches = []branch{{deletes: []string{k.layout.addresses(self)}}}
		return false, reason, op
	}
	value, err := encodeAddresses(&messages.NodeAddresses{Name: self, VppAddresses: in.want.addresses})
	if err != nil {
		return false, err.Error(), nil
	}
	op.branches = []branch{{puts: []put{{k.layout.addresses(self), value}}}}
	return false, reason, op
}
