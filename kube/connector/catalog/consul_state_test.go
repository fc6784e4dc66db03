package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// settled is a state that has read these services, each with an instance, and follows them.
func settled(t *testing.T, names ...string) *state {
	t.Helper()
	var follows []string // and which no longer, "-name"
	st := newState(3, func(name string) context.CancelFunc {
		follows = append(follows, name)
		return func() { follows = append(follows, "-"+name) }
	})
	t.Cleanup(func() {
		st.take(listing{})
		for _, name := range names {
			if !slices.Contains(follows, "-"+name) {
				t.Errorf("%s is still followed: %v", name, follows)
			}
		}
	})
	st.take(listing{names: names})
	if !slices.Equal(follows, names) {
		t.Fatalf("follows %v, want %v", follows, names)
	}
	for _, name := range names {
		if !st.take(reading{name: name, found: found{instances: []Instance{{ID: name}}}}) {
			t.Errorf("%s has not changed", name)
		}
	}
	return st
}

// TestStateOfAFailedService: a service that cannot be read is unknown until it can. A service that
// is gone is stopped and is not in the snapshot.
func TestStateOfAFailedService(t *testing.T) {
	st := settled(t, "a", "b")
	st.take(reading{name: "a", err: errors.New("x")})
	if s := st.snapshot(); !s.Complete || len(s.Services) != 2 || !s.Services[0].Unknown || s.Services[1].Unknown || len(s.Problems) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(listing{names: []string{"b"}})
	if s := st.snapshot(); len(s.Services) != 1 || s.Services[0].Name != "b" || s.Services[0].Unknown || len(s.Problems) != 0 {
		t.Errorf("snapshot %+v", s)
	}
}

// TestA7EmptiedConsulTakesNoInstances: a Consul that restarted empty answers the query of a service
// before the query of the names. The service is unknown until the names say that it is gone.
func TestA7EmptiedConsulTakesNoInstances(t *testing.T) {
	st := settled(t, "a", "b")
	st.take(listing{err: errors.New("x")})
	nothing, err := decodeInstances(answerOf(t, strings.NewReader("[]"), 10), &ConsulOptions{})
	st.take(reading{name: "a", found: nothing, err: err})
	if s := st.snapshot(); s.Complete || len(s.Services) != 2 || !s.Services[0].Unknown || s.Services[1].Unknown || len(s.Problems) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(listing{names: []string{"b"}})
	if s := st.snapshot(); !s.Complete || len(s.Services) != 1 || s.Services[0].Name != "b" {
		t.Errorf("snapshot %+v", s)
	}
}

// TestStateOfAllInstances: a service that would exceed the limit of all instances is unknown, until
// other services have fewer instances.
func TestStateOfAllInstances(t *testing.T) {
	st := settled(t, "a", "b", "c")
	read := func(name string, instances int, err error) {
		st.take(reading{name: name, found: found{instances: make([]Instance, instances)}, err: err})
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
	st.take(listing{names: []string{"b", "c"}})
	read("b", 2, nil)
	unknown(false, false)
	if st.have != 3 {
		t.Errorf("%d instances, want 3", st.have)
	}
}

// TestStateOfTooManyNames: the known names are followed, and a missing name proves nothing. If no
// name is known, nothing changes.
func TestStateOfTooManyNames(t *testing.T) {
	st := settled(t, "a", "b")
	st.take(listing{names: []string{"a", "b", "c"}, err: errors.New("x")})
	if s := st.snapshot(); s.Complete || len(s.Services) != 3 || len(s.Problems) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(listing{err: errors.New("x")})
	if s := st.snapshot(); s.Complete || len(s.Services) != 3 {
		t.Errorf("snapshot %+v", s)
	}
	st.take(listing{})
	if s := st.snapshot(); !s.Complete || len(s.Services) != 0 {
		t.Errorf("snapshot %+v", s)
	}
}
