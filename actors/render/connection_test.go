package render

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// TestConnectionFollowsTheLink: a lost connection ends refusals, and another VPP is noticed.
func TestConnectionFollowsTheLink(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &connection{config: &Config{Backoff: time.Second}, link: &messages.LinkState{}}
	for _, step := range []struct {
		what            string
		link            *messages.LinkState
		lost, restarted bool
		open            bool
	}{
		{"the first connection", &messages.LinkState{Session: 1, Up: true, Boot: "a"}, true, true, true},
		{"the same again", &messages.LinkState{Session: 1, Up: true, Boot: "a"}, false, false, true},
		{"it ends", &messages.LinkState{Session: 1}, true, false, false},
		{"the same VPP", &messages.LinkState{Session: 2, Up: true, Boot: "a"}, true, false, true},
		{"a message of an earlier connection", &messages.LinkState{Session: 1}, false, false, true},
		{"another VPP without a word", &messages.LinkState{Session: 3, Up: true, Boot: "b"}, true, true, true},
	} {
		s.delayed, s.refused, s.refusals = now.Add(time.Hour), errors.New("no"), 3
		lost, restarted := s.linkChanged(step.link)
		if lost != step.lost || restarted != step.restarted {
			t.Errorf("%s: lost %t, restarted %t", step.what, lost, restarted)
		}
		if forgot := s.refused == nil && s.refusals == 0; forgot != step.lost {
			t.Errorf("%s: refusal forgotten %t", step.what, forgot)
		}
		if s.delayed = (time.Time{}); s.open(now) != step.open {
			t.Errorf("%s: open %t", step.what, s.open(now))
		}
	}
}

// TestConnectionSaysWhyVPPIsRead: each reason once.
func TestConnectionSaysWhyVPPIsRead(t *testing.T) {
	now := time.Unix(1000, 0)
	for what, tc := range map[string]struct {
		asked  []*messages.Verify
		known  bool
		reason string
	}{
		"nothing is known": {[]*messages.Verify{{Reason: "healer"}}, false, reasonUnknown},
		"a drift check":    {[]*messages.Verify{{Routine: true}}, true, reasonDriftCheck},
		"a reason":         {[]*messages.Verify{{Reason: "healer"}}, true, "healer"},
		"both":             {[]*messages.Verify{{Routine: true}, {Reason: "healer"}}, true, "healer"},
	} {
		s := &connection{config: &Config{DriftCheckOverdue: time.Minute}}
		for _, m := range tc.asked {
			s.ask(m, now)
		}
		if got := s.reading(tc.known); got != tc.reason {
			t.Errorf("%s: %q", what, got)
		}
		if s.doubtful(now.Add(time.Hour)) || s.verify != "" || !s.driftCheckDue.IsZero() {
			t.Errorf("%s: read again for the same", what)
		}
	}
}

// TestConnectionLetsADriftCheckWait: for a reason VPP is read at once or when the delay is over,
// for a drift check when it is overdue.
func TestConnectionLetsADriftCheckWait(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &connection{config: &Config{DriftCheckOverdue: time.Minute}}
	s.ask(&messages.Verify{Routine: true}, now)
	s.ask(&messages.Verify{Routine: true}, now.Add(50*time.Second)) // the first counts
	if s.doubtful(now.Add(59*time.Second)) || !s.doubtful(now.Add(time.Minute)) {
		t.Error("a drift check does not wait as long as it should")
	}
	s.reading(true)
	s.ask(&messages.Verify{Reason: "healer"}, now)
	if s.reread = now.Add(time.Second); s.doubtful(now) || !s.doubtful(now.Add(time.Second)) {
		t.Error("a reason does not wait for the delay")
	}
}

// TestDriftCheckSchedule: reading takes a thousandth of the time, within the bounds.
func TestDriftCheckSchedule(t *testing.T) {
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
		k := connection{config: &Config{DriftCheckLeast: c.least, DriftCheckMost: c.most}}
		var got time.Duration
		for _, took := range c.took {
			got = k.rest(took)
		}
		if got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestOutcomeSumsUp: what the results of a batch come to.
func TestOutcomeSumsUp(t *testing.T) {
	refused, skipped := retval("m", -1), fmt.Errorf("%w: one before it", link.ErrSkipped)
	for what, tc := range map[string]struct {
		results []Result[name]
		want    outcome[name]
	}{
		"done":            {[]Result[name]{{Object: "a"}}, outcome[name]{done: 1}},
		"done, but":       {[]Result[name]{{Object: "a", Unknown: true}}, outcome[name]{done: 1, doubt: true}},
		"no answer":       {[]Result[name]{{Object: "a", Err: link.ErrUnknown, Unknown: true}}, outcome[name]{unknown: 1}},
		"not sent":        {[]Result[name]{{Object: "a", Err: link.ErrNotSent}, {Object: "b", Err: link.ErrDown}}, outcome[name]{unsent: 2}},
		"refused":         {[]Result[name]{{Object: "a", Err: refused}}, outcome[name]{failed: 1, refused: map[name]error{"a": refused}}},
		"stale":           {[]Result[name]{{Object: "a", Err: link.ErrStale}}, outcome[name]{failed: 1, doubt: true, refused: map[name]error{"a": link.ErrStale}}},
		"the first error": {[]Result[name]{{Object: "a", Err: refused}, {Object: "a", Err: retval("n", -2)}}, outcome[name]{failed: 2, refused: map[name]error{"a": refused}}},
		"skipped first":   {[]Result[name]{{Object: "a", Err: skipped}, {Object: "a", Err: refused}}, outcome[name]{failed: 2, refused: map[name]error{"a": refused}}},
		"a setting":       {[]Result[name]{{Op: said("limit"), Setting: true, Err: refused}}, outcome[name]{failed: 1, settings: refused}},
	} {
		got := sum(tc.results)
		if got.done != tc.want.done || got.failed != tc.want.failed || got.unknown != tc.want.unknown || got.unsent != tc.want.unsent || got.doubt != tc.want.doubt ||
			!errors.Is(got.settings, tc.want.settings) || len(got.refused) != len(tc.want.refused) {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
		for k, err := range tc.want.refused {
			if !errors.Is(got.refused[k], err) {
				t.Errorf("%s: %s has %v, want %v", what, k, got.refused[k], err)
			}
		}
	}
}

// TestConnectionNamesTheKindOfEvent: everything anew at the start, damage, or a change.
func TestConnectionNamesTheKindOfEvent(t *testing.T) {
	for want, s := range map[messages.Method]connection{
		messages.Method_METHOD_FULL_RESYNC:       {},
		messages.Method_METHOD_DOWNSTREAM_RESYNC: {programmed: true, damaged: true},
		messages.Method_METHOD_UPDATE:            {programmed: true},
	} {
		if got := s.method(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if s := (connection{programmed: true, full: time.Unix(1, 0)}); s.method() != messages.Method_METHOD_DOWNSTREAM_RESYNC {
		t.Errorf("after a read of another VPP: %v", s.method())
	}
}
