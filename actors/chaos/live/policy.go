package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Policy is the set of armed faults. Its methods Fault and Network are the hooks of the runtime.
// The zero value is an empty policy.
type Policy struct {
	limiter limiter
	usual   [1]time.Duration // delivery of a message that no fault hits: now, once; never modified

	mu    sync.Mutex // serialises changes of armed
	armed atomic.Pointer[map[string][]*armed]
}

// armed is one fault that waits for its actor.
type armed struct {
	Fault
	def    *Definition
	id     uint64
	path   string // of the actor; "" = of none
	struck atomic.Uint64
	left   atomic.Int64 // failures until Times is reached

	mu   sync.Mutex
	rand *rand.Rand // guarded by mu: hooks run in many goroutines
}

var (
	_ runtime.FaultHook   = (*Policy)(nil).Fault
	_ runtime.NetworkHook = (*Policy)(nil).Network
)

// newArmed prepares a fault with all its defaults.
func newArmed(id uint64, f Fault, path string, seed uint64) *armed {
	a := &armed{Fault: f, def: Lookup(f.Kind), id: id, path: path, rand: rand.New(rand.NewPCG(seed, id))}
	a.left.Store(int64(f.Times))
	return a
}

// arm adds a fault.
func (p *Policy) arm(a *armed) {
	p.change(func(m map[string][]*armed) { m[a.path] = append(slices.Clone(m[a.path]), a) })
}

// disarm removes a fault. It does not strike any more, except in a hook that is running already.
func (p *Policy) disarm(a *armed) {
	p.change(func(m map[string][]*armed) {
		rest := slices.DeleteFunc(slices.Clone(m[a.path]), func(one *armed) bool { return one == a })
		if m[a.path] = rest; len(rest) == 0 {
			delete(m, a.path)
		}
	})
}

// clear removes all faults at once.
func (p *Policy) clear() { p.change(func(m map[string][]*armed) { clear(m) }) }

// change replaces the map instead of modifying it, because hooks read it without a lock.
func (p *Policy) change(modify func(map[string][]*armed)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[string][]*armed{}
	if now := p.armed.Load(); now != nil {
		next = maps.Clone(*now)
	}
	modify(next)
	if len(next) == 0 {
		p.armed.Store(nil)
		return
	}
	p.armed.Store(&next)
}

// at returns the faults that are armed against an actor.
func (p *Policy) at(m *runtime.Mailbox) []*armed {
	now := p.armed.Load()
	if now == nil {
		return nil
	}
	return (*now)[m.Path()]
}

// Fault satisfies runtime.FaultHook.
func (p *Policy) Fault(m *runtime.Mailbox, msg any, phase runtime.Phase) {
	for _, a := range p.at(m) {
		if a.def.fails == nil || !a.def.fails(a, msg, phase) || !a.due() {
			continue
		}
		if !p.limiter.allow(m.Path(), time.Now()) {
			a.left.Add(1)
			continue // one more failure could make the supervisor escalate
		}
		a.struck.Add(1)
		panic(fmt.Errorf("%w: #%d %s %s", errInjected, a.id, a.Kind, phaseName(phase)))
	}
}

// hits reports whether the fault concerns messages of this type.
func (a *armed) hits(msg any) bool { return a.Message == "" || typeName(msg) == a.Message }

// due reports whether the fault strikes this time, and counts it. A fault without Times strikes
// without limit.
func (a *armed) due() bool {
	if !a.rolls() {
		return false
	}
	if a.Times == 0 || a.left.Add(-1) >= 0 {
		return true
	}
	a.left.Add(1)
	return false
}

// rolls draws whether a message belongs to the share that suffers.
func (a *armed) rolls() bool {
	if a.Rate == 0 || a.Rate >= 1 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rand.Float64() < a.Rate
}

// Network satisfies runtime.NetworkHook. It touches messages between actors only: requests of the
// API pass, and supervisors are exempt.
func (p *Policy) Network(to *runtime.Mailbox, msg any) []time.Duration {
	var sum time.Duration
	for _, a := range p.at(to) {
		if a.def.transmits == nil || !between(msg) || !a.hits(msg) || !a.rolls() {
			continue
		}
		a.struck.Add(1)
		late, lost := a.def.transmits(a)
		if lost {
			return nil
		}
		sum += late
	}
	if sum == 0 {
		return p.usual[:]
	}
	return []time.Duration{sum}
}

// between reports whether a message is one that actors send each other.
func between(msg any) bool {
	t := reflect.TypeOf(msg)
	return t != nil && strings.HasPrefix(t.String(), "*messages.")
}

// typeName is the type of a message without its package, as introspection shows it.
func typeName(msg any) string {
	t := reflect.TypeOf(msg)
	if t == nil {
		return ""
	}
	name := t.String()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// phaseName is the phase of the runtime in plans and requests.
func phaseName(p runtime.Phase) string {
	return [...]string{runtime.Before: PhaseBefore, runtime.After: PhaseAfter, runtime.Starting: PhaseStart, runtime.Stopping: PhaseStop}[p]
}
