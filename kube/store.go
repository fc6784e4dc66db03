package kube

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Store joins normalised objects into the values that a source delivers: each Service with its
// slices, and the nodes with the pods of this node. Set and Delete record the present API objects.
// Commit turns everything recorded into new values, compares them with the values published last,
// and publishes each different one with a new generation. All methods are safe for concurrent use.
//
// The objects may come in any order: slices before their Service, and slices that stay after it.
type Store struct {
	node string // own name, selects NodeInput.self

	mu sync.Mutex // guards everything below; never held across I/O

	// By service key. Every entry has content, is dirty or has a published value.
	services map[string]*entry
	owners   map[string]string                // slice key -> service key
	nodes    map[string]*messages.Node        // by name
	pods     map[string]*messages.Pod         // by pod key
	cidrs    map[string][]string              // networks of each ServiceCIDR, by name
	pools    map[string]*messages.AddressPool // by name
	problems map[ref][]*messages.ObjectError  // by object, lists never empty
	dirty    map[string]struct{}              // service keys that the next commit makes anew
	// parts of the NodeInput that the next commit makes anew
	changed struct{ nodes, surroundings bool }

	generation uint64 // last published one
	surround   *messages.NodeInput
}

// entry is one service with its slices.
type entry struct {
	service   *messages.Service
	slices    []*messages.EndpointSlice // ordered by name
	published *messages.ServiceInput    // value of the last commit; nil before the first
}

// ref names an object with the fields kind and object of ObjectError.
type ref struct{ kind, object string }

// NewStore returns an empty Store for the node of this name.
func NewStore(node string) *Store {
	return &Store{
		node:     node,
		services: map[string]*entry{},
		owners:   map[string]string{},
		nodes:    map[string]*messages.Node{},
		pods:     map[string]*messages.Pod{},
		cidrs:    map[string][]string{},
		pools:    map[string]*messages.AddressPool{},
		problems: map[ref][]*messages.ObjectError{},
		dirty:    map[string]struct{}{},
		surround: &messages.NodeInput{},
	}
}

// Set records the present value of an object, a message or *normalize.ServiceCIDRs, and the
// problems found in it. A slice that belonged to another service leaves that service.
func (s *Store) Set(object any, problems []*messages.ObjectError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setProblems(s.set(object), problems)
}

// Delete records that the object of this kind (normalize.Kind*) and key does not exist (any more),
// or is not meant for this node.
func (s *Store) Delete(kind, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case normalize.KindService:
		s.deleteService(key)
	case normalize.KindEndpointSlice:
		s.deleteSlice(key)
	case normalize.KindNode:
		delete(s.nodes, key)
		s.changed.nodes, s.changed.surroundings = true, true
	case normalize.KindPod:
		delete(s.pods, key)
		s.changed.surroundings = true
	case normalize.KindServiceCIDR:
		delete(s.cidrs, key)
		s.changed.surroundings = true
	case normalize.KindAddressPool:
		delete(s.pools, key)
		s.changed.surroundings = true
	}
	s.setProblems(ref{kind, key}, nil)
}

// set records the present value of an object.
func (s *Store) set(object any) (r ref) {
	switch o := object.(type) {
	case *messages.Service:
		s.setService(o)
		return ref{normalize.KindService, normalize.ServiceKey(o)}
	case *messages.EndpointSlice:
		s.setSlice(o)
		return ref{normalize.KindEndpointSlice, normalize.SliceKey(o)}
	case *messages.Node:
		r, s.nodes[o.GetName()], s.changed.nodes = ref{normalize.KindNode, o.GetName()}, o, true
	case *messages.Pod:
		r = ref{normalize.KindPod, normalize.PodKey(o)}
		s.pods[r.object] = o
	case *normalize.ServiceCIDRs:
		r, s.cidrs[o.Name] = ref{normalize.KindServiceCIDR, o.Name}, o.Networks
	case *messages.AddressPool:
		r, s.pools[o.GetName()] = ref{normalize.KindAddressPool, o.GetName()}, o
	}
	s.changed.surroundings = true
	return r
}

// SliceTriggered returns when the change behind the recorded value of a slice happened, in Unix
// nanoseconds; 0 = unknown.
func (s *Store) SliceTriggered(key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.services[s.owners[key]]; e != nil {
		if i, found := e.find(key); found {
			return e.slices[i].GetTriggered()
		}
	}
	return 0
}

// Replace records a complete list of all objects: an object missing from the list does not exist.
// The problems may belong to an object in the list, to another object, or to no object.
func (s *Store) Replace(objects *normalize.Objects, problems []*messages.ObjectError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	setAll(s, objects.Services)
	setAll(s, objects.Slices)
	setAll(s, objects.Nodes)
	setAll(s, objects.Pods)
	setAll(s, objects.ServiceCIDRs)
	setAll(s, objects.AddressPools)
	for _, p := range problems {
		r := ref{p.GetKind(), p.GetObject()}
		s.problems[r] = append(s.problems[r], p)
	}
}

func setAll[T any](s *Store, objects []T) {
	for _, object := range objects {
		s.set(object)
	}
}

// clear forgets all objects and keeps the published values.
func (s *Store) clear() {
	for key, e := range s.services {
		e.service, e.slices = nil, nil
		s.dirty[key] = struct{}{}
	}
	clear(s.owners)
	clear(s.nodes)
	clear(s.pods)
	clear(s.cidrs)
	clear(s.pools)
	clear(s.problems)
	s.changed.nodes, s.changed.surroundings = true, true
}

// touch returns the entry of a service and marks it dirty, so that the next commit makes it anew.
func (s *Store) touch(key string) *entry {
	e := s.services[key]
	if e == nil {
		e = &entry{}
		s.services[key] = e
	}
	s.dirty[key] = struct{}{}
	return e
}

// setService keeps the old message if the new one is equal. Otherwise two copies would stay in
// memory, one here and one in the published value.
func (s *Store) setService(service *messages.Service) {
	e := s.touch(normalize.ServiceKey(service))
	// A relist decodes every object anew; most are equal to those in memory.
	if e.service == nil || !equalMessage(e.service, service) {
		e.service = service
	}
}

// deleteService does not create an entry for a service that is not known.
func (s *Store) deleteService(key string) {
	if e := s.services[key]; e != nil && e.service != nil {
		s.touch(key).service = nil
	}
}

// setSlice puts the slice into its place in the order of names, after taking it away from another
// service.
func (s *Store) setSlice(slice *messages.EndpointSlice) {
	key, owner := normalize.SliceKey(slice), normalize.SliceOwner(slice)
	// A slice may be relabelled; without this its endpoints would stay with both services.
	if s.owners[key] != owner {
		s.deleteSlice(key)
		s.moved(ref{normalize.KindEndpointSlice, key})
	}
	// A slice without a service has no use; its problems are delivered with the surroundings.
	if owner == "" {
		return
	}
	s.owners[key] = owner
	e := s.touch(owner)
	i, found := e.find(key)
	if !found {
		e.slices = slices.Insert(e.slices, i, slice)
		return
	}
	if old := e.slices[i]; old.Generation != slice.Generation || old.Triggered != slice.Triggered || !equalSlice(old, slice) {
		e.slices[i] = slice
	}
}

// moved notes that the problems of an object now belong to another service or to none.
func (s *Store) moved(r ref) {
	if len(s.problems[r]) > 0 {
		s.changed.surroundings = true
	}
}

// deleteSlice takes a slice away from its service. Published values have their own list, so the
// list of the entry may be changed in place.
func (s *Store) deleteSlice(key string) {
	owner, known := s.owners[key]
	if !known {
		return
	}
	delete(s.owners, key)
	e := s.touch(owner)
	if i, found := e.find(key); found {
		e.slices = slices.Delete(e.slices, i, i+1)
	}
}

// find returns the position of a slice by its key. All slices of a service are in its namespace, so
// keys and names have the same order.
func (e *entry) find(key string) (int, bool) {
	return slices.BinarySearchFunc(e.slices, key, func(slice *messages.EndpointSlice, key string) int {
		_, name, _ := strings.Cut(key, "/")
		return strings.Compare(slice.GetName(), name)
	})
}

// setProblems records the problems of one object. They are delivered with the object's service, or
// with the surroundings if it has none.
func (s *Store) setProblems(r ref, problems []*messages.ObjectError) {
	// An unchanged problem is no change: a broken object that is updated every second must not make
	// commits.
	if equalErrors(s.problems[r], problems) {
		return
	}
	if len(problems) == 0 {
		delete(s.problems, r)
	} else {
		s.problems[r] = slices.Clone(problems)
	}
	s.changed.surroundings = true
	if owner := s.ownerOf(r); owner != "" && s.services[owner] != nil {
		s.dirty[owner] = struct{}{}
	}
}

// ownerOf returns the key of the service to which an object belongs; "" if the Store knows no such
// service.
func (s *Store) ownerOf(r ref) string {
	switch r.kind {
	case normalize.KindService:
		return r.object
	case normalize.KindEndpointSlice:
		return s.owners[r.object]
	}
	return ""
}

// Collect joins a complete list into the Snapshot that a Store for the node of this name would
// deliver.
func Collect(node string, objects *normalize.Objects, problems []*messages.ObjectError) *messages.Snapshot {
	store := NewStore(node)
	store.Replace(objects, problems)
	store.Commit()
	return store.Snapshot()
}

// sortedKeys returns the keys of a map in order, so that generations are given out
// deterministically.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
