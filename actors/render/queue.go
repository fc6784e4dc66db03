package render

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
)

// queue is the work queue of a renderer. It has the objects that may not be as wanted, the refused
// ones with the time of their next try, and the ones that services leave behind. It is plain data:
// it neither sends nor waits.
type queue[K Key] struct {
	wishes  wishes[K]
	compare func(K) Step
	now     int64      // Unix nanoseconds
	dirty   map[K]mark // may not be as wanted
	// to be compared; objects that became clean meanwhile are still in it
	next    turns[K]
	drained []string       // services whose last object has left next
	blocked map[K]bool     // wait for another object
	failed  map[K]*failure // refused by VPP, or not admitted
	short   int            // number of failed objects for which VPP has no memory
	first   *K             // smallest key of failed; nil = to be looked for
	probed  map[refusal]K  // the last half-open probe of each kind of refusal
	// by service: objects that it wanted, that no service wants any more, and that may still be
	// in VPP
	leaving map[string]map[K]bool
	leavers map[K][]string // the same by object: the services that it leaves
}

// mark is the place of an object that may not be as wanted, and since when it is there.
type mark struct {
	state place
	since int64 // Unix nanoseconds
}

// place says whether an object is in the queue.
type place uint8

const (
	held   place = iota // out of the queue: refused, blocked, or waiting for the barrier
	listed              // in the queue
	taken               // out of the queue, its batch is under way
)

// failure is an object that VPP refused.
type failure struct {
	err     error
	refusal refusal
	tries   int
	until   time.Time // not tried again before, unless as a probe
	probe   bool      // it is being tried as a probe
	again   bool      // the last try was a probe that was refused as before
}

func newQueue[K Key](wishes wishes[K], compare func(K) Step) *queue[K] {
	return &queue[K]{
		wishes: wishes, compare: compare, dirty: map[K]mark{}, blocked: map[K]bool{}, failed: map[K]*failure{}, probed: map[refusal]K{},
		leaving: map[string]map[K]bool{}, leavers: map[K][]string{},
	}
}

// Dirty satisfies Progress.
func (q *queue[K]) Dirty(k K) bool {
	_, dirty := q.dirty[k]
	return dirty
}

// Refusal satisfies Progress.
func (q *queue[K]) Refusal(k K) (times int, err error) {
	if f := q.failed[k]; f != nil {
		return f.tries, f.err
	}
	return 0, nil
}

// inSync reports whether VPP holds what is wanted, or what may not be changed yet.
func (q *queue[K]) inSync(k K) bool { return q.compare(k).Cost == 0 }

// Pending satisfies Progress.
func (q *queue[K]) Pending() int { return len(q.dirty) - len(q.failed) }

// waiting is the time, in Unix nanoseconds, since which the oldest object waits for the answer to
// its batch; 0 = none waits. Objects that were refused, or wait for another object or the barrier,
// do not count.
func (q *queue[K]) waiting() (since int64) {
	for _, m := range q.dirty {
		if m.state != held && (since == 0 || m.since < since) {
			since = m.since
		}
	}
	return since
}

// touch puts an object whose wanted value has changed into the queue, and forgets that it was
// refused. It has its turn with the service that wants it, or else with the service that gave it
// up.
func (q *queue[K]) touch(k K, by string) {
	q.reset(k)
	q.enter(k, by, q.now)
}

// list puts an object into the queue.
func (q *queue[K]) list(k K) { q.enter(k, "", q.now) }

// enter puts an object into the queue. An object in the queue keeps its turn.
func (q *queue[K]) enter(k K, by string, since int64) {
	if q.dirty[k].state != listed {
		q.dirty[k] = mark{listed, since}
		q.next.push(q.turnOf(k, by), k)
	}
}

// turnOf is the service with which an object has its turn.
func (q *queue[K]) turnOf(k K, by string) string {
	for _, services := range [...][]string{q.leavers[k], q.wishes.Services(k)} {
		if len(services) > 0 {
			by = services[0]
		}
	}
	return by
}

// relist replaces the whole queue, because VPP has been read. A refused object that differs goes on
// waiting for its next try. Objects that were in the queue and do not differ are in sync and are
// returned.
func (q *queue[K]) relist(differing []K) (settled []K) {
	before := q.dirty
	q.drained = append(q.drained, slices.Sorted(maps.Keys(q.next.flows))...)
	q.dirty, q.next = map[K]mark{}, turns[K]{}
	clear(q.blocked)
	slices.SortFunc(differing, q.wishes.Compare)
	for _, k := range differing {
		if f := q.failed[k]; f != nil && before[k].state != listed {
			q.dirty[k], f.probe = mark{held, q.now}, false
			continue
		}
		q.list(k)
	}
	for k := range before {
		if !q.Dirty(k) {
			q.reset(k)
			settled = append(settled, k)
		}
	}
	return settled
}

// takeTurn takes objects of the next turn out of the queue, at most most, and returns about how
// many messages they need. choose returns that for one object, and 0 for an object for which it has
// called clean, hold or fail.
func (q *queue[K]) takeTurn(most int, choose func(K) int) (messages int) {
	_, messages, drained := q.next.turn(most, func(k K) int {
		m := q.dirty[k]
		if m.state != listed {
			return 0
		}
		q.dirty[k] = mark{taken, m.since}
		return choose(k)
	})
	if drained != "" {
		q.drained = append(q.drained, drained)
	}
	return messages
}

// hold keeps an object that has been taken out of the queue.
func (q *queue[K]) hold(k K) { q.dirty[k] = mark{held, q.now} }

// unblock puts objects back into the queue whose gate is not blocked any more, and reports whether
// there were any.
func (q *queue[K]) unblock() bool {
	if len(q.blocked) == 0 {
		return false
	}
	listed := false
	for _, k := range slices.SortedFunc(maps.Keys(q.blocked), q.wishes.Compare) {
		if s := q.compare(k); s.Gate == Blocked && s.Cost > 0 {
			continue
		}
		delete(q.blocked, k)
		if q.Dirty(k) && q.failed[k] == nil {
			q.list(k)
			listed = true
		}
	}
	return listed
}

// unfinished lists, ordered, the dirty objects that were not refused.
func (q *queue[K]) unfinished() []K {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(q.dirty)), func(k K) bool { return q.failed[k] != nil })
	slices.SortFunc(keys, q.wishes.Compare)
	return keys
}

// fail notes that VPP refused an object. It is tried again with back-off, which a failed probe does
// not extend. If VPP does not hold what is believed, the first retry is immediate, because VPP is
// read before it.
func (q *queue[K]) fail(k K, err error, now time.Time, backoff runtime.Backoff) {
	f := q.failed[k]
	if f == nil {
		f = &failure{}
		q.failed[k] = f
		q.first = nil
	}
	q.hold(k)
	q.count(f, -1)
	defer q.count(f, 1)
	if f.again, f.probe = f.probe && f.refusal == refusalOf(err), false; f.again {
		f.err = err
		return
	}
	delay := backoff.DelayFor(k.String(), f.tries+1)
	switch kind := classOf(err); {
	case kind == classAbort:
		// the next try ends the same way, unless VPP changes in a way that it does not
		// report
		delay = backoff.Max
	case kind == classResync && f.tries == 0:
		delay = 0
	}
	f.err, f.refusal, f.until = err, refusalOf(err), now.Add(delay)
	f.tries++
}

// stubborn reports whether VPP has refused one of the objects several times since the last read for
// it: the belief about the object may be wrong. A few tries cost less than a read.
func (q *queue[K]) stubborn(keys []K) bool {
	for _, k := range keys {
		if f := q.failed[k]; f != nil && !f.again && f.tries%triesUntilRead == 0 {
			return true
		}
	}
	return false
}

// triesUntilRead is the number of tries of an object between two reads of VPP for it.
const triesUntilRead = 3

// retries counts the objects of a batch that were refused before.
func (q *queue[K]) retries(batch []K) (n int) {
	for _, k := range batch {
		if q.failed[k] != nil {
			n++
		}
	}
	return n
}

// retry puts refused objects whose delay is over into the queue.
func (q *queue[K]) retry(now time.Time) {
	var due []K
	for k, f := range q.failed {
		if !f.until.After(now) && q.dirty[k].state == held {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, q.wishes.Compare)
	for _, k := range due {
		q.list(k)
	}
}

// conclude sorts the objects of a batch: refused, in sync, or in the queue again. If VPP accepts an
// object that it refused before, others of the same kind of refusal need not wait any longer. It
// reports whether an object has reached sync.
func (q *queue[K]) conclude(batch []K, refused map[K]error, now time.Time, backoff runtime.Backoff) (advanced bool) {
	accepted := map[refusal]int{}
	var again []K
	for _, k := range batch {
		before := q.failed[k]
		switch err := refused[k]; {
		case err != nil:
			q.fail(k, err, now, backoff)
		case q.inSync(k):
			if before != nil {
				accepted[before.refusal]++
			}
			q.clean(k)
			advanced = true
		default:
			again = append(again, k)
		}
	}
	// a change that has begun is finished before the next one
	for _, k := range slices.Backward(again) {
		if q.dirty[k].state != listed {
			q.dirty[k] = mark{listed, q.dirty[k].since}
			q.next.again(q.turnOf(k, ""), k)
		}
	}
	for _, err := range refused {
		delete(accepted, refusalOf(err))
	}
	for _, c := range slices.SortedFunc(maps.Keys(accepted), refusal.compare) {
		q.release(c, 2*accepted[c])
	}
	return advanced
}

// reset forgets that an object was refused.
func (q *queue[K]) reset(k K) {
	if f := q.failed[k]; f != nil {
		q.count(f, -1)
		delete(q.failed, k)
		q.first = nil
	}
}

// count enters a failure into the number of objects for which VPP has no memory, or takes it out.
func (q *queue[K]) count(f *failure, n int) {
	if errors.Is(f.err, heap.ErrLow) {
		q.short, q.first = q.short+n, nil
	}
}

// resetAll forgets all refusals: VPP has restarted.
func (q *queue[K]) resetAll() {
	for k := range q.failed {
		q.reset(k)
	}
}

// clean notes that an object is as wanted.
func (q *queue[K]) clean(k K) {
	delete(q.dirty, k)
	q.reset(k)
}

// firstFailure is the failure to report. It stays the same while the failures do.
func (q *queue[K]) firstFailure() (k K, err error) {
	if len(q.failed) == 0 {
		return k, nil
	}
	if q.first == nil {
		first := func(a, b K) int { // refused objects come first
			low := func(k K) bool { return errors.Is(q.failed[k].err, heap.ErrLow) }
			if low(a) != low(b) {
				if low(a) {
					return 1
				}
				return -1
			}
			return q.wishes.Compare(a, b)
		}
		k := slices.MinFunc(slices.Collect(maps.Keys(q.failed)), first)
		q.first = &k
	}
	return *q.first, q.failed[*q.first].err
}

// leave notes which objects of a service must leave VPP, unless a service wants them.
func (q *queue[K]) leave(service string, before []K) {
	if len(before) > 0 && q.leaving[service] == nil {
		q.leaving[service] = map[K]bool{}
	}
	for _, k := range before {
		if !q.leaving[service][k] {
			q.leaving[service][k] = true
			q.leavers[k] = append(q.leavers[k], service)
		}
	}
	q.left(service)
}

// left forgets the objects that have left VPP, and reports whether all of the service have. An
// object that stays for its connections has left when it gets no new ones.
func (q *queue[K]) left(service string) bool {
	for k := range q.leaving[service] {
		if !q.Dirty(k) || q.wishes.Claimed(k) {
			q.gone(service, k)
		}
	}
	if len(q.leaving[service]) > 0 {
		return false
	}
	delete(q.leaving, service)
	return true
}

// gone notes that a service does not wait for an object to leave VPP any more.
func (q *queue[K]) gone(service string, k K) {
	delete(q.leaving[service], k)
	others := slices.DeleteFunc(q.leavers[k], func(name string) bool { return name == service })
	if q.leavers[k] = others; len(others) == 0 {
		delete(q.leavers, k)
	}
}

// forget drops the objects that a service waits to leave VPP.
func (q *queue[K]) forget(service string) {
	for k := range q.leaving[service] {
		q.gone(service, k)
	}
	delete(q.leaving, service)
}

// acknowledge enters the state of one object into the acknowledgement of its service, which is in
// sync only when all objects are.
func (q *queue[K]) acknowledge(ack *messages.RenderAck, k K, todo bool) {
	switch failed := q.failed[k]; {
	case failed != nil:
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, k.String()+": "+failed.err.Error()
	case todo && ack.GetState() == messages.RenderState_RENDER_IN_SYNC:
		ack.State = messages.RenderState_RENDER_PENDING
	}
}
