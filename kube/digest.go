package kube

import (
	"github.com/troupe-vpp/troupe/messages"
)

// DigestHash hashes one service of a Digest: the XOR over all services of this is messages.Digest.hash. Sender and receiver compare in one
// process, so the function may change between versions.
func DigestHash(key string, generation uint64) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * prime
	}
	// The finalizer of splitmix64 spreads the generation over all bits; XOR over plain sums would lose exchanges.
	h += generation * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// DigestOf computes the digest of a Snapshot from scratch, as its receiver does for what it holds.
func DigestOf(snapshot *messages.Snapshot) *messages.Digest {
	digest := &messages.Digest{Services: uint64(len(snapshot.GetServices())), NodeGeneration: snapshot.GetNode().GetGeneration()}
	for _, input := range snapshot.GetServices() {
		digest.Hash ^= DigestHash(input.GetKey(), input.GetGeneration())
	}
	return digest
}
