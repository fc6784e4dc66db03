package vnet

// FeatureKey is a node on a feature arc of an interface.
type FeatureKey struct {
	SwIf      uint32
	Arc, Node string
}

// SetFeature puts a node on an arc or takes it off. Taking off what is not there does nothing.
func (m *Network) SetFeature(swIf uint32, arc, node string, on bool) {
	m.arcs[arc] = max(m.arcs[arc], swIf+1)
	key := FeatureKey{SwIf: swIf, Arc: arc, Node: node}
	switch {
	case on:
		m.Features[key]++
	case m.Features[key] > 1:
		m.Features[key]--
	default:
		delete(m.Features, key)
	}
}

// Covers reports whether an interface of this index or a later one ever had a feature on an arc. On
// the input arcs every interface has one of its own.
func (m *Network) Covers(swIf uint32, arc string) bool {
	return arc == "ip4-unicast" || arc == "ip6-unicast" || swIf < m.arcs[arc]
}

// Has reports whether a node is on an arc.
func (m *Network) Has(swIf uint32, arc, node string) bool {
	return m.Features[FeatureKey{SwIf: swIf, Arc: arc, Node: node}] > 0
}
