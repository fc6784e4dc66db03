package chaos

import (
	"errors"
	"math/rand/v2"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// errInjected is the panic value of injected failures.
var errInjected = errors.New("injected: panic")

// injector fails actors at messages, and at the ends of incarnations. A rate of n hits one in n, 0
// none.
type injector struct {
	// Only faults and calm write these fields; the hooks read them.
	before, after, starting, stopping int    // rates of panics, by phase
	poisoned                          string // key of a service whose spec fails its actor

	// The victim, a path, fails once in the phase when, at its message number at.
	victim    string
	when      runtime.Phase
	at, heard int

	// groups are the groups of the present tree; only start sets them.
	groups map[string][]string

	// Only the hooks and count write these fields.
	rand   *rand.Rand
	counts Counts
}

// Counts are the faults that struck, with their effects, by name.
type Counts map[string]int

// calm ends all faults.
func (w *injector) calm() {
	w.before, w.after, w.starting, w.stopping, w.poisoned = 0, 0, 0, 0, ""
}

// strikes draws whether a fault strikes, and counts it.
func (w *injector) strikes(name string, rate int) bool {
	if rate == 0 || w.rand.IntN(rate) != 0 {
		return false
	}
	w.count(name)
	return true
}

func (w *injector) count(name string) {
	if w.counts == nil {
		w.counts = Counts{}
	}
	w.counts[name]++
}

// fault is the runtime's FaultHook.
func (w *injector) fault(to *runtime.Mailbox, msg any, phase runtime.Phase) {
	name, rate := "", 0
	switch phase {
	case runtime.Before:
		name, rate = "panic before a message", w.before
	case runtime.After:
		name, rate = "panic after a message", w.after
	case runtime.Starting:
		name, rate = "panic in the start", w.starting
	case runtime.Stopping:
		name, rate = "panic in the stop", w.stopping
	}
	spec, isSpec := msg.(*messages.ServiceSpec)
	if isSpec && phase == runtime.Before && spec.GetInput().GetKey() == w.poisoned {
		w.count("poisoned spec")
		panic(errInjected)
	}
	if to.Path() == w.victim && phase == w.when {
		if w.heard++; w.heard == w.at {
			w.count("kill an actor")
			panic(errInjected)
		}
	}
	if w.supervises(to.Path()) {
		rate *= 20 // rarer, because the children fail with their supervisor
	}
	if w.strikes(name, rate) {
		panic(errInjected)
	}
}

// supervises reports whether an actor is a supervisor. The supervisor of services is the only one
// without children in the tree.
func (w *injector) supervises(path string) bool {
	return w.groups[path] != nil || path == address.Services
}
