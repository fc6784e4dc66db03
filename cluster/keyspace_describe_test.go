package cluster

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

func recordOf(id uint32, name string) *messages.NodeRecord {
	return &messages.NodeRecord{Id: id, Name: name, Uid: "u-" + name}
}

// describe renders a keyspace as lines, for comparison.
func describe(k *keyspace) []string {
	lines := []string{fmt.Sprintf("revision %d", k.revision)}
	for id, e := range k.ids {
		lines = append(lines, fmt.Sprintf("id %d: %v at %d", id, e.value, e.mod))
	}
	for name, e := range k.names {
		lines = append(lines, fmt.Sprintf("name %s: %v at %d", name, e.value, e.mod))
	}
	for name, e := range k.addresses {
		lines = append(lines, fmt.Sprintf("addresses %s: %v at %d", name, e.value, e.mod))
	}
	for name, ids := range k.owners {
		lines = append(lines, fmt.Sprintf("owner %s: %v", name, ids))
	}
	slices.Sort(lines)
	return lines
}
