package owned

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// Store keeps the record, for example in a file.
type Store interface {
	// Load returns the last document; nil = there is none.
	Load() ([]byte, error)
	// Save replaces the document for good.
	Save(document []byte) error
}

// Memory is a store that lasts as long as the process.
type Memory struct{}

// Load satisfies Store.
func (Memory) Load() ([]byte, error) { return nil, nil }

// Save satisfies Store.
func (Memory) Save([]byte) error { return nil }

// document is the content of the store.
type document struct {
	Version int `json:"version"`
	// Boot is the start of VPP (LinkState.Boot) that has the objects.
	Boot    string  `json:"boot"`
	Objects []entry `json:"objects"`
}

// entry is an object with the name of its interface: VPP gives an index to another interface.
type entry struct {
	Object
	Name string `json:"name,omitempty"`
}

// version is the version of the format. A document of another version is ignored.
const version = 1

// Record holds the objects that the agent has made. It may be used by any goroutine.
type Record struct {
	store Store
	log   *slog.Logger

	mu      sync.Mutex
	boot    string
	objects map[Object]string // with the names of interfaces; "" = not known yet
	names   map[uint32]string // of the interfaces that VPP has
	pending map[Object]int    // objects in requests without an answer
	failing bool              // the store failed
}

// Open reads the record from its store. A record that cannot be read is empty, which keeps
// everything in VPP.
func Open(store Store, log *slog.Logger) *Record {
	r := &Record{store: store, log: log, objects: map[Object]string{}, names: map[uint32]string{}, pending: map[Object]int{}}
	content, err := store.Load()
	var d document
	if err == nil && content != nil {
		err = json.Unmarshal(content, &d)
	}
	if err == nil && content != nil && d.Version != version {
		err = fmt.Errorf("version %d is not %d", d.Version, version)
	}
	if err != nil {
		log.Warn("the record of the agent's own settings in VPP cannot be read: a clean-up will keep them", "err", err)
		return r
	}
	r.boot = d.Boot
	for _, e := range d.Objects {
		r.objects[e.Object] = e.Name
	}
	return r
}

// Freeze ends the saving of changes.
func (r *Record) Freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store = Memory{}
}

// Connected says which start of VPP is connected. Another start has none of the objects.
func (r *Record) Connected(boot string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if boot != r.boot {
		r.boot = boot
		clear(r.objects)
		clear(r.names)
		r.save()
	}
}

// Has reports whether the agent has made an object.
func (r *Record) Has(o Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, has := r.objects[o]
	return has
}

// HasNode reports whether the agent has enabled a node of CNAT on an interface.
func (r *Record) HasNode(index uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.objects {
		if o.Kind == Node && o.Interface == index {
			return true
		}
	}
	return false
}

// begin enters objects that requests will add. It returns the objects before.
func (r *Record) begin(objects []Object) map[Object]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, changed := make(map[Object]bool, len(r.objects)), false
	for o := range r.objects {
		before[o] = true
	}
	for _, o := range objects {
		r.pending[o]++
		if !before[o] {
			r.objects[o], changed = "", true
			if o.onInterface() {
				r.objects[o] = r.names[o.Interface]
			}
		}
	}
	if changed {
		r.save()
	}
	return before
}

// end notes which of the objects that begin entered are there, and which objects are gone.
func (r *Record) end(begun, gone []Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range begun {
		if r.pending[o]--; r.pending[o] <= 0 {
			delete(r.pending, o)
		}
	}
	r.drop(gone)
}

// seen notes what a complete reading of some kinds has shown. Objects that were not in the record
// before the reading, or whose request has no answer yet, stay.
func (r *Record) seen(kinds []Kind, before map[Object]bool, there map[Object]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gone []Object
	for o := range before {
		if slices.Contains(kinds, o.Kind) && !there[o] && r.pending[o] == 0 {
			gone = append(gone, o)
		}
	}
	r.drop(gone)
}

// interfaces notes the names of all interfaces. Objects of an interface that is gone, or whose
// index another one has now, leave the record.
func (r *Record) interfaces(names map[uint32]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = names
	var gone []Object
	changed := false
	for o, name := range r.objects {
		now, there := names[o.Interface]
		switch {
		case !o.onInterface() || there && now == name || r.pending[o] > 0:
		case there && name == "":
			r.objects[o], changed = now, true
		default:
			gone = append(gone, o)
		}
	}
	if !r.drop(gone) && changed {
		r.save()
	}
}

// drop removes objects and saves the record if that changes it. The caller holds the lock.
func (r *Record) drop(gone []Object) (changed bool) {
	for _, o := range gone {
		if _, has := r.objects[o]; has {
			delete(r.objects, o)
			changed = true
		}
	}
	if changed {
		r.save()
	}
	return changed
}

// save writes the record. The caller holds the lock. The log has the first of several errors.
func (r *Record) save() {
	d := document{Version: version, Boot: r.boot, Objects: []entry{}}
	for _, o := range slices.SortedFunc(maps.Keys(r.objects), func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Interface, b.Interface), cmp.Compare(a.Value, b.Value))
	}) {
		d.Objects = append(d.Objects, entry{o, r.objects[o]})
	}
	content, err := json.MarshalIndent(d, "", " ")
	if err == nil {
		err = r.store.Save(append(content, '\n'))
	}
	if err != nil && !r.failing {
		r.log.Warn("the record of the agent's own settings in VPP cannot be saved: a later clean-up will keep some of them", "err", err)
	}
	r.failing = err != nil
}
