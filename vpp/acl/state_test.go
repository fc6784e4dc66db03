package acl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForeign: access lists of other owners are told from ours.
func TestForeign(t *testing.T) {
	state := NewState()
	state.ACLs[PermitTag] = ACL{Index: 3, Tag: PermitTag}
	state.Spare[4] = ACL{Index: 4}
	state.Lists = map[uint32]Lists{
		1: {Input: []uint32{3}},
		5: {Input: []uint32{4, 7}, Output: []uint32{3}},
		2: {Input: []uint32{9}, Output: []uint32{8}},
	}
	input, output := state.Foreign()
	if diff := cmp.Diff([][]uint32{{2, 5}, {2}}, [][]uint32{input, output}); diff != "" {
		t.Error(diff)
	}
}
