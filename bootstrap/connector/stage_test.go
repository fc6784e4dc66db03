package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	writes "github.com/troupe-vpp/troupe/kube/connector/store"
	"github.com/troupe-vpp/troupe/kube/events"
)

// cluster is a namespace that takes writes as the API server does; it outlives its stores.
type cluster struct {
	mu       sync.Mutex
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	version  int
	writes   []string
	refuse   func(write string) error // nil = none
	changed  func()
	observed []time.Time // each look at the objects
}

func newCluster() *cluster {
	return &cluster{services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}}
}

// view is one store of the cluster.
type view struct{ *cluster }

func (s view) Run(ctx context.Context, changed func()) error {
	s.mu.Lock()
	s.changed = changed
	s.mu.Unlock()
	changed()
	<-ctx.Done()
	return nil
}

func (s view) Observe() (seen render.Observed, policy catalog.Policy, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = append(s.observed, time.Now())
	for _, one := range s.services {
		seen.Services = append(seen.Services, one)
	}
	for _, one := range s.cluster.slices {
		seen.Slices = append(seen.Slices, one)
	}
	return seen, policy, true
}

func (view) Trouble() string { return "" }

func (s view) Write(ctx context.Context, w render.Write) (*corev1.Service, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed()
	if w.Service != nil {
		made := w.Service.DeepCopy()
		have := s.services[made.Name]
		err := s.write(string(w.Verb)+" Service "+made.Name, w.Verb, have != nil, func() string { return string(have.UID) + have.ResourceVersion },
			string(made.UID)+made.ResourceVersion, func(uid, version string) {
				if made.UID == "" {
					made.UID = types.UID(uid)
				}
				made.ResourceVersion = version
				s.services[made.Name] = made
			})
		if err == nil && w.Verb == render.Delete {
			delete(s.services, made.Name)
		}
		return made, err
	}
	made := w.Slice.DeepCopy()
	have := s.cluster.slices[made.Name]
	err := s.write(string(w.Verb)+" EndpointSlice "+made.Name, w.Verb, have != nil, func() string { return string(have.UID) + have.ResourceVersion },
		string(made.UID)+made.ResourceVersion, func(uid, version string) {
			if made.UID == "" {
				made.UID = types.UID(uid)
			}
			made.ResourceVersion = version
			s.cluster.slices[made.Name] = made
		})
	if err == nil && w.Verb == render.Delete {
		delete(s.cluster.slices, made.Name)
	}
	return nil, err
}

// write checks the preconditions of a write and carries it out.
func (c *cluster) write(what string, verb render.Verb, exists bool, have func() string, compared string, put func(uid, version string)) error {
	if c.refuse != nil {
		if err := c.refuse(what); err != nil {
			return err
		}
	}
	switch {
	case verb == render.Create && exists:
		return &writes.WriteError{Reason: writes.WriteExists, Err: errors.New(what)}
	case verb != render.Create && (!exists || have() != compared):
		return &writes.WriteError{Reason: writes.WriteConflict, Err: errors.New(what)}
	}
	c.version++
	c.writes = append(c.writes, what)
	if verb != render.Delete {
		put(fmt.Sprint("uid-", c.version), fmt.Sprint(c.version))
	}
	return nil
}

// take returns the writes since the last call.
func (c *cluster) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.writes
	c.writes = nil
	slices.Sort(out)
	return out
}

// script is a source whose snapshots the test publishes.
type script struct {
	mu      sync.Mutex
	last    *catalog.Snapshot
	publish func(catalog.Snapshot)
	hang    bool // it fails at once
}

func (s *script) Run(ctx context.Context, publish func(catalog.Snapshot)) error {
	s.mu.Lock()
	s.publish = publish
	if s.last != nil {
		publish(*s.last)
	}
	hang := s.hang
	s.mu.Unlock()
	if !hang {
		<-ctx.Done()
		return nil
	}
	return errors.New("no answer")
}

// say publishes a snapshot with these services, each with one instance.
func (s *script) say(complete bool, names ...string) {
	snapshot := catalog.Snapshot{Complete: complete}
	for _, name := range names {
		snapshot.Services = append(snapshot.Services, catalog.Service{
			Name: name, Ports: []catalog.Port{{Name: "http", Number: 80}}, Instances: []catalog.Instance{{Address: "192.0.2.1"}},
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = &snapshot; s.publish != nil {
		s.publish(snapshot)
	}
}

// recorder keeps events.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (r *recorder) Record(e events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := e.Reason + " " + e.Object.String(); !slices.Contains(r.all, text) {
		r.all = append(r.all, text)
	}
}

// take returns the events so far.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// town is a connector on a cluster.
type town struct {
	*testing.T
	*cluster
	sources map[string]*script
	system  *runtime.System
	deps    *deps
	events  recorder
}

// start starts a connector with these sources; with lead nil it is the only one. It must be
// stopped.
func start(t *testing.T, c *cluster, lead func(context.Context, func(context.Context)), sources ...string) *town {
	o := &town{T: t, cluster: c, sources: map[string]*script{}}
	log := slog.New(slog.DiscardHandler)
	if lead == nil {
		lead = func(ctx context.Context, lead func(context.Context)) { lead(ctx) }
	}
	o.deps = &deps{
		options: render.Options{Namespace: "outside"}, limits: catalog.DefaultLimits(), deleteLimit: 30, board: &board{}, lead: lead,
		store: func() writes.Store { return view{c} }, events: &o.events,
	}
	for _, name := range sources {
		s := &script{hang: name == "broken"}
		o.sources[name] = s
		o.deps.sources = append(o.deps.sources, namedSource{name, func() (catalog.Source, error) { return s, nil }})
	}
	o.system = runtime.NewSystem(runtime.Options{Logger: log})
	if _, err := o.system.SpawnRoot(rootPath, tree(o.deps)); err != nil {
		t.Fatal(err)
	}
	return o
}

// stop ends the connector; the cluster stays.
func (o *town) stop() {
	o.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := o.system.Shutdown(ctx); err != nil {
		o.Error(err)
	}
}

// want waits for two passes and wants these writes since the last time.
func (o *town) want(writes ...string) {
	o.Helper()
	time.Sleep(3 * time.Second)
	got := o.take()
	for i, w := range got { // the hash in the name of a slice says nothing here
		if head, _, ok := strings.Cut(w, "-ipv4"); ok {
			got[i] = head
		}
	}
	if !slices.Equal(got, writes) {
		o.Errorf("writes %q, want %q", got, writes)
	}
}
