package external

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// prioritySNAT is below every priority that a document can have.
const prioritySNAT = -1

// Sources with a fixed name, and the prefix of sources in etcd.
const (
	SourceFile       = "file"
	SourceEtcdPrefix = "etcd:"
)

// DefaultPriority is the priority of a layer that does not name one: 100 for the file, 200 for a
// key of etcd for every node, 250 for one for this node, 300 for the control socket. Dynamic SNAT
// has -1.
func DefaultPriority(source string) int {
	name, etcd := strings.CutPrefix(source, SourceEtcdPrefix)
	switch {
	case source == SourceSNAT:
		return prioritySNAT
	case source == SourceFile:
		return 100
	case etcd && strings.Contains(name, "/"):
		return 250
	case etcd:
		return 200
	default:
		return 300
	}
}

// Entry is one entry of a layer, and its place among the layers.
type Entry struct {
	// Name is unique among all entries: "203.0.113.9:443/TCP", "203.0.113.9", "address
	// 192.168.16.1", "interface uplink0".
	Name string
	// Source is the layer.
	Source string
	// Owner is the layer that has the entry instead; "" = this one has it.
	Owner string
	// Why is the reason why another layer has it; "" = this layer has it.
	Why string
	// Shadowed says that the owner has an entry of the same name, so that this one applies when
	// that is removed; otherwise the two entries conflict.
	Shadowed bool
	// Mapping is what the entry maps, Address its NAT address, Role its interface with the role.
	// Two of them are empty: they are of other kinds of entries.
	Mapping *Mapping
	Address netip.Addr
	Role    InterfaceRole
}

// Kind returns the kind of the entry in a word.
func (e *Entry) Kind() string {
	switch {
	case e.Role.Name != "":
		return "interface"
	case e.Address.IsValid():
		return "address"
	case e.Mapping.Kind == nat44.Identity:
		return "identity"
	default:
		return "static"
	}
}

// Merged is the union of all layers. It is immutable.
type Merged struct {
	// Entries are all entries of all layers, ordered by name. Entries of the same name are
	// ordered by rank: the owner first.
	Entries []Entry
}

// Merge gives every entry one owner: the layer with the largest priority, then with the smallest
// source. Of conflicting entries the one with the higher rank stays and the other one is refused.
// The order of the layers does not matter; nil layers and layers of the same source as an earlier
// one are left out.
func Merge(layers []*Layer) *Merged {
	ranked := slices.DeleteFunc(slices.Clone(layers), func(l *Layer) bool { return l == nil })
	slices.SortStableFunc(ranked, func(a, b *Layer) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Source, b.Source))
	})
	m := &merger{owners: map[string]string{}, inner: map[rule.Key]*Entry{}, sources: map[string]bool{}}
	for _, l := range ranked {
		if !m.sources[l.Source] {
			m.sources[l.Source] = true
			m.layer(l)
		}
	}
	entries := make([]Entry, len(m.entries))
	for i, e := range m.entries {
		entries[i] = *e
	}
	// The sort is stable: entries of the same name stay in the order of their rank.
	slices.SortStableFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return &Merged{Entries: entries}
}

// merger takes layers in the order of their rank, so that the first owner of an entry is the final
// one.
type merger struct {
	entries []*Entry
	sources map[string]bool
	owners  map[string]string   // by name of the entry
	inner   map[rule.Key]*Entry // see inside
}

func (m *merger) layer(l *Layer) {
	for i := range l.Mappings {
		mapping := &l.Mappings[i]
		e := &Entry{Name: text(mapping.Key), Source: l.Source, Mapping: mapping}
		if !m.enter(e) {
			continue
		}
		at, ok := mapping.inside()
		if !ok {
			continue
		}
		if other := m.inner[at]; other != nil {
			e.Owner, e.Why = other.Source, text(at)+" is translated by "+other.Name+" of "+other.Source
			delete(m.owners, e.Name) // a layer of lower rank may have the name without the conflict
			continue
		}
		m.inner[at] = e
	}
	for _, a := range l.Addresses {
		m.enter(&Entry{Name: "address " + a.String(), Source: l.Source, Address: a})
	}
	for _, role := range l.Roles {
		m.enter(&Entry{Name: "interface " + role.Name, Source: l.Source, Role: role})
	}
}

// enter adds an entry and reports whether its own layer owns it. A shadowed entry stays in the
// list, so that the API can show what hides it.
func (m *merger) enter(e *Entry) bool {
	m.entries = append(m.entries, e)
	if owner := m.owners[e.Name]; owner != "" {
		e.Owner, e.Why, e.Shadowed = owner, owner+" ranks higher", true
		return false
	}
	m.owners[e.Name] = e.Source
	return true
}

// Wanted calls each for every entry that has no other owner, in the order of their names.
func (m *Merged) Wanted(each func(*Entry)) {
	if m == nil {
		return
	}
	for i := range m.Entries {
		if m.Entries[i].Owner == "" {
			each(&m.Entries[i])
		}
	}
}
