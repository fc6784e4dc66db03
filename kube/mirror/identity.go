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

// identity is what is remembered of a state to tell whether another one is of the same cluster.
type identity struct {
	node, source string
	cluster      string          // for people
	uids         map[string]bool // of the nodes, and of the Service default/kubernetes
	services     int
	revision     uint64
	saved        int64
}

// identify takes the identity out of a state, so that the state itself can go.
func identify(m *messages.Mirror) *identity {
	id := &identity{
		node: m.GetNode(), source: m.GetSource(), cluster: m.GetCluster(), uids: map[string]bool{},
		services: len(m.GetSnapshot().GetServices()), revision: m.GetRevision(), saved: m.GetSaved(),
	}
	if id.cluster != "" {
		id.uids[id.cluster] = true
	}
	// All nodes, because the Service default/kubernetes or this node may have been made anew.
	for _, n := range m.GetSnapshot().GetNode().GetNodes() {
		if uid := n.GetUid(); uid != "" {
			id.uids[uid] = true
		}
	}
	return id
}

// same reports whether two states are of one cluster. A node that was made anew, or all of them but
// one, and even a default/kubernetes that was made anew change nothing.
func (id *identity) same(other *identity) bool {
	// YAML written by hand has no UIDs; the place it was read from is the next best sign.
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

// usable returns why a state must not be served on a node; nil = it may. Which cluster the source
// leads to is not known before it answers.
func (id *identity) usable(node string) error {
	// Pods and node addresses are those of one node: a disk that was moved must not serve them
	// elsewhere.
	if id.node != node {
		return fmt.Errorf("it is of node %q", id.node)
	}
	return nil
}
