package external

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/external"
)

// Wants is the merged external configuration for the renderer; always complete and immutable.
type Wants struct {
	// Generation grows with each change, over restarts too.
	Generation uint64
	// Merged is the merge of all layers.
	Merged *external.Merged
	// Retired has the addresses and roles of earlier layers.
	Retired Retired
	// Complete says that every source has been read. Before, external configuration of an
	// earlier run stays in VPP.
	Complete bool
}

// Retired has the addresses and roles that layers have wanted so far: VPP does not say whose they
// are.
type Retired struct {
	// Addresses are NAT addresses, ordered.
	Addresses []netip.Addr
	// Roles by name of the interface: output if it ever was, otherwise the last one.
	Roles map[string]external.Role
}

// With returns a copy with further addresses and roles.
func (r Retired) With(addresses []netip.Addr, roles map[string]external.Role) Retired {
	all := Retired{slices.Clone(r.Addresses), maps.Clone(r.Roles)}
	if all.Roles == nil {
		all.Roles = map[string]external.Role{}
	}
	for _, a := range addresses {
		if at, found := slices.BinarySearchFunc(all.Addresses, a, netip.Addr.Compare); !found {
			all.Addresses = slices.Insert(all.Addresses, at, a)
		}
	}
	for name, role := range roles {
		// an output interface stays retired as one: its feature has to leave VPP in any
		// case
		if all.Roles[name] != external.RoleOutput {
			all.Roles[name] = role
		}
	}
	return all
}

// Status answers Wants with the state of each entry. It is sent again when a state changes, and
// immutable.
type Status struct {
	// Generation is the generation of the Wants.
	Generation uint64
	// Entries by name.
	Entries map[string]State
	// Settled says that no entry and no removal is under way.
	Settled bool
}

// State is the state of one entry.
type State struct {
	// State is one of the constants. Owner is the owner of a refused or shadowed entry. Why
	// explains the state.
	State, Owner, Why string
}

// States of entries.
const (
	InSync  = "in-sync"
	Pending = "pending"
	Failed  = "failed"
	// Refused: the entry has another owner.
	Refused = "refused"
	// Shadowed: a layer above has an entry of the same name.
	Shadowed = "shadowed"
)
