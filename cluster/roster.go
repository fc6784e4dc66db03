package cluster

import (
	"cmp"
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

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
