package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// name is a thing of a backlog.
type name string

func (n name) String() string { return string(n) }

// retval is a refusal, wrapped as appliers wrap it.
func retval(message string, n int32) error {
	return fmt.Errorf("an operation: %w: %w", nat44.ErrRejected, &link.RetvalError{Message: message, Retval: n})
}

// refusedBacklog holds things that VPP has refused, n in each way.
func refusedBacklog(t *testing.T, n int, ways map[string]error) (*backlog[name], time.Time) {
	t.Helper()
	b := newBacklog("things", func(a, b name) int { return strings.Compare(string(a), string(b)) },
		func(name) bool { return true }, func(name) []string { return nil })
	now := time.Unix(1000, 0)
	refused := map[name]error{}
	for way, err := range ways {
		for i := range n {
			k := name(fmt.Sprintf("%s%02d", way, i))
			b.list(k)
			refused[k] = err
		}
	}
	b.book(b.batch(n*len(ways)), refused, nil, now, time.Second)
	if len(b.failed) != n*len(ways) || b.pending() != 0 {
		t.Fatalf("%d refused, %d pending", len(b.failed), b.pending())
	}
	return &b, now
}

func isWanted(name) bool { return true }

// TestProbesTakeTurns: one of each way, the next one each time; none where the same again cannot end otherwise or VPP has to be read for it.
func TestProbesTakeTurns(t *testing.T) {
	ways := map[string]error{
		"a": retval("m", -1), "b": retval("m", -2), "c": retval("n", -1), "other": errors.New("no"),
		"unsafe": fmt.Errorf("op: %w", link.ErrRefused), "exists": fmt.Errorf("op: %w: %w", nat44.ErrExists, retval("m", -81)),
	}
	b, now := refusedBacklog(t, 3, ways)
	for _, want := range []string{"00", "01", "02", "00"} {
		b.probe()
		got := b.batch(100)
		if all := []name{name("a" + want), name("b" + want), name("c" + want), name("other" + want)}; !slices.Equal(got, all) {
			t.Errorf("tried %v, want %v", got, all)
		}
		refused := map[name]error{}
		for _, k := range got {
			refused[k] = ways[strings.TrimRight(string(k), "0123456789")]
		}
		b.book(got, refused, nil, now, time.Second)
	}
}

// TestProbeInVain: it changes neither the delay nor whether VPP is read, and is no news; another refusal is.
func TestProbeInVain(t *testing.T) {
	b, now := refusedBacklog(t, 1, map[string]error{"a": retval("m", -1)})
	k := name("a00")
	for range 2 { // so that it would be read for at the third time
		now = b.failed[k].until
		b.retry(now)
		b.book(b.batch(1), map[name]error{k: retval("m", -1)}, nil, now, time.Second)
	}
	if !b.stubborn([]name{k}) {
		t.Fatal("three refusals are not enough to doubt")
	}
	before := *b.failed[k]
	b.probe()
	b.retry(now.Add(time.Hour))
	if tried := b.batch(100); len(tried) != 1 {
		t.Errorf("%v are tried at a time", tried)
	}
	err := retval("m", -1)
	if !b.vain(&k, err) || b.vain(&k, retval("m", -2)) || b.vain(&k, nil) || b.vain(nil, err) {
		t.Error("news are taken for none, or the other way round")
	}
	b.book([]name{k}, map[name]error{k: err}, nil, now, time.Second)
	if f := b.failed[k]; f.until != before.until || f.tries != before.tries || b.stubborn([]name{k}) {
		t.Errorf("before %+v, now %+v", before, *f)
	}
	b.probe()
	b.book(b.batch(1), map[name]error{k: retval("m", -2)}, nil, now, time.Second)
	if f := b.failed[k]; f.tries != before.tries+1 || f.way.retval != -2 {
		t.Errorf("before %+v, now %+v", before, *f)
	}
}

// TestReleaseGrows: when VPP takes the probe, more and more follow at once, of the same way only; when it refuses again, none.
func TestReleaseGrows(t *testing.T) {
	ways := map[string]error{"a": retval("m", -1), "b": retval("m", -2)}
	b, now := refusedBacklog(t, 20, ways)
	b.probe()
	batch := b.batch(100)
	b.book(batch, map[name]error{"b00": ways["b"]}, isWanted, now, time.Second)
	for _, want := range []int{2, 4, 8} {
		if batch = b.batch(100); len(batch) != want || !strings.HasPrefix(string(batch[0]), "a") {
			t.Fatalf("%d follow, want %d: %v", len(batch), want, batch)
		}
		b.book(batch, nil, isWanted, now, time.Second)
	}
	batch = b.batch(100) // the last five
	b.book(batch, map[name]error{batch[0]: ways["a"]}, isWanted, now, time.Second)
	if again := b.batch(100); len(again) != 0 {
		t.Errorf("%v follow although one of %v was refused", again, batch)
	}
	if len(b.failed) != 1+20 {
		t.Errorf("%d are refused, want 21", len(b.failed))
	}
}

// TestGuardProbes: access lists that VPP refuses are tried one operation after the other, as far as they need none before them, which changes
// nothing of the growing delay.
func TestGuardProbes(t *testing.T) {
	g, now := newGuard(), time.Unix(1000, 0)
	ops := []acl.Op{
		{Verb: acl.Create, Tag: "a"},
		{Verb: acl.Create, Tag: "b"},
		{Verb: acl.Create, Tag: "c"},
		{Verb: acl.SetLists, Tag: "x"}, // it needs the others
	}
	err := retval("acl_add_replace", -1)
	var last time.Duration
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := len(g.due(ops)); got != len(ops) {
			t.Errorf("%d operations are due, want all", got)
		}
		g.fail(err, now, time.Second)
		if last = g.until.Sub(now); last < want*time.Second*4/5 || last > want*time.Second*6/5 {
			t.Errorf("refusal %d: waits %v, want %v, up to a fifth longer or shorter", i+1, last, want*time.Second)
		}
		until, tried := g.until, ""
		for range 3 {
			if !g.rests(now) {
				t.Error("it does not rest")
			}
			g.probe(now)
			due := g.due(ops)
			if g.rests(now) || len(due) != 1 {
				t.Fatalf("probe of %v", due)
			}
			tried += due[0].Tag
			g.fail(err, now, time.Second)
		}
		if g.until != until || len(tried) != 3 || !strings.Contains("abcabc", tried) {
			t.Errorf("tried %s, then waits until %v, want %v", tried, g.until, until)
		}
		now = g.until
	}
	g.fail(fmt.Errorf("op: %w", link.ErrRefused), now, time.Second)
	if g.probe(now); g.trial {
		t.Error("what cannot end otherwise is tried")
	}
}

// TestProbeSurvivesAReading: what is about to be tried is tried also when VPP has been read meanwhile, what waits goes on waiting, and what is as wanted
// nevertheless is neither.
func TestProbeSurvivesAReading(t *testing.T) {
	b, _ := refusedBacklog(t, 3, map[string]error{"a": retval("m", -1)})
	b.probe()
	settled := b.relist([]name{"a01", "new", "a00"})
	if got := b.batch(100); !slices.Equal(got, []name{"a00", "new"}) || !slices.Equal(settled, []name{"a02"}) || !b.failed["a00"].probe {
		t.Errorf("tried %v, settled %v", got, settled)
	}
}

// TestOnlyWhatIsSentWasTriedAgain: what is under way when its time comes once more is listed, and not tried for that.
func TestOnlyWhatIsSentWasTriedAgain(t *testing.T) {
	b, now := refusedBacklog(t, 2, map[string]error{"a": retval("m", -1)})
	now = now.Add(time.Minute)
	b.retry(now)
	sent := b.batch(10)
	if n := b.refusedBefore(sent); n != 2 {
		t.Errorf("%d of two were refused before", n)
	}
	b.retry(now) // while VPP works on them
	b.probe()
	b.book(sent, nil, isWanted, now, time.Second)
	if again := b.batch(10); len(again) != 0 {
		t.Errorf("%v are tried again although VPP has taken them", again)
	}
	if n := b.refusedBefore(sent); n != 0 {
		t.Errorf("%d are refused still", n)
	}
}

// TestReleaseHasAnOrder: of several ways as well, so that the same run is the same again.
func TestReleaseHasAnOrder(t *testing.T) {
	ways := map[string]error{"a": retval("m", -1), "b": retval("m", -2), "c": retval("n", -3), "d": retval("l", -1)}
	for range 20 {
		b, now := refusedBacklog(t, 3, ways)
		b.probe()
		b.book(b.batch(100), nil, isWanted, now, time.Second)
		if got, want := b.batch(100), []name{"d01", "d02", "b01", "b02", "a01", "a02", "c01", "c02"}; !slices.Equal(got, want) {
			t.Fatalf("%v follow, want %v", got, want)
		}
	}
}
