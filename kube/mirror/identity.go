package mirror

import (
	"fmt"

	"github.com/troupe-vpp/troupe/messages"
)

// apiService is the key of the Service that every API server makes for itself.
const apiService = "default/kubernetes"

// clusterOf returns the UID of the Service default/kubernetes, "" if it has none.
func clusterOf(s *messages.Snapshot) string {
	for _, in := range s.GetServices() {
		if in.GetKey() == apiService {
			return in.GetService().GetUid()
		}
	}
	return ""
}

// identity is the part of a state by which a later state is recognised as one of the same cluster.
type identity struct {
	node, source string
	cluster      string          // for people
	uids         map[string]bool // UIDs of the nodes and of the Service default/kubernetes
	services     int
	revision     uint64
	saved        int64
}

// identify returns the identity of a state, so that the state itself need not stay in memory.
func identify(m *messages.Mirror) *identity {
	id := &identity{
		node: m.GetNode(), source: m.GetSource(), cluster: m.GetCluster(), uids: map[string]bool{},
		services: len(m.GetSnapshot().GetServices()), revision: m.GetRevision(), saved: m.GetSaved(),
	}
	if id.cluster != "" {
		id.uids[id.cluster] = true
	}
	// All nodes count, because the Service default/kubernetes or this node may have been created
	// again.
	for _, n := range m.GetSnapshot().GetNode().GetNodes() {
		if uid := n.GetUid(); uid != "" {
			id.uids[uid] = true
		}
	}
	return id
}

// same reports whether two states belong to one cluster. One common UID is enough, so the answer
// does not change when default/kubernetes, or all nodes except one, are created again.
func (id *identity) same(other *identity) bool {
	// YAML written by hand has no UIDs. Then the place from which it was read decides.
	if len(id.uids) == 0 || len(other.uids) == 0 {
		return id.source == other.source
	}
	for uid := range id.uids {
		if other.uids[uid] {
			return true
		}
	}
	return false
}

// usable returns the reason why a state must not be served on a node; nil if it may be served. It
// does not compare clusters, because the cluster of the source is not known before the source
// answers.
func (id *identity) usable(node string) error {
	// The pods and node addresses belong to one node. A disk that was moved must not serve them on
	// another node.
	if id.node != node {
		return fmt.Errorf("it belongs to node %q", id.node)
	}
	return nil
}
