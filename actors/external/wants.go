package external

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/external"
)

// Wants is what external configuration wants, for the renderer; always complete and immutable. It
// is sent again until a Status of its generation comes.
type Wants struct {
	// Generation grows with each change, over restarts too.
	Generation uint64
	// Merged is what all layers want together.
	Merged *external.Merged
	// Retired is what earlier layers wanted.
	Retired Retired
	// Complete says that every source has been read. Before, what an earlier run left in VPP of
	// external configuration stays there.
	Complete bool
}

// Retired is what external configuration has wanted and may not want any more, where VPP does not
// say whose it is.
type Retired struct {
	// Addresses are NAT addresses, ordered.
	Addresses []netip.Addr
	// Roles by name of the interface: output if it ever was, otherwise the last one.
	Roles map[string]external.Role
}

// With is a copy with more in it.
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
		if all.Roles[name] != external.RoleOutput { // which has to go whatever comes instead
			all.Roles[name] = role
		}
	}
	return all
}

// Status answers Wants: what became of each entry, by its name. It is sent again when something
// changes, and immutable.
type Status struct {
	// Generation is that of the Wants.
	Generation uint64
	// Entries by name.
	Entries map[string]State
	// Settled says that nothing of it is under way, removals included.
	Settled bool
}

// State is what became of one entry.
type State struct {
	// State is one of the constants, Owner has it where State is Refused or Shadowed, Why says
	// more.
	State, Owner, Why string
}

// States of entries.
const (
	InSync  = "in-sync"
	Pending = "pending"
	Failed  = "failed"
	// Refused: another owner has it.
	Refused = "refused"
	// Shadowed: a layer above has an entry of the same name.
	Shadowed = "shadowed"
)
