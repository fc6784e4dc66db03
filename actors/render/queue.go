package render

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/class"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// queue is the work queue of a renderer: the objects that may not be as wanted, those that VPP refused and when they are tried again, and those that
// services have left behind. It is plain data: it neither sends nor waits.
type queue[K Key] struct {
	adapter Adapter[K]
	dirty   map[K]bool            // may not be as wanted; true = it is in next
	next    []K                   // to be looked at, in the order in which they came; those that became clean meanwhile are still in it
	blocked map[K]bool            // wait for another object
	failed  map[K]*failure        // refused by VPP
	first   *K                    // smallest key of failed; nil = to be looked for
	probed  map[refusal]K         // the last half-open probe of each refusal class
	leaving map[string]map[K]bool // by service: what it wanted, no service wants any more, and may still be in VPP
}

// failure is an object that VPP refused.
type failure struct {
	err   error
	class refusal
	tries int
	until time.Time // not tried again before, unless as a probe
	probe bool      // it is being tried as a probe
	again bool      // the last try was a probe that was refused as before
}

func newQueue[K Key](adapter Adapter[K]) *queue[K] {
	return &queue[K]{
		adapter: adapter, dirty: map[K]bool{}, blocked: map[K]bool{}, failed: map[K]*failure{}, probed: map[refusal]K{},
		leaving: map[string]map[K]bool{},
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

// Pending satisfies Progress.
func (q *queue[K]) Pending() int { return len(q.dirty) - len(q.failed) }

// touch has an object looked at, and forgets that it was refused: something else is wanted now.
func (q *queue[K]) touch(k K) {
	q.reset(k)
	q.list(k)
}

// list puts an object into the queue.
func (q *queue[K]) list(k K) {
	if !q.dirty[k] {
		q.dirty[k] = true
		q.next = append(q.next, k)
	}
}

// relist replaces the whole queue, because VPP has been read. A refused object that differs waits until its time comes, unless it has; the others, which
// are returned, are as wanted nevertheless.
func (q *queue[K]) relist(differing []K) (settled []K) {
	before := q.dirty
	q.dirty, q.next = map[K]bool{}, nil
	clear(q.blocked)
	slices.SortFunc(differing, q.adapter.Compare)
	for _, k := range differing {
		if f := q.failed[k]; f != nil && !before[k] {
			q.dirty[k], f.probe = false, false
			continue
		}
		q.list(k)
	}
	for k := range q.failed {
		if !q.Dirty(k) {
			q.reset(k)
			settled = append(settled, k)
		}
	}
	return settled
}

// take takes objects out of the queue. The caller calls clean, block, list or fail for each, or leaves it dirty.
func (q *queue[K]) take(most int) []K {
	keys := make([]K, 0, min(len(q.next), most))
	taken := 0
	for _, k := range q.next {
		if len(keys) == most {
			break
		}
		taken++
		if q.dirty[k] {
			q.dirty[k] = false
			keys = append(keys, k)
		}
	}
	if q.next = q.next[taken:]; len(q.next) == 0 {
		q.next = nil // not to keep the array of a burst
	}
	return keys
}

// unblock puts blocked objects back whose gate is not blocked any more, and reports whether there were any.
func (q *queue[K]) unblock(passed bool) bool {
	if len(q.blocked) == 0 {
		return false
	}
	listed := false
	for _, k := range slices.SortedFunc(maps.Keys(q.blocked), q.adapter.Compare) {
		if q.adapter.Gate(k, passed) == Blocked && !q.adapter.InSync(k) {
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

// unfinished lists, ordered, what is dirty and was not refused.
func (q *queue[K]) unfinished() []K {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(q.dirty)), func(k K) bool { return q.failed[k] != nil })
	slices.SortFunc(keys, q.adapter.Compare)
	return keys
}

// fail notes that VPP refused an object; it is tried again with back-off, which a failed probe does not extend. One that is not what was believed is
// tried again at once, the first time, because VPP is read meanwhile.
func (q *queue[K]) fail(k K, err error, now time.Time, backoff runtime.Backoff) {
	f := q.failed[k]
	if f == nil {
		f = &failure{}
		q.failed[k] = f
		q.first = nil
	}
	q.dirty[k] = false
	if f.again, f.probe = f.probe && f.class == refusalOf(err), false; f.again {
		f.err = err
		return
	}
	delay := backoff.DelayFor(k.String(), f.tries+1)
	switch kind, _ := class.Of(err); {
	case kind == class.Abort:
		delay = backoff.Max // it ends the same way, unless something changes that is not reported
	case kind == class.Resync && f.tries == 0:
		delay = 0
	}
	f.err, f.class, f.until = err, refusalOf(err), now.Add(delay)
	f.tries++
}

// stubborn reports whether VPP has refused one of the objects several times since it was last read for that: what is believed of it may be wrong.
// The first few tries cost less than reading VPP does.
func (q *queue[K]) stubborn(keys []K) bool {
	for _, k := range keys {
		if f := q.failed[k]; f != nil && !f.again && f.tries%triesUntilRead == 0 {
			return true
		}
	}
	return false
}

// triesUntilRead is how often an object is tried before VPP is read for it, each time.
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
		if !f.until.After(now) && !q.dirty[k] {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, q.adapter.Compare)
	for _, k := range due {
		q.list(k)
	}
}

// conclude sorts what was in a batch: refused, in sync, or to be looked at again. Where VPP takes now what it refused before, others of the same refusal
// class need not wait any longer.
func (q *queue[K]) conclude(batch []K, refused map[K]error, now time.Time, backoff runtime.Backoff) {
	accepted := map[refusal]int{}
	for _, k := range batch {
		before := q.failed[k]
		switch err := refused[k]; {
		case err != nil:
			q.fail(k, err, now, backoff)
		case q.adapter.InSync(k):
			if before != nil {
				accepted[before.class]++
			}
			q.clean(k)
		default:
			q.list(k)
		}
	}
	for _, err := range refused {
		delete(accepted, refusalOf(err))
	}
	for _, c := range slices.SortedFunc(maps.Keys(accepted), refusal.compare) {
		q.release(c, 2*accepted[c])
	}
}

// reset forgets that an object was refused.
func (q *queue[K]) reset(k K) {
	if q.failed[k] != nil {
		delete(q.failed, k)
		q.first = nil
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

// firstFailure is the failure to report; it is the same one as long as nothing changes.
func (q *queue[K]) firstFailure() (k K, err error) {
	if len(q.failed) == 0 {
		return k, nil
	}
	if q.first == nil {
		k := slices.MinFunc(slices.Collect(maps.Keys(q.failed)), q.adapter.Compare)
		q.first = &k
	}
	return *q.first, q.failed[*q.first].err
}

// leave notes what of a service must leave VPP. What it or another service wants need not.
func (q *queue[K]) leave(service string, before []K) {
	if len(before) > 0 && q.leaving[service] == nil {
		q.leaving[service] = map[K]bool{}
	}
	for _, k := range before {
		q.leaving[service][k] = true
	}
	q.left(service)
}

// left forgets what has left VPP, and reports whether everything of the service has.
func (q *queue[K]) left(service string) bool {
	maps.DeleteFunc(q.leaving[service], func(k K, _ bool) bool { return !q.Dirty(k) || q.adapter.Wanted(k) })
	if len(q.leaving[service]) > 0 {
		return false
	}
	delete(q.leaving, service)
	return true
}

// acknowledge enters one object into the state of its service, which is in sync only when nothing is left to do.
func (q *queue[K]) acknowledge(ack *messages.RenderAck, k K, todo bool) {
	switch failed := q.failed[k]; {
	case failed != nil:
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, k.String()+": "+failed.err.Error()
	case todo && ack.GetState() == messages.RenderState_RENDER_IN_SYNC:
		ack.State = messages.RenderState_RENDER_PENDING
	}
}
