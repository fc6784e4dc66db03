package audit

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSchedule: reading takes a thousandth of the time, within the bounds.
func TestSchedule(t *testing.T) {
	ms := func(all ...float64) (took []time.Duration) {
		for _, one := range all {
			took = append(took, time.Duration(one*float64(time.Millisecond)))
		}
		return took
	}
	const least, most = 450 * time.Millisecond, time.Minute
	for _, c := range []struct {
		least, most time.Duration
		took        []time.Duration // by the readings so far
		want        time.Duration   // until the next one
	}{
		{least, most, ms(0, 0), least},
		{least, most, ms(0.6, 0.6), least},                   // a hundred rows
		{least, most, ms(2.2, 2.2), 1200 * time.Millisecond}, // a thousand
		{least, most, ms(33, 33), 32 * time.Second},          // ten thousand
		{least, most, ms(33), least},                         // once may be by chance
		{least, most, ms(5000, 5000), most},
		{least, most, ms(0.6, 44), least}, // the second one has waited for something else
		{least, most, ms(44, 0.6), least},
		{least, most, ms(0.6, 44, 33), 32 * time.Second}, // twice is not by chance
		{10 * time.Second, most, ms(1, 1), 10 * time.Second},
		{time.Hour, most, ms(1, 1), most}, // no longer than what is promised
		{least, 200 * time.Millisecond, ms(1, 1), 200 * time.Millisecond},
		{least, time.Hour, ms(5000, 5000), time.Hour},
		{45 * time.Second, most, ms(48, 48), 47 * time.Second},
		{least, most, ms(-1000, -1000), least}, // no clock does that
	} {
		var k check
		var got time.Duration
		for _, took := range c.took {
			got = k.next(took, c.least, c.most)
		}
		if got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

const (
	testLeast = 45 * time.Second
	testMost  = time.Minute
)

// withAudit plays with an audit actor. A Stage runs for 100 ms before that.
func withAudit(t *testing.T, config *Config, play func(s *probe.Stage)) {
	t.Helper()
	s := probe.New(t)
	s.Start(address.Audit, probe.Actors{address.Audit: func() runtime.Behaviour { return New(config) }})
	play(s)
}

// checks counts the drift checks that a renderer was asked for, and fails the test if it was asked
// for anything else.
func checks(s *probe.Stage, renderer string) int {
	s.Helper()
	all := probe.All[*messages.Verify](s, address.Renderer(renderer))
	if slices.ContainsFunc(all, func(m *messages.Verify) bool { return !m.GetRoutine() }) || len(all) != len(s.Heard(address.Renderer(renderer))) {
		s.Errorf("%s was sent %v", renderer, s.Heard(address.Renderer(renderer)))
	}
	return len(all)
}

func verified(renderer string, took time.Duration) *messages.Verified {
	return &messages.Verified{Renderer: renderer, Took: int64(took)}
}

// TestAuditAsksEachRendererOnce: the first check comes after the least time; without an answer the
// next one comes after the longest.
func TestAuditAsksEachRendererOnce(t *testing.T) {
	withAudit(t, &Config{Renderers: probe.Renderers, Least: testLeast, Most: testMost}, func(s *probe.Stage) {
		s.Run(testLeast - time.Second)
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {time.Second, 1}, {testMost - 2*time.Second, 1}, {2 * time.Second, 2}, {testMost, 3}, {10 * testMost, 13}} {
			s.Run(step.after)
			for _, name := range probe.Renderers {
				if n := checks(s, name); n != step.want {
					t.Errorf("%s was checked %d times, want %d", name, n, step.want)
				}
			}
		}
	})
}

// TestAuditGoesByTheReadings: whatever a reading was for, the next check comes after it, and each
// renderer has a schedule of its own.
func TestAuditGoesByTheReadings(t *testing.T) {
	withAudit(t, &Config{Renderers: probe.Renderers, Least: testLeast, Most: testMost}, func(s *probe.Stage) {
		for range 10 { // nat44 is read again and again because of changes
			s.Run(30 * time.Second)
			s.Tell(verified("nat44", time.Millisecond))
		}
		if n := checks(s, "nat44"); n != 0 {
			t.Errorf("checked %d times although it was read before each was due", n)
		}
		if n := checks(s, "routes"); n != 5 {
			t.Errorf("routes was checked %d times in five minutes without an answer, want 5", n)
		}
		s.Forget()
		s.Run(testLeast - time.Second)
		if n := checks(s, "nat44"); n != 0 {
			t.Errorf("checked %d times too early", n)
		}
		if s.Run(2 * time.Second); checks(s, "nat44") != 1 {
			t.Errorf("checked %d times %s after the last reading", checks(s, "nat44"), testLeast)
		}
	})
}

// TestAuditLeavesABusyVPPAlone: an expensive reading puts the next one off.
func TestAuditLeavesABusyVPPAlone(t *testing.T) {
	withAudit(t, &Config{Renderers: []string{"nat44"}, Least: time.Second, Most: time.Minute}, func(s *probe.Stage) {
		for range 2 {
			s.Tell(verified("nat44", 31*time.Millisecond))
		}
		s.Forget()
		s.Run(29 * time.Second)
		if n := checks(s, "nat44"); n != 0 {
			t.Errorf("checked %d times within 29 s of a reading that took 31 ms", n)
		}
		if s.Run(2 * time.Second); checks(s, "nat44") != 1 {
			t.Errorf("checked %d times", checks(s, "nat44"))
		}
		s.Tell(verified("nat44", time.Millisecond)) // cheap again
		s.Forget()
		s.Run(1100 * time.Millisecond)
		if n := checks(s, "nat44"); n != 1 {
			t.Errorf("checked %d times", n)
		}
	})
}

// TestAuditIgnoresOthers: an unknown renderer has no schedule.
func TestAuditIgnoresOthers(t *testing.T) {
	withAudit(t, &Config{Renderers: []string{"nat44"}, Least: testLeast, Most: testMost}, func(s *probe.Stage) {
		s.Tell(verified("cnat", time.Millisecond))
		if s.Run(testLeast); checks(s, "nat44") != 1 || len(s.Faults) != 0 {
			t.Errorf("%d checks, faults %v", checks(s, "nat44"), s.Faults)
		}
	})
}

// TestRestartedAuditBeginsAnew: a restart brings no check at once, and takes none away.
func TestRestartedAuditBeginsAnew(t *testing.T) {
	withAudit(t, &Config{Renderers: []string{"nat44"}, Least: testLeast, Most: testMost}, func(s *probe.Stage) {
		s.Run(testLeast / 2)
		s.Kill()
		s.Run(testLeast - time.Second)
		if n := checks(s, "nat44"); n != 0 {
			t.Errorf("checked %d times", n)
		}
		if s.Run(time.Second); checks(s, "nat44") != 1 {
			t.Errorf("checked %d times", checks(s, "nat44"))
		}
	})
}
