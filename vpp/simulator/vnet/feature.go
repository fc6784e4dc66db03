package vnet

// FeatureKey is a node on a feature arc of an interface.
type FeatureKey struct {
	SwIf      uint32
	Arc, Node string
}

// SetFeature puts a node on an arc or takes it off. Taking off what is
// not there does nothing.
func (m *Network) SetFeature(swIf uint32, arc, node string, on bool) {
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

// Has reports whether a node is on an arc.
func (m *Network) Has(swIf uint32, arc, node string) bool {
	return m.Features[FeatureKey{SwIf: swIf, Arc: arc, Node: node}] > 0
}
