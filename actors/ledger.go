package actors

import (
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// ledger is what the nat44 renderer knows: which service wants which rows, who owns a contested one, and which rows must be looked at. It is
// a value of plain data with pure methods: it neither sends nor waits.
type ledger struct {
	backlog[nat44.Key]
	accounts map[string]*account
	claims   *nat44.Claims
	planned  nat44.Config
	guard    *guard // what is dropped in front of the rows
}

// account is one service.
type account struct {
	customer
	plan *nat44.ServicePlan
}

func newLedger(config nat44.Config) *ledger {
	claims := nat44.NewClaims()
	claimed := func(k nat44.Key) bool {
		_, found := claims.Owner(k)
		return found
	}
	return &ledger{
		backlog: newBacklog("rows", nat44.Key.Compare, claimed, claims.Services), accounts: map[string]*account{}, claims: claims, planned: config,
		guard: newGuard(),
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

// count is how many accounts there are.
func (l *ledger) count() int { return len(l.accounts) }

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
	return l.exchange(key, l.claims.Of(key), func() []nat44.Key {
		l.guard.put(key, a.view)
		changed := l.claim(key, a)
		for _, k := range changed {
			l.guard.touch(k) // whether a rule counts depends on who owns the row
		}
		return changed
	})
}

// claim claims the rows of a service and returns those that are changed by it.
func (l *ledger) claim(key string, a *account) []nat44.Key {
	if a.view == nil {
		a.plan = nil
		return l.claims.Remove(key)
	}
	config := l.planned
	config.Guarded = l.guard.guards(key)
	a.plan = nat44.Plan(a.view, config)
	return l.claims.Set(key, a.view.GetCreated(), a.plan.Rows)
}

// replan translates everything anew, because the settings changed.
func (l *ledger) replan(config nat44.Config) {
	l.planned = config
	for _, key := range sortedKeys(l.accounts) {
		l.plan(key, l.accounts[key])
	}
}

// arrange puts together what has to be dropped, if it changed, and returns the services whose standing that changes. What has lost its guard
// for want of room, or gained it, is planned anew. owner says whose rules count at a frontend.
func (l *ledger) arrange(owner func(nat44.Key) (string, bool)) []string {
	if !l.guard.stale {
		return nil
	}
	plans, moved := l.guard.seat()
	names := l.planAnew(moved)
	return append(names, l.guard.merge(plans, owner)...)
}

// unguarded notes whether VPP has no means to drop anything, and returns the services whose standing that changes.
func (l *ledger) unguarded(absent bool, owner func(nat44.Key) (string, bool)) []string {
	if l.guard.absent == absent {
		return nil
	}
	l.guard.absent, l.guard.stale = absent, true
	return append(l.planAnew(sortedKeys(l.guard.plans)), l.arrange(owner)...)
}

// planAnew translates some services once more.
func (l *ledger) planAnew(keys []string) []string {
	var names []string
	for _, key := range keys {
		if a := l.accounts[key]; a != nil {
			names = append(names, l.plan(key, a)...)
		}
	}
	return names
}

// touch has a row looked at, and forgets that it failed: it is another row now.
func (l *ledger) touch(k nat44.Key) {
	l.guard.touch(k)
	l.backlog.touch(k)
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
