package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// name is an object of tests.
type name string

func (n name) String() string { return string(n) }

// names are objects for tests of the queue.
type names struct {
	wishes[name]
	differs, blocked, unwanted map[name]bool     // zero: in sync, open, wanted
	wanted                     map[name][]string // by services
	cost                       map[name]int      // where it is more than 1
}

func (*names) Compare(a, b name) int      { return strings.Compare(string(a), string(b)) }
func (n *names) Services(k name) []string { return n.wanted[k] }

func (n *names) Claimed(k name) bool { return !n.unwanted[k] }

func (n *names) next(k name) (s Step) {
	if n.differs[k] {
		s.Cost = max(1, n.cost[k])
	}
	if n.blocked[k] {
		s.Gate = Blocked
	}
	return s
}

func queueOf(n *names) *queue[name] { return newQueue[name](n, n.next) }

func newNames() *names {
	return &names{differs: map[name]bool{}, blocked: map[name]bool{}, unwanted: map[name]bool{}}
}

// took takes so many objects out of a queue.
func took(q *queue[name], most int) (keys []name) {
	for len(keys) < most && !q.next.empty() {
		q.takeTurn(most-len(keys), func(k name) int {
			keys = append(keys, k)
			return q.compare(k).Cost
		})
	}
	return keys
}

var backoff = runtime.Backoff{Min: time.Second, Max: 30 * time.Second, Jitter: 0.2}

func TestQueueKeepsTheOrderAndNothingTwice(t *testing.T) {
	q := queueOf(newNames())
	for _, k := range []name{"c", "a", "c", "b"} {
		q.touch(k, "")
	}
	if got := took(q, 2); !slices.Equal(got, []name{"c", "a"}) || q.Pending() != 3 {
		t.Errorf("took %v, %d pending", got, q.Pending())
	}
	q.clean("b")
	q.list("c")
	if got := took(q, 5); !slices.Equal(got, []name{"c"}) || !q.next.empty() || !q.Dirty("a") || q.Dirty("b") {
		t.Errorf("took %v, dirty %v", got, q.dirty)
	}
}

// TestQueueWaitsLongerAfterEachRefusal: up to half a minute, a fifth longer or shorter; what is
// wanted differently is tried at once.
func TestQueueWaitsLongerAfterEachRefusal(t *testing.T) {
	q, now := queueOf(newNames()), time.Unix(1000, 0)
	q.touch("a", "")
	took(q, 10)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		q.fail("a", errors.New("refused"), now, backoff)
		if got := q.failed["a"].until.Sub(now); got < want*time.Second*4/5 || got > want*time.Second*6/5 {
			t.Errorf("refusal %d: waits %v, want %v, up to a fifth longer or shorter", i+1, got, want*time.Second)
		}
		if times, err := q.Refusal("a"); err == nil || times != i+1 {
			t.Errorf("refusal %d: %v, %d times", i+1, err, times)
		}
		q.retry(now)
		if got := took(q, 10); len(got) != 0 {
			t.Errorf("refusal %d: tried again at once", i+1)
		}
		now = q.failed["a"].until
		q.retry(now)
		if got := took(q, 10); len(got) != 1 {
			t.Errorf("refusal %d: not tried again afterwards", i+1)
		}
	}
	q.fail("a", errors.New("refused"), now, backoff)
	q.touch("a", "")
	if _, err := q.Refusal("a"); err != nil || len(took(q, 10)) != 1 {
		t.Error("an object that is wanted differently keeps its failure")
	}
}

// TestDelaysAreSpread: what was refused together is not tried again together, and a rerun has the
// same delays.
func TestDelaysAreSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 100 {
		k, now := name(fmt.Sprint("object ", i)), time.Unix(1000, 0)
		var delays []time.Duration
		for range 2 {
			q := queueOf(newNames())
			q.touch(k, "")
			took(q, 1)
			q.fail(k, errors.New("no"), now, backoff)
			delays = append(delays, q.failed[k].until.Sub(now))
		}
		if delays[0] != delays[1] {
			t.Errorf("%s: %v and %v", k, delays[0], delays[1])
		}
		seen[delays[0]] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d different delays of 100", len(seen))
	}
}

// TestQueueDelaysByTheClassOfTheError: a request that would end the same way waits longest; one
// that needs a read is tried right after it, the first time.
func TestQueueDelaysByTheClassOfTheError(t *testing.T) {
	for what, tc := range map[string]struct {
		err           error
		first, second time.Duration
	}{
		"refused": {errors.New("no"), time.Second, 2 * time.Second},
		"unsafe":  {fmt.Errorf("op: %w", link.ErrRefused), 30 * time.Second, 30 * time.Second},
		"stale":   {fmt.Errorf("op: %w", link.ErrStale), 0, 2 * time.Second},
	} {
		q, now := queueOf(newNames()), time.Unix(1000, 0)
		for i, want := range []time.Duration{tc.first, tc.second} {
			q.list("a")
			q.fail("a", tc.err, now, backoff)
			if got := q.failed["a"].until.Sub(now); got < want*4/5 || got > want*6/5 {
				t.Errorf("%s, refusal %d: waits %v, want %v", what, i+1, got, want)
			}
		}
	}
}

// TestQueueConcludes: what became of a batch.
func TestQueueConcludes(t *testing.T) {
	a := newNames()
	q := queueOf(a)
	for _, k := range []name{"done", "refused", "moved"} {
		q.touch(k, "")
	}
	a.differs["refused"], a.differs["moved"] = true, true // "moved" is wanted differently by now
	batch := took(q, 10)
	q.conclude(batch, map[name]error{"refused": errors.New("no")}, time.Unix(1000, 0), backoff)
	if q.Dirty("done") || !q.Dirty("refused") || q.failed["refused"] == nil || q.Pending() != 1 {
		t.Errorf("dirty %v, failed %v", q.dirty, q.failed)
	}
	if got := took(q, 10); !slices.Equal(got, []name{"moved"}) {
		t.Errorf("next %v", got)
	}
	if k, err := q.firstFailure(); k != "refused" || err == nil {
		t.Errorf("first failure %v, %v", k, err)
	}
	q.resetAll()
	if _, err := q.firstFailure(); err != nil || len(q.failed) != 0 {
		t.Errorf("%v is left", q.failed)
	}
}

// TestQueueUnblocks: in order, what is not blocked any more, but not what was refused or has become
// clean meanwhile.
func TestQueueUnblocks(t *testing.T) {
	a := newNames()
	q := queueOf(a)
	if q.unblock() {
		t.Error("something was blocked")
	}
	for _, k := range []name{"d", "c", "b", "a", "clean"} {
		q.touch(k, "")
		a.differs[k], a.blocked[k] = true, true
		q.blocked[k] = true
	}
	took(q, 10)
	q.clean("clean")
	a.differs["clean"] = false
	q.fail("b", errors.New("no"), time.Unix(1000, 0), backoff)
	delete(a.blocked, "d")
	delete(a.blocked, "a")
	delete(a.blocked, "b")
	if !q.unblock() || !slices.Equal(took(q, 10), []name{"a", "d"}) {
		t.Error("not what is open")
	}
	if len(q.blocked) != 1 || !q.blocked["c"] {
		t.Errorf("blocked %v", q.blocked)
	}
}

// TestQueueKnowsWhatLeaves: until it is clean or wanted again.
func TestQueueKnowsWhatLeaves(t *testing.T) {
	a := newNames()
	q := queueOf(a)
	for _, k := range []name{"x", "y", "z"} {
		q.touch(k, "")
		a.unwanted[k] = true
	}
	q.leave("a/a", []name{"x", "y", "z", "never dirty"})
	q.clean("x")
	if q.left("a/a") {
		t.Error("left with two objects in VPP")
	}
	delete(a.unwanted, "y") // another service wants it
	q.clean("z")
	if !q.left("a/a") || len(q.leaving) != 0 {
		t.Errorf("leaving %v", q.leaving)
	}
}

func TestQueueAcknowledges(t *testing.T) {
	for what, tc := range map[string]struct {
		todo  bool
		err   error
		state messages.RenderState
		text  string
	}{
		"done":      {false, nil, messages.RenderState_RENDER_IN_SYNC, ""},
		"under way": {true, nil, messages.RenderState_RENDER_PENDING, ""},
		"refused":   {true, errors.New("no"), messages.RenderState_RENDER_FAILED, "a: no"},
	} {
		q := queueOf(newNames())
		if tc.err != nil {
			q.fail("a", tc.err, time.Unix(0, 0), backoff)
		}
		ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
		q.acknowledge(ack, "a", tc.todo)
		q.acknowledge(ack, "b", false)
		q.acknowledge(ack, "c", tc.todo)
		if ack.GetState() != tc.state || ack.GetError() != tc.text {
			t.Errorf("%s: %v", what, ack)
		}
	}
}

// TestAReadingSettlesWhatWaited: an object that waits in the queue when a reading shows it in sync
// is settled, so that its services are acknowledged.
func TestAReadingSettlesWhatWaited(t *testing.T) {
	q := queueOf(newNames())
	q.touch("a", "")
	q.touch("b", "")
	if settled := q.relist([]name{"b"}); !slices.Equal(settled, []name{"a"}) || q.Dirty("a") || !q.Dirty("b") {
		t.Errorf("settled %v", settled)
	}
}
