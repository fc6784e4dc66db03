package external

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/vpp/external"
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
