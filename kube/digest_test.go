package kube_test

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
)

func TestDigestHashTellsApart(t *testing.T) {
	seen := map[uint64]string{}
	for i := range 200 {
		for generation := range uint64(200) {
			key := fmt.Sprintf("default/web-%d", i)
			h := kube.DigestHash(key, generation)
			if other, twice := seen[h]; twice {
				t.Fatalf("%s at %d has the hash of %s", key, generation, other)
			}
			seen[h] = fmt.Sprintf("%s at %d", key, generation)
		}
	}
	swapped := kube.DigestHash("a", 1) ^ kube.DigestHash("b", 2) ^ kube.DigestHash("a", 2) ^ kube.DigestHash("b", 1)
	if swapped == 0 {
		t.Error("two services that exchange their generations go unnoticed")
	}
}
