package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// calm is a sample of an agent at rest, this many seconds after the beginning.
func calm(second int) *sample {
	state := func(path, kind string) runtime.ActorState {
		return runtime.ActorState{Path: path, Kind: kind, State: runtime.StateIdle, Incarnation: 1}
	}
	return &sample{
		at: time.Date(2026, 11, 21, 8, 0, second, 0, time.UTC), ready: true, read: true, agreed: true, goroutines: 100,
		services: []Service{{Key: "shop/a", Generation: 5, State: "in-sync"}, {Key: "shop/b", Generation: 6, State: "not-served"}},
		actors: []runtime.ActorState{
			state(address.RootName, "root"), state(address.Journal, "journal"), state(address.Service("shop/a"), "service"),
			state(address.Service("shop/b"), "service"),
		},
	}
}

// TestJudge: each damage violates exactly its invariant.
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		during func(i int, s *sample) // samples 1 to 9
		final  func(s *sample)
		want   string // the violated invariants
		detail string
		open   string // the invariants that are not evaluated, besides the usual ones
	}{
		"all is well": {},
		"in need of repair, and it says so": {during: func(_ int, s *sample) {
			s.ready, s.reasons, s.operations, s.services[0].State = false, "nat44: behind", []string{"add row"}, "pending"
			s.actors[2].State = runtime.StateQuarantined
		}},
		"it cannot be read meanwhile": {during: func(_ int, s *sample) { s.read, s.services = false, nil }},
		"ready and wrong":             {during: func(_ int, s *sample) { s.operations = []string{"add row"} }, want: "ready", detail: "ready, but VPP differs from the desired state by 1 operations, first: add row"},
		"ready, wrong, in between":    {during: func(_ int, s *sample) { s.operations, s.agreed = []string{"add row"}, false }},
		"ready and wrong for a reason": {during: func(i int, s *sample) {
			s.operations, s.changes = []string{"add row"}, uint64(i)
		}, final: func(s *sample) { s.changes = 9 }, open: "I5"},
		"not ready in the end": {final: func(s *sample) { s.ready, s.reasons = false, "link: down" }, want: "ready", detail: "not ready: link: down"},
		"wrong in the end":     {final: func(s *sample) { s.operations, s.agreed = []string{"del row"}, false }, want: "I1", detail: "VPP differs by 1 operations, first: del row"},
		"unknown in the end":   {final: func(s *sample) { s.read = false }, want: "I1", detail: "VPP could not be read back"},
		"a lost update": {
			final: func(s *sample) { s.services[0].State, s.services[0].Error = "pending", "lost" }, want: "I2",
			detail: "shop/a is pending: lost",
		},
		"the services cannot be read": {final: func(s *sample) { s.services = nil }, want: "I2", detail: "services cannot be read"},
		"a refusal":                   {during: func(i int, s *sample) { s.usage.Refused = uint64(i) }, want: "I3", detail: "VPP refused 1 requests"},
		"a refusal after a change": {during: func(i int, s *sample) { s.usage.Refused, s.changes = 1, 1 }, final: func(s *sample) {
			s.usage.Refused, s.changes = 1, 1
		}, open: "I3 I5"},
		"writes for nothing": {
			during: func(i int, s *sample) { s.usage.Writes = uint64(2 * i) }, want: "I5",
			detail: "2 changes of VPP without a change of the cluster",
		},
		"writes after a change":    {during: func(i int, s *sample) { s.usage.Writes, s.changes = 7, 1 }, final: func(s *sample) { s.changes = 1 }, open: "I5"},
		"a generation goes back":   {during: func(i int, s *sample) { s.services[0].Generation = uint64(20 - i) }, want: "I7", detail: "shop/a went from generation 19 to 18"},
		"quarantine does not end":  {final: func(s *sample) { s.actors[2].State = runtime.StateQuarantined }, want: "I8", detail: "agent/world/services/shop~a is quarantined"},
		"a gate does not open":     {final: func(s *sample) { s.actors[1].Held, s.actors[1].State = true, runtime.StateHeld }, want: "I8", detail: "agent/journal is held"},
		"an actor is missing":      {final: func(s *sample) { s.actors = s.actors[:3] }, want: "I8", detail: "agent/world/services/shop~b is missing"},
		"an actor is left over":    {final: func(s *sample) { s.services = s.services[:1] }, want: "I8", detail: "agent/world/services/shop~b is left over"},
		"goroutines are left over": {final: func(s *sample) { s.goroutines = 133 }, want: "I9", detail: "133 goroutines, 100 at the beginning"},
		"a mailbox grows":          {during: func(i int, s *sample) { s.actors[2].User = 1009 * i / 9 }, want: "I10", detail: "1009 messages wait"},
		"the journal is behind":    {during: func(i int, s *sample) { s.actors[1].User = 100000 }},
		"a supervisor hangs":       {during: func(_ int, s *sample) { s.actors[2].State = runtime.StateSuspended }, want: "I11", detail: "its supervisor has not decided for 6s"},
		"a supervisor is slow": {during: func(i int, s *sample) {
			if i%5 > 0 {
				s.actors[2].State = runtime.StateSuspended
			}
		}},
		"the root was restarted": {final: func(s *sample) { s.actors[0].Incarnation = 2 }, want: "I11", detail: "the root was restarted"},
		"the root is gone":       {during: func(_ int, s *sample) { s.actors = s.actors[1:] }, want: "I11", detail: "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(calm(0))
			for i := 1; i < 10; i++ {
				s := calm(i)
				if tt.during != nil {
					tt.during(i, s)
				}
				j.take(s)
			}
			last := calm(10)
			if tt.final != nil {
				tt.final(last)
			}
			j.final(last)
			if got := list(j, Violated); got != tt.want {
				t.Errorf("violated: %q, want %q: %+v", got, tt.want, j.verdicts())
			}
			v := j.violated()
			if (v != nil) != (tt.want != "") || v != nil && !strings.Contains(v.Detail, tt.detail) {
				t.Errorf("violation %+v, want %q", v, tt.detail)
			}
			if got := list(j, Pending); got != "" {
				t.Errorf("undecided: %s", got)
			}
			for _, one := range append(strings.Fields(tt.open), "I4", "I6", "I12", "I13", "I14") {
				if !strings.Contains(" "+list(j, NotEvaluated)+" ", " "+one+" ") {
					t.Errorf("%s is not open: %q", one, list(j, NotEvaluated))
				}
			}
		})
	}
}

// list joins the names of the invariants in a state.
func list(j *judge, state Holds) string {
	var names []string
	for _, i := range j.verdicts() {
		if i.State == state {
			names = append(names, i.Name)
		}
	}
	return strings.Join(names, " ")
}

// TestAlone: the fault of one service actor must cost nothing, unless the cluster changed.
func TestAlone(t *testing.T) {
	record := func(writes uint64) *Record {
		return &Record{ID: 3, What: Fault{Kind: Kill}, Actor: address.Service("shop/a"), VPPWrites: writes}
	}
	for _, tt := range []struct {
		writes  []uint64
		changed bool
		want    Holds
	}{
		{nil, false, NotEvaluated}, {[]uint64{0}, false, Held}, {[]uint64{0, 2, 0}, false, Violated}, {[]uint64{2}, true, NotEvaluated},
	} {
		j := newJudge(calm(0))
		for _, writes := range tt.writes {
			j.alone(record(writes), tt.changed)
		}
		j.final(calm(1))
		for _, i := range j.verdicts() {
			if i.Name == "I4" && i.State != tt.want {
				t.Errorf("%v: %+v, want %s", tt, i, tt.want)
			}
		}
	}
}

// TestWell: the first problem of an agent that is not at rest.
func TestWell(t *testing.T) {
	for want, change := range map[string]func(*sample){
		"":                                      func(*sample) {},
		"not ready: x":                          func(s *sample) { s.ready, s.reasons = false, "x" },
		"services cannot be read":               func(s *sample) { s.services, s.actors = nil, s.actors[:2] },
		"VPP could not be read back":            func(s *sample) { s.read = false },
		"VPP differs by 2 operations, first: a": func(s *sample) { s.operations = []string{"a", "b"} },
		"shop/a is failed":                      func(s *sample) { s.services[0].State = "failed" },
		"agent/world/services/shop~a is quarantined": func(s *sample) { s.actors[2].State = runtime.StateQuarantined },
		fmt.Sprint(address.Journal, " is backoff"):   func(s *sample) { s.actors[1].State = runtime.StateBackoff },
	} {
		s := calm(0)
		change(s)
		if got := well(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAmong: faults of services that overlap with others are evaluated only if the run wrote
// nothing.
func TestAmong(t *testing.T) {
	for _, tt := range []struct {
		writes, changes uint64
		services        int
		want            Holds
	}{{0, 0, 3, Held}, {0, 0, 0, NotEvaluated}, {2, 0, 3, NotEvaluated}, {0, 1, 3, NotEvaluated}} {
		j := newJudge(calm(0))
		for range tt.services {
			j.among()
		}
		last := calm(1)
		last.usage.Writes, last.changes = tt.writes, tt.changes
		j.final(last)
		if got := j.verdicts()[4]; got.Name != "I4" || got.State != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}
