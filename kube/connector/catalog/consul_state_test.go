package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

type (
	namesListed = list[[]string]
	failing     = list[map[check]string]
	housing     = list[map[string]string]
)

// settled is a state that has read these services, each with an instance on the node of the same
// name.
func settled(t *testing.T, now time.Time, names ...string) *state {
	t.Helper()
	st := newState(3)
	st.take(failing{all: map[check]string{}}, now)
	st.take(housing{all: map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"}}, now)
	st.take(namesListed{all: names, moved: true}, now)
	if got := drain(st, now); !slices.Equal(got, names) {
		t.Fatalf("read %v, want %v", got, names)
	}
	return st
}

// drain reads all queued services, and returns their names.
func drain(st *state, now time.Time) (names []string) {
	for name := st.first(); name != ""; name = st.first() {
		st.begin(name)
		st.take(reading{name: name, found: found{instances: []Instance{{ID: name}}, nodes: []string{name}}}, now)
		names = append(names, name)
	}
	return names
}

// TestStateReadsWhatChanged: after a change of a check, or of the address of a node, only the
// affected services are read.
func TestStateReadsWhatChanged(t *testing.T) {
	now := time.Now()
	ofB, ofNode := map[check]string{{"x", "c"}: "b"}, map[check]string{{"a", "serfHealth"}: ""}
	for _, c := range []struct {
		what    string
		reports []any
		want    []string
	}{
		{"critical", []any{failing{all: ofB}}, []string{"b"}},
		{"critical still", []any{failing{all: ofB}, failing{all: ofB}}, []string{"b"}},
		{"critical no more", []any{failing{all: ofB}, failing{all: map[check]string{}}}, []string{"b"}},
		{"node critical", []any{failing{all: ofNode}}, []string{"a"}},
		{"node moved", []any{housing{all: map[string]string{"a": "192.0.2.1", "b": "192.0.2.9"}}}, []string{"b"}},
		{"node moved while it could not be read", []any{housing{err: errors.New("x")}, housing{all: map[string]string{"a": "192.0.2.9"}}}, []string{"a"}},
		{"same names", []any{namesListed{all: []string{"a", "b"}}}, nil},
		{"new name", []any{namesListed{all: []string{"a", "b", "new"}}}, []string{"new"}},
	} {
		st := settled(t, now, "a", "b")
		var got []string
		for _, r := range c.reports {
			st.take(r, now)
		}
		if got = drain(st, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: read %v, want %v", c.what, got, c.want)
		}
	}
}

// TestStateSweeps: a new index of the catalog leads to a sweep: at once after a quiet time, and for
// a tenth of the time while the catalog changes all the time.
func TestStateSweeps(t *testing.T) {
	now := time.Now()
	st := settled(t, now, "a", "b")
	const took = 2 * time.Second
	end := now.Add(1000 * time.Second)
	var began []time.Duration
	for at := now; at.Before(end); at = at.Add(spacing) {
		st.take(namesListed{all: []string{"a", "b"}, moved: true}, at)
		st.tick(at)
		if st.first() == "" {
			continue
		}
		began = append(began, at.Sub(now))
		at = at.Add(took)
		st.take(namesListed{all: []string{"a", "b"}, moved: true}, at) // meanwhile
		if got := drain(st, at); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("sweep %d: %v", len(began), got)
		}
	}
	if n := len(began); n < 50 || n > 53 || began[0] != 0 || began[1] > took+2*spacing {
		t.Errorf("%d sweeps, at %v", n, began)
	}
	st.tick(end.Add(time.Minute)) // the sweep that was requested during the last one
	drain(st, end.Add(time.Minute))
	st.tick(end.Add(2 * time.Minute))
	if name := st.first(); name != "" {
		t.Errorf("%s is read without a change", name)
	}
}

// TestStateOfAFailedService: a service that cannot be read is unknown, and is read again. A service
// that is gone is not in the snapshot.
func TestStateOfAFailedService(t *testing.T) {
	now := time.Now()
	st := settled(t, now, "a", "b")
	st.want("a", true)
	st.begin("a")
	st.take(reading{name: "a", err: errors.New("x")}, now)
	if s := st.snapshot(); !s.Complete || len(s.Services) != 2 || !s.Services[0].Unknown || s.Services[1].Unknown || len(s.Problems) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	st.tick(now.Add(firstDelay))
	if got := drain(st, now); !slices.Equal(got, []string{"a"}) {
		t.Errorf("read %v, want a again", got)
	}
	st.take(namesListed{all: []string{"b"}, moved: true}, now)
	if s := st.snapshot(); len(s.Services) != 1 || s.Services[0].Name != "b" || s.Services[0].Unknown || len(s.Problems) != 0 {
		t.Errorf("snapshot %+v", s)
	}
}

// TestA7EmptiedConsulTakesNoInstances: a Consul that restarted empty answers the query of a service
// before the query of the names. The service is unknown until the names say that it is gone.
func TestA7EmptiedConsulTakesNoInstances(t *testing.T) {
	now := time.Now()
	st := settled(t, now, "a", "b")
	st.take(namesListed{err: errors.New("x")}, now)
	st.want("a", true)
	st.begin("a")
	nothing, err := decodeInstances(answerOf(t, strings.NewReader("[]"), 10), &ConsulOptions{})
	st.take(reading{name: "a", found: nothing, err: err}, now)
	if s := st.snapshot(); s.Complete || len(s.Services) != 2 || !s.Services[0].Unknown || s.Services[1].Unknown || len(s.Problems) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(namesListed{all: []string{"b"}, moved: true}, now)
	if s := st.snapshot(); !s.Complete || len(s.Services) != 1 || s.Services[0].Name != "b" {
		t.Errorf("snapshot %+v", s)
	}
}

// TestStateOfAllInstances: a service that would exceed the limit of all instances is unknown, until
// other services have fewer instances.
func TestStateOfAllInstances(t *testing.T) {
	now := time.Now()
	st := settled(t, now, "a", "b", "c")
	read := func(name string, instances int, err error) {
		st.want(name, true)
		st.begin(st.first())
		st.take(reading{name: name, found: found{instances: make([]Instance, instances)}, err: err}, now)
	}
	unknown := func(want ...bool) {
		t.Helper()
		for i, s := range st.snapshot().Services {
			if s.Unknown != want[i] {
				t.Errorf("%s is unknown: %t", s.Name, s.Unknown)
			}
		}
	}
	read("a", 2, nil)
	unknown(true, false, false)
	read("b", 0, errors.New("x")) // its known instances count
	read("a", 2, nil)
	unknown(true, true, false)
	read("b", 0, nil)
	read("a", 2, nil)
	unknown(false, false, false)
	st.take(namesListed{all: []string{"b", "c"}}, now)
	read("b", 2, nil)
	unknown(false, false)
	if st.have != 3 {
		t.Errorf("%d instances, want 3", st.have)
	}
}

// TestStateOfTooManyNames: the known names are followed, and a missing name proves nothing. If no
// name is known, nothing changes.
func TestStateOfTooManyNames(t *testing.T) {
	now := time.Now()
	st := settled(t, now, "a", "b")
	st.take(namesListed{all: []string{"a", "b", "c"}, err: errors.New("x")}, now)
	if s := st.snapshot(); s.Complete || len(s.Services) != 3 || len(s.Problems) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(namesListed{err: errors.New("x")}, now)
	if s := st.snapshot(); s.Complete || len(s.Services) != 3 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(namesListed{}, now)
	if s := st.snapshot(); !s.Complete || len(s.Services) != 0 {
		t.Errorf("snapshot %+v", s)
	}
}
