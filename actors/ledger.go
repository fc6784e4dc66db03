package actors

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// ledger is what a renderer knows: which service wants which rows, who owns a contested one, and which rows must be looked at. It is a
// value of plain data with pure methods: it neither sends nor waits.
type ledger struct {
	accounts map[string]*account
	leaving  map[string]bool // accounts with rows that nobody wants any more
	claims   *nat44.Claims
	dirty    map[nat44.Key]bool // rows that may not be as wanted; true = it stands in the queue
	queue    []nat44.Key        // rows to be looked at next; those that became clean meanwhile are still in it
	failed   map[nat44.Key]*failure
	first    *nat44.Key // smallest key of failed; nil = to be looked for
	planned  nat44.Config
}

// account is one service.
type account struct {
	customer
	plan    *nat44.ServicePlan
	leaving map[nat44.Key]bool // rows that it wanted and that may still be in VPP
}

// failure is a row that VPP refused.
type failure struct {
	err   error
	tries int
	until time.Time // not tried again before
}

func newLedger(config nat44.Config) *ledger {
	return &ledger{
		accounts: map[string]*account{}, leaving: map[string]bool{}, claims: nat44.NewClaims(), dirty: map[nat44.Key]bool{},
		failed: map[nat44.Key]*failure{}, planned: config,
	}
}

// customer is a service that has an account; nil = it has none.
func (l *ledger) customer(key string) *customer {
	if a := l.accounts[key]; a != nil {
		return &a.customer
	}
	return nil
}

// customers are the keys of all accounts, ordered.
func (l *ledger) customers() []string { return sortedKeys(l.accounts) }

// put adopts the view of a service; nil closes it. It returns the services whose standing it changed: the service itself and those who
// gained or lost a contested row.
func (l *ledger) put(key string, generation, hash uint64, view *messages.ServiceView) []string {
	a := l.accounts[key]
	if a == nil {
		a = &account{}
		l.accounts[key] = a
	}
	a.generation, a.hash, a.view = generation, hash, view
	return l.plan(key, a)
}

// plan translates one view into rows and claims them.
func (l *ledger) plan(key string, a *account) []string {
	others := map[string]bool{key: true}
	before := l.claims.Of(key)
	for _, k := range before {
		l.affected(k, others)
	}
	var changed []nat44.Key
	if a.view == nil {
		a.plan = nil
		changed = l.claims.Remove(key)
	} else {
		a.plan = nat44.Plan(a.view, l.planned)
		changed = l.claims.Set(key, a.view.GetCreated(), a.plan.Rows)
	}
	for _, k := range changed {
		l.touch(k)
		l.affected(k, others)
	}
	l.leave(key, a, before)
	return sortedKeys(others)
}

// leave notes which rows of a service must leave VPP. Those that it or somebody else wants now need not.
func (l *ledger) leave(key string, a *account, before []nat44.Key) {
	for _, k := range before {
		if a.leaving == nil {
			a.leaving = map[nat44.Key]bool{}
		}
		a.leaving[k] = true
	}
	l.left(key, a)
}

// left forgets the rows of a service that have left VPP, and reports whether all have.
func (l *ledger) left(key string, a *account) bool {
	maps.DeleteFunc(a.leaving, func(k nat44.Key, _ bool) bool {
		_, dirty := l.dirty[k]
		_, claimed := l.claims.Owner(k)
		return claimed || !dirty
	})
	if len(a.leaving) == 0 {
		a.leaving = nil
		delete(l.leaving, key)
		return true
	}
	l.leaving[key] = true
	return false
}

// affected adds the services that have a claim on a row.
func (l *ledger) affected(k nat44.Key, services map[string]bool) {
	for _, name := range l.claims.Services(k) {
		services[name] = true
	}
}

// replan translates everything anew, because the settings changed.
func (l *ledger) replan(config nat44.Config) {
	l.planned = config
	for _, key := range sortedKeys(l.accounts) {
		l.plan(key, l.accounts[key])
	}
}

// touch has a row looked at, and forgets that it failed: it is another row now.
func (l *ledger) touch(k nat44.Key) {
	l.forgive(k)
	l.list(k)
}

// list puts a row into the queue.
func (l *ledger) list(k nat44.Key) {
	if !l.dirty[k] {
		l.dirty[k] = true
		l.queue = append(l.queue, k)
	}
}

// unlist forgets which rows must be looked at, because all of them have been.
func (l *ledger) unlist() {
	l.dirty, l.queue = map[nat44.Key]bool{}, nil
}

// close forgets a service that is gone.
func (l *ledger) close(key string) {
	delete(l.accounts, key)
	delete(l.leaving, key)
}

// wanted is the row that VPP should hold under a key; nil = none.
func (l *ledger) wanted(k nat44.Key) *nat44.Row {
	if row, ok := l.claims.Row(k); ok {
		return &row
	}
	return nil
}

// batch takes rows out of the queue, in the order in which they came. The caller calls clean, list or fail for each, or leaves it dirty.
func (l *ledger) batch(most int) []nat44.Key {
	keys := make([]nat44.Key, 0, min(len(l.queue), most))
	taken := 0
	for _, k := range l.queue {
		if len(keys) == most {
			break
		}
		taken++
		if l.dirty[k] {
			l.dirty[k] = false
			keys = append(keys, k)
		}
	}
	if l.queue = l.queue[taken:]; len(l.queue) == 0 {
		l.queue = nil // not to keep the array of a burst
	}
	return keys
}

// fail notes that VPP refused a row; it is tried again after a growing delay.
func (l *ledger) fail(k nat44.Key, err error, now time.Time, backoff time.Duration) {
	const longest = 30 * time.Second
	f := l.failed[k]
	if f == nil {
		f = &failure{}
		l.failed[k] = f
		l.first = nil
	}
	delay := min(backoff<<min(f.tries, 10), longest)
	f.err, f.until = err, now.Add(delay)
	f.tries++
	l.dirty[k] = false
}

// retry puts the refused rows whose delay is over into the queue.
func (l *ledger) retry(now time.Time) {
	var due []nat44.Key
	for k, f := range l.failed {
		if !f.until.After(now) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, nat44.Key.Compare)
	for _, k := range due {
		l.list(k)
	}
}

// forgive forgets that a row was refused.
func (l *ledger) forgive(k nat44.Key) {
	if l.failed[k] != nil {
		delete(l.failed, k)
		l.first = nil
	}
}

// clean notes that a row is as wanted.
func (l *ledger) clean(k nat44.Key) {
	delete(l.dirty, k)
	l.forgive(k)
}

// pending counts rows that are being worked on; refused ones are not among them.
func (l *ledger) pending() int { return len(l.dirty) - len(l.failed) }

// firstFailure is the failure to tell an operator about; it is the same one as long as nothing changes.
func (l *ledger) firstFailure() (nat44.Key, error) {
	if len(l.failed) == 0 {
		return nat44.Key{}, nil
	}
	if l.first == nil {
		k := slices.MinFunc(slices.Collect(maps.Keys(l.failed)), nat44.Key.Compare)
		l.first = &k
	}
	return *l.first, l.failed[*l.first].err
}
