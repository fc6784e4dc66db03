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
	claims   *nat44.Claims
	dirty    map[nat44.Key]bool
	failed   map[nat44.Key]*failure
	planned  nat44.Config
}

// account is one service.
type account struct {
	generation, hash uint64
	view             *messages.ServiceView // nil: it is gone, and the account is closed when its rows are
	plan             *nat44.ServicePlan
	leaving          []nat44.Key         // of a service that is gone: rows that must leave VPP first
	acked            *messages.RenderAck // last one sent
}

// failure is a row that VPP refused.
type failure struct {
	err   error
	tries int
	until time.Time // not tried again before
}

func newLedger(config nat44.Config) *ledger {
	return &ledger{
		accounts: map[string]*account{}, claims: nat44.NewClaims(), dirty: map[nat44.Key]bool{}, failed: map[nat44.Key]*failure{},
		planned: config,
	}
}

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
	affected := map[string]bool{key: true}
	for _, k := range l.claims.Of(key) {
		l.affected(k, affected)
	}
	var changed []nat44.Key
	if a.view == nil {
		a.leaving, a.plan = append(a.leaving, l.claims.Of(key)...), nil
		changed = l.claims.Remove(key)
	} else {
		a.leaving = nil
		a.plan = nat44.Plan(a.view, l.planned)
		changed = l.claims.Set(key, a.view.GetCreated(), a.plan.Rows)
	}
	for _, k := range changed {
		l.touch(k)
		l.affected(k, affected)
	}
	return slices.Sorted(maps.Keys(affected))
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
	for _, key := range slices.Sorted(maps.Keys(l.accounts)) {
		l.plan(key, l.accounts[key])
	}
}

// touch has a row looked at, and forgets that it failed: it is another row now.
func (l *ledger) touch(k nat44.Key) {
	l.dirty[k] = true
	delete(l.failed, k)
}

// retired reports whether nothing of a service that is gone is left.
func (l *ledger) retired(a *account) bool {
	return !slices.ContainsFunc(a.leaving, func(k nat44.Key) bool { return l.dirty[k] })
}

// close forgets a service that is gone.
func (l *ledger) close(key string) { delete(l.accounts, key) }

// wanted is the row that VPP should hold under a key; nil = none.
func (l *ledger) wanted(k nat44.Key) *nat44.Row {
	if row, ok := l.claims.Row(k); ok {
		return &row
	}
	return nil
}

// batch picks rows to work on, in a fixed order, and leaves out those that failed a moment ago.
func (l *ledger) batch(now time.Time, most int) []nat44.Key {
	keys := make([]nat44.Key, 0, min(len(l.dirty), most))
	for k := range l.dirty {
		if f := l.failed[k]; f == nil || !f.until.After(now) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, nat44.Key.Compare)
	return keys[:min(len(keys), most)]
}

// fail notes that VPP refused a row; it is tried again after a growing delay.
func (l *ledger) fail(k nat44.Key, err error, now time.Time, backoff time.Duration) {
	const longest = 30 * time.Second
	f := l.failed[k]
	if f == nil {
		f = &failure{}
		l.failed[k] = f
	}
	delay := min(backoff<<min(f.tries, 10), longest)
	f.err, f.until = err, now.Add(delay)
	f.tries++
	l.dirty[k] = true
}

// clean notes that a row is as wanted.
func (l *ledger) clean(k nat44.Key) {
	delete(l.dirty, k)
	delete(l.failed, k)
}

// pending counts rows that are being worked on; refused ones are not among them.
func (l *ledger) pending() int { return len(l.dirty) - len(l.failed) }

// firstFailure is the failure to tell an operator about; it is the same one as long as nothing changes.
func (l *ledger) firstFailure() (nat44.Key, error) {
	keys := slices.SortedFunc(maps.Keys(l.failed), nat44.Key.Compare)
	if len(keys) == 0 {
		return nat44.Key{}, nil
	}
	return keys[0], l.failed[keys[0]].err
}

// missing are the services of an epoch that have not spoken.
func missing(awaited map[string]bool, most int) []string {
	keys := slices.Sorted(maps.Keys(awaited))
	return keys[:min(len(keys), most)]
}
