package kubetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// T is the part of testing.TB that this package needs. Property tests have it too.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Mirror is a kube.Sink that keeps everything its source delivered, like the registry of the
// troupe. It is safe for concurrent use.
type Mirror struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every call
	services map[string]*messages.ServiceInput
	// Copies of the delivered values, to find forbidden changes of them.
	copies    map[string]*messages.ServiceInput
	node      *messages.NodeInput
	highest   uint64
	snapshots int
	updates   int
	health    []kube.Health
	broken    []string
}

var _ kube.Sink = (*Mirror)(nil)

// NewMirror returns an empty Mirror.
func NewMirror() *Mirror {
	return &Mirror{
		changed: make(chan struct{}), services: map[string]*messages.ServiceInput{}, copies: map[string]*messages.ServiceInput{},
	}
}

// violate records a broken rule. The lock must be held.
func (m *Mirror) violate(format string, args ...any) {
	m.broken = append(m.broken, fmt.Sprintf(format, args...))
}

// locked runs f under the lock and wakes the callers of Wait.
func (m *Mirror) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

// ServiceChanged satisfies kube.Sink.
func (m *Mirror) ServiceChanged(in *messages.ServiceInput) {
	m.locked(func() {
		m.updates++
		if m.snapshots == 0 {
			m.violate("change of %s before the first snapshot", in.GetKey())
		}
		if in.GetGeneration() <= m.highest {
			m.violate("change of %s: generation %d, there was %d", in.GetKey(), in.GetGeneration(), m.highest)
		}
		m.highest = in.GetGeneration()
		if in.GetService() == nil && len(in.GetSlices()) == 0 {
			if m.services[in.GetKey()] == nil {
				m.violate("%s is gone, but it was not there", in.GetKey())
			}
			delete(m.services, in.GetKey())
			return
		}
		m.services[in.GetKey()] = in
		m.copies[in.GetKey()] = proto.CloneOf(in)
	})
}

// NodeChanged satisfies kube.Sink.
func (m *Mirror) NodeChanged(in *messages.NodeInput) {
	m.locked(func() {
		m.updates++
		if m.snapshots == 0 {
			m.violate("change of the node before the first snapshot")
		}
		if in.GetGeneration() <= m.highest {
			m.violate("change of the node: generation %d, there was %d", in.GetGeneration(), m.highest)
		}
		m.highest, m.node = in.GetGeneration(), in
	})
}

// Snapshot satisfies kube.Sink.
func (m *Mirror) Snapshot(in *messages.Snapshot) {
	m.locked(func() {
		m.snapshots++
		if !in.GetComplete() {
			m.violate("snapshot that is not complete")
		}
		if in.GetGeneration() < m.highest {
			m.violate("snapshot of generation %d, there was %d", in.GetGeneration(), m.highest)
		}
		before := m.services
		m.services, m.node, m.highest = map[string]*messages.ServiceInput{}, in.GetNode(), in.GetGeneration()
		for _, input := range in.GetServices() {
			if old := before[input.GetKey()]; old != nil && old.GetGeneration() == input.GetGeneration() && !proto.Equal(old, input) {
				m.violate("%s: generation %d used again for another value", input.GetKey(), input.GetGeneration())
			}
			m.services[input.GetKey()] = input
			m.copies[input.GetKey()] = proto.CloneOf(input)
		}
	})
}

// Health satisfies kube.Sink.
func (m *Mirror) Health(h kube.Health) {
	m.locked(func() {
		if last := len(m.health) - 1; last >= 0 && m.health[last] == h {
			m.violate("health %t %q reported twice", h.OK, h.Reason)
		}
		m.health = append(m.health, h)
	})
}

// View is the consistent state of a Mirror at one moment.
type View struct {
	// Services holds the value of each service that the source delivered last.
	Services map[string]*messages.ServiceInput
	// Node is the value that the source delivered last; nil before the first snapshot.
	Node *messages.NodeInput
	// Snapshots counts the calls of Snapshot, Updates the calls of ServiceChanged and NodeChanged.
	Snapshots, Updates int
	// Healths are all calls of Health, oldest first.
	Healths []kube.Health
}

// Healthy reports whether the last health was good.
func (v View) Healthy() bool { return len(v.Healths) > 0 && v.Healths[len(v.Healths)-1].OK }

// View returns the current state of the Mirror.
func (m *Mirror) View() View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view()
}

func (m *Mirror) view() View {
	return View{
		Services: maps.Clone(m.services), Node: m.node, Snapshots: m.snapshots, Updates: m.updates, Healths: slices.Clone(m.health),
	}
}

// Wait waits until the condition is true and returns the view for which it is true. It fails the
// test after 10 seconds.
func (m *Mirror) Wait(t T, what string, condition func(View) bool) View {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		m.mu.Lock()
		view, changed := m.view(), m.changed
		m.mu.Unlock()
		if condition(view) {
			return view
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited too long for: %s; services %v, node generation %d, %d snapshots, %d updates, health %v", what,
				slices.Sorted(maps.Keys(view.Services)), view.Node.GetGeneration(), view.Snapshots, view.Updates, view.Healths)
		}
	}
}

// Check fails the test if the source broke a rule of kube.Sink, or if a value was changed after it
// was delivered.
func (m *Mirror) Check(t T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rule := range m.broken {
		t.Errorf("rule of kube.Sink broken: %s", rule)
	}
	for key, input := range m.services {
		if !proto.Equal(input, m.copies[key]) {
			t.Errorf("%s was changed after it was delivered", key)
		}
	}
}

// Meaning returns a copy of the snapshot without generations: two sources that see the same objects
// have equal meanings.
func Meaning(in *messages.Snapshot) *messages.Snapshot {
	out := proto.CloneOf(in)
	out.Generation = 0
	for _, input := range out.GetServices() {
		input.Generation = 0
	}
	if out.GetNode() != nil {
		out.Node.Generation = 0
	}
	return out
}

// Snapshot returns the content of the view as a snapshot.
func (v View) Snapshot() *messages.Snapshot {
	out := &messages.Snapshot{Node: v.Node, Complete: true}
	for _, key := range slices.Sorted(maps.Keys(v.Services)) {
		out.Services = append(out.Services, v.Services[key])
	}
	return out
}
