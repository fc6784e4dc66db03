package actors

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// thing is what a renderer keeps in VPP, by its name: the key of a row, the prefix of a route.
type thing interface {
	comparable
	fmt.Stringer
}

// backlog is what a renderer has to look at: the things that may not be as wanted, those that VPP refused, and those that services left
// behind. It is plain data: it neither sends nor waits.
type backlog[K thing] struct {
	noun    string // what the things are, for people
	order   func(a, b K) int
	claimed func(K) bool          // somebody wants it to be in VPP
	users   func(K) []string      // services with a claim on it, ordered
	dirty   map[K]bool            // may not be as wanted; true = it stands in the queue
	queue   []K                   // to be looked at next; those that became clean meanwhile are still in it
	failed  map[K]*failure        // refused by VPP
	first   *K                    // smallest key of failed; nil = to be looked for
	probed  map[manner]K          // the last one that was tried before its time, for those that were refused in the same way
	leaving map[string]map[K]bool // by service: what it wanted, nobody wants any more, and may still be in VPP
}

// failure is a thing that VPP refused.
type failure struct {
	err   error
	way   manner
	tries int
	until time.Time // not tried again before, unless as a probe
	probe bool      // it is being tried before its time
	vain  bool      // the last try was a probe
}

func newBacklog[K thing](noun string, order func(a, b K) int, claimed func(K) bool, users func(K) []string) backlog[K] {
	return backlog[K]{
		noun: noun, order: order, claimed: claimed, users: users, dirty: map[K]bool{}, failed: map[K]*failure{},
		probed: map[manner]K{}, leaving: map[string]map[K]bool{},
	}
}

// exchange changes what a service claims, and has everything looked at of which something else is wanted now. It returns the services
// whose standing that changes: the service itself and those with a claim on the same things.
func (b *backlog[K]) exchange(service string, before []K, change func() (changed []K)) []string {
	others := map[string]bool{service: true}
	for _, k := range before {
		b.affected(k, others)
	}
	for _, k := range change() {
		b.touch(k)
		b.affected(k, others)
	}
	b.leave(service, before)
	return sortedKeys(others)
}

// affected adds the services that have a claim on something.
func (b *backlog[K]) affected(k K, services map[string]bool) {
	for _, name := range b.users(k) {
		services[name] = true
	}
}

// concerned lists the services with a claim on one of the things, and those that are leaving.
func (b *backlog[K]) concerned(things []K) []string {
	if len(things)+len(b.leaving) == 0 {
		return nil
	}
	services := map[string]bool{}
	for _, k := range things {
		b.affected(k, services)
	}
	for name := range b.leaving {
		services[name] = true
	}
	return sortedKeys(services)
}

// touch has something looked at, and forgets that it failed: something else is wanted now.
func (b *backlog[K]) touch(k K) {
	b.forgive(k)
	b.list(k)
}

// list puts something into the queue.
func (b *backlog[K]) list(k K) {
	if !b.dirty[k] {
		b.dirty[k] = true
		b.queue = append(b.queue, k)
	}
}

// relist replaces the whole list, because everything has been looked at. Of what was refused, that which differs waits until its time
// comes, unless it has, and the rest, which is returned, is as wanted nevertheless.
func (b *backlog[K]) relist(differing []K) (settled []K) {
	before := b.dirty
	b.dirty, b.queue = map[K]bool{}, nil
	slices.SortFunc(differing, b.order)
	for _, k := range differing {
		if f := b.failed[k]; f != nil && !before[k] {
			b.dirty[k], f.probe = false, false
			continue
		}
		b.list(k)
	}
	for k := range b.failed {
		if _, dirty := b.dirty[k]; !dirty {
			b.forgive(k)
			settled = append(settled, k)
		}
	}
	return settled
}

// batch takes things out of the queue, in the order in which they came. The caller calls clean, list or fail for each, or leaves it dirty.
func (b *backlog[K]) batch(most int) []K {
	keys := make([]K, 0, min(len(b.queue), most))
	taken := 0
	for _, k := range b.queue {
		if len(keys) == most {
			break
		}
		taken++
		if b.dirty[k] {
			b.dirty[k] = false
			keys = append(keys, k)
		}
	}
	if b.queue = b.queue[taken:]; len(b.queue) == 0 {
		b.queue = nil // not to keep the array of a burst
	}
	return keys
}

// unfinished lists, ordered, what is dirty and was not refused.
func (b *backlog[K]) unfinished() []K {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(b.dirty)), func(k K) bool { return b.failed[k] != nil })
	slices.SortFunc(keys, b.order)
	return keys
}

// fail notes that VPP refused something; it is tried again after a growing delay, which a probe that ends as was to be feared does not change.
func (b *backlog[K]) fail(k K, err error, now time.Time, backoff time.Duration) {
	f := b.failed[k]
	if f == nil {
		f = &failure{}
		b.failed[k] = f
		b.first = nil
	}
	b.dirty[k] = false
	if f.vain, f.probe = f.probe && f.way == mannerOf(err), false; f.vain {
		f.err = err
		return
	}
	delay := delayAfter(f.tries, backoff)
	if class, _ := classify(err); class == classAbort {
		delay = longestDelay // the same again ends the same way, unless something changes of which nobody has told us
	}
	f.err, f.way, f.until = err, mannerOf(err), now.Add(spread(delay, k.String(), f.tries))
	f.tries++
}

// delayAfter is how long VPP is left alone after it has refused something again and again.
func delayAfter(tries int, backoff time.Duration) time.Duration {
	return min(backoff<<min(tries, 10), longestDelay)
}

// longestDelay is how long at most something that was refused waits for its next try.
const longestDelay = 30 * time.Second

// spread makes a delay up to a fifth longer or shorter. Where in between depends on what is delayed and on how often it was, so that things
// that failed together do not come back together, and a simulation stays repeatable.
func spread(delay time.Duration, name string, tries int) time.Duration {
	most := delay / 5
	if most <= 0 {
		return delay
	}
	return delay - most + time.Duration(kube.DigestHash(name, uint64(tries))%uint64(2*most))
}

// stubborn reports whether VPP has refused one of the things again and again since that was last asked for a reading: what is known of it may
// be wrong. The first few tries cost less than reading VPP does.
func (b *backlog[K]) stubborn(things []K) bool {
	for _, k := range things {
		if f := b.failed[k]; f != nil && !f.vain && f.tries%triesUntilRead == 0 {
			return true
		}
	}
	return false
}

// triesUntilRead is how often something is tried before VPP is read for it, each time.
const triesUntilRead = 3

// refusedBefore counts what of a batch was refused and is being tried again. Only what is sent counts: what is under way may have been listed
// once more meanwhile, and is not tried for that.
func (b *backlog[K]) refusedBefore(batch []K) (n int) {
	for _, k := range batch {
		if b.failed[k] != nil {
			n++
		}
	}
	return n
}

// retry puts what was refused and whose delay is over into the queue.
func (b *backlog[K]) retry(now time.Time) {
	var due []K
	for k, f := range b.failed {
		if !f.until.After(now) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, b.order)
	for _, k := range due {
		if !b.dirty[k] { // otherwise it is on its way already
			b.list(k)
		}
	}
}

// book sorts what has been in a batch: refused, as wanted, or to be looked at again. Where VPP takes now what it refused before, others that it
// refused in the same way need not wait any longer.
func (b *backlog[K]) book(batch []K, refused map[K]error, asWanted func(K) bool, now time.Time, backoff time.Duration) {
	taken := map[manner]int{}
	for _, k := range batch {
		before := b.failed[k]
		switch err := refused[k]; {
		case err != nil:
			b.fail(k, err, now, backoff)
		case asWanted(k):
			if before != nil {
				taken[before.way]++
			}
			b.clean(k)
		default:
			b.list(k)
		}
	}
	for _, err := range refused {
		delete(taken, mannerOf(err))
	}
	for _, way := range slices.SortedFunc(maps.Keys(taken), manner.compare) {
		b.release(way, 2*taken[way])
	}
}

// forgive forgets that something was refused.
func (b *backlog[K]) forgive(k K) {
	if b.failed[k] != nil {
		delete(b.failed, k)
		b.first = nil
	}
}

// forgiveAll forgets everything that was refused: it is another VPP.
func (b *backlog[K]) forgiveAll() {
	for k := range b.failed {
		b.forgive(k)
	}
}

// clean notes that something is as wanted.
func (b *backlog[K]) clean(k K) {
	delete(b.dirty, k)
	b.forgive(k)
}

// pending counts what is being worked on; what was refused is not among it.
func (b *backlog[K]) pending() int { return len(b.dirty) - len(b.failed) }

// firstFailure is the failure to tell an operator about; it is the same one as long as nothing changes.
func (b *backlog[K]) firstFailure() (k K, err error) {
	if len(b.failed) == 0 {
		return k, nil
	}
	if b.first == nil {
		k := slices.MinFunc(slices.Collect(maps.Keys(b.failed)), b.order)
		b.first = &k
	}
	return *b.first, b.failed[*b.first].err
}

// leave notes what of a service must leave VPP. What it or somebody else wants need not.
func (b *backlog[K]) leave(service string, before []K) {
	if len(before) > 0 && b.leaving[service] == nil {
		b.leaving[service] = map[K]bool{}
	}
	for _, k := range before {
		b.leaving[service][k] = true
	}
	b.left(service)
}

// left forgets what has left VPP, and reports whether everything of the service has.
func (b *backlog[K]) left(service string) bool {
	maps.DeleteFunc(b.leaving[service], func(k K, _ bool) bool {
		_, dirty := b.dirty[k]
		return !dirty || b.claimed(k)
	})
	if len(b.leaving[service]) > 0 {
		return false
	}
	delete(b.leaving, service)
	return true
}

// ackLeaving accounts for what must leave VPP: as long as some of it is there, the service is served as it was before.
func (b *backlog[K]) ackLeaving(ack *messages.RenderAck, service string) {
	for _, k := range slices.SortedFunc(maps.Keys(b.leaving[service]), b.order) {
		b.ackThing(ack, k, true)
	}
}

// ackThing accounts for one thing in the state of its service, which is in sync only when none is left to do.
func (b *backlog[K]) ackThing(ack *messages.RenderAck, k K, todo bool) {
	switch failed := b.failed[k]; {
	case failed != nil:
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, k.String()+": "+failed.err.Error()
	case todo && ack.GetState() == messages.RenderState_RENDER_IN_SYNC:
		ack.State = messages.RenderState_RENDER_PENDING
	}
}
