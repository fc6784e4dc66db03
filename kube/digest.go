package kube

import "github.com/troupe-vpp/troupe/messages"

// Digester is what actors and its tests still ask a source for.
//
// Deprecated: goes with the digests of the actors.
type Digester interface {
	// Digest returns the digest of everything delivered so far.
	Digest() *messages.Digest
}

// Digest returns the digest of what Snapshot returns.
//
// Deprecated: goes with Digester.
func (s *Store) Digest() *messages.Digest {
	snapshot := s.Snapshot()
	digest := &messages.Digest{Services: uint64(len(snapshot.GetServices())), NodeGeneration: snapshot.GetNode().GetGeneration()}
	for _, input := range snapshot.GetServices() {
		digest.Hash ^= DigestHash(input.GetKey(), input.GetGeneration())
	}
	return digest
}

// DigestHash hashes a text and a number, for example to spread delays of services. The function may change between versions.
func DigestHash(key string, generation uint64) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * prime
	}
	// The finalizer of splitmix64 spreads the number over all bits; XOR over plain sums would lose exchanges.
	h += generation * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
