package service

import (
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// place is the location of this node, on which the choice of endpoints depends.
type place struct {
	// node is the node name in endpoints; "" matches no endpoint.
	node string
	// zone is the value of the zone label; "" matches no hint.
	zone string
}

// isLocal reports whether the endpoint is on this node. Only the node name counts: an endpoint
// without a node name is on no known node.
func (p place) isLocal(e *endpoint) bool { return p.node != "" && e.object.GetNode() == p.node }

// need says which sets of endpoints a service port uses.
type need struct {
	cluster, local bool
	// servingOnly means that an endpoint keeps connections only while it serves.
	servingOnly bool
}

// selection holds the endpoints to which one service port may forward.
type selection struct {
	// cluster is the set of the Cluster policy, local is the set of the Local policy, both ordered
	// by text.
	cluster, local []*messages.Backend
	// clusterDraining and localDraining are endpoints of the slices that are not in the set and
	// keep their connections.
	clusterDraining, localDraining []*messages.Backend
	// usable is true when any node has an endpoint that could be used. It distinguishes a drop
	// (there are endpoints, but none for this node) from a reject (there are none).
	usable bool
}

// topology is the kind of hints that the Cluster set follows.
type topology uint8

const (
	topologyNone topology = iota
	topologyNode
	topologyZone
)

// choose picks the two sets (CategorizeEndpoints of kube-proxy). A set without a ready endpoint
// falls back to endpoints that terminate but still serve. The sets do so independently: the Local
// set uses a local terminating endpoint even if other nodes have ready ones.
func choose(endpoints []*endpoint, wanted need, at place) selection {
	var s selection
	readyAnywhere, readyHere := false, false
	for _, e := range endpoints {
		switch {
		case e.ready():
			s.usable, readyAnywhere = true, true
			readyHere = readyHere || at.isLocal(e)
		case e.lastResort():
			s.usable = true
		}
	}
	mode := topologyNone
	if wanted.cluster && readyAnywhere {
		mode = topologyOf(endpoints, at)
	}
	var size sizes
	for _, e := range endpoints {
		e.inCluster = wanted.cluster && inCluster(e, readyAnywhere, mode, at)
		e.inLocal = wanted.local && at.isLocal(e) && eligible(e, readyHere)
		size.count(e)
	}
	s.cluster, s.local = backends(endpoints, size, at)
	if wanted.cluster && size.cluster < len(endpoints) {
		s.clusterDraining = draining(endpoints, wanted.servingOnly, at, func(e *endpoint) bool { return e.inCluster })
	}
	if wanted.local && size.local < len(endpoints) {
		s.localDraining = draining(endpoints, wanted.servingOnly, at, func(e *endpoint) bool { return e.inLocal })
	}
	return s
}

// sizes counts the members of the two sets and of their union.
type sizes struct {
	cluster, local, union int
}

// count adds one endpoint.
func (s *sizes) count(e *endpoint) {
	if e.inCluster {
		s.cluster++
	}
	if e.inLocal {
		s.local++
	}
	if e.inCluster || e.inLocal {
		s.union++
	}
}

// eligible reports whether an endpoint belongs to a set. anyReady says whether the set has a ready
// endpoint.
func eligible(e *endpoint, anyReady bool) bool {
	if anyReady {
		return e.ready()
	}
	return e.lastResort()
}

// inCluster reports whether an endpoint belongs to the Cluster set. The fallback to terminating
// endpoints ignores hints.
func inCluster(e *endpoint, readyAnywhere bool, mode topology, at place) bool {
	if !eligible(e, readyAnywhere) {
		return false
	}
	if !readyAnywhere {
		return true
	}
	switch mode {
	case topologyNode:
		return slices.Contains(e.object.GetNodeHints(), at.node)
	case topologyZone:
		return slices.Contains(e.object.GetZoneHints(), at.zone)
	default:
		return true
	}
}

// topologyOf decides whether hints are followed. Hints for nodes are followed if every ready
// endpoint has one and at least one names this node; otherwise hints for zones by the same rule. A
// single ready endpoint without a hint switches the hints off, so that half-written slices never
// concentrate the traffic. Endpoints that are not ready do not matter.
func topologyOf(endpoints []*endpoint, at place) topology {
	node, zone := at.node != "", at.zone != ""
	nodeNamed, zoneNamed := false, false
	for _, e := range endpoints {
		if !e.ready() {
			continue
		}
		nodeHints, zoneHints := e.object.GetNodeHints(), e.object.GetZoneHints()
		node = node && len(nodeHints) > 0
		zone = zone && len(zoneHints) > 0
		if !node && !zone {
			return topologyNone
		}
		nodeNamed = nodeNamed || node && slices.Contains(nodeHints, at.node)
		zoneNamed = zoneNamed || zone && slices.Contains(zoneHints, at.zone)
	}
	switch {
	case node && nodeNamed:
		return topologyNode
	case zone && zoneNamed:
		return topologyZone
	default:
		return topologyNone
	}
}

// backends makes the messages of the chosen endpoints; both sets share them.
func backends(endpoints []*endpoint, size sizes, at place) (cluster, local []*messages.Backend) {
	if size.union == 0 {
		return nil, nil
	}
	store := make([]messages.Backend, size.union)
	pointers := make([]*messages.Backend, size.cluster+size.local)
	cluster, local = pointers[:0:size.cluster], pointers[size.cluster:size.cluster]
	next := 0
	for _, e := range endpoints {
		if !e.inCluster && !e.inLocal {
			continue
		}
		b := &store[next]
		next++
		b.Address, b.Port, b.Local = e.address, e.port, at.isLocal(e)
		if e.inCluster {
			cluster = append(cluster, b)
		}
		if e.inLocal {
			local = append(local, b)
		}
	}
	return cluster, local
}

// draining makes the messages of endpoints that get no new connections and keep the existing ones.
func draining(endpoints []*endpoint, servingOnly bool, at place, used func(*endpoint) bool) (list []*messages.Backend) {
	for _, e := range endpoints {
		serving := e.ready() || e.object.GetServing()
		if !used(e) && (!servingOnly || serving) {
			list = append(list, &messages.Backend{Address: e.address, Port: e.port, Local: at.isLocal(e), Serving: serving})
		}
	}
	return list
}
