package external

import (
	"maps"
	"net/netip"
	"slices"
	"time"

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

// Query asks for external configuration. The answer is a Page.
type Query struct{}

// Page answers a Query. Its values are shared and must not be modified.
type Page struct {
	// Layers by source.
	Layers []Layer
	// Entries of all layers, ordered by name.
	Entries []Entry
	// Complete says that every source that is watched has been read.
	Complete bool
}

// Layer is the layer of one source.
type Layer struct {
	// Source names the layer, Priority decides between layers, Entries is the number of its
	// entries.
	Source   string
	Priority int
	Entries  int
	// Document as JSON; nil = there is none without errors.
	Document []byte
	// Since is when the layer was adopted.
	Since time.Time
	// Problem is why the present document of the source is not adopted; "" = it is adopted.
	Problem string
}

// Entry is one mapping, address or role of a layer.
type Entry struct {
	// Name, Kind and Source as in external.Entry.
	Name, Kind, Source string
	// State is in-sync, pending, failed, refused or shadowed.
	State string
	// Owner is the owner of a refused or shadowed entry: another source, a service, or an
	// object in VPP.
	Owner string
	// Why explains a state other than in-sync.
	Why string
}

// page lists all layers and entries.
func (x *externals) page() *Page {
	page := &Page{Complete: x.loaded && x.complete()}
	sources := map[string]bool{}
	for source := range x.layers {
		sources[source] = true
	}
	for source := range x.problems {
		sources[source] = true
	}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		l := Layer{Source: source, Problem: x.problems[source], Priority: external.DefaultPriority(source)}
		if has := x.layers[source]; has != nil {
			l.Priority, l.Entries, l.Document, l.Since = has.Priority, has.Size(), has.document, has.since
		}
		page.Layers = append(page.Layers, l)
	}
	if x.wants == nil {
		return page
	}
	for i := range x.wants.Merged.Entries {
		e := &x.wants.Merged.Entries[i]
		s := x.state(e)
		page.Entries = append(page.Entries, Entry{e.Name, e.Kind(), e.Source, s.State, s.Owner, s.Why})
	}
	return page
}
