package chaos

import (
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// errInjected is the panic value of injected failures.
var errInjected = errors.New("injected: panic")

// injector injects faults into messages and incarnations. A rate of n hits one in n, 0 none.
type injector struct {
	// Only faults and calm write these fields; the hooks read them.
	before, after, starting, stopping int    // rates of panics, by phase
	lost, twice, late                 int    // rates of messages between actors
	poisoned                          string // key of a service whose spec fails its actor
	kind                              string // type of the messages that are all lost; "" = none

	// groups are the groups of the present tree; only start sets them.
	groups map[string][]string

	// Only the hooks and count write these fields.
	rand    *rand.Rand
	heard   map[string]bool // types of the messages so far; nil = they are not recorded
	counts  Counts
	now     func() time.Time // nil = arrival is not recorded
	arrival time.Time        // of the last late message
}

// Counts are the faults that struck, with their effects, by name.
type Counts map[string]int

// calm ends all faults.
func (w *injector) calm() {
	w.before, w.after, w.starting, w.stopping, w.lost, w.twice, w.late, w.poisoned, w.kind = 0, 0, 0, 0, 0, 0, 0, "", ""
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
	if w.supervises(to.Path()) {
		rate *= 20 // rarer, because the children fail with their supervisor
	}
	if w.strikes(name, rate) {
		panic(errInjected)
	}
}

// network is the runtime's NetworkHook. It spares messages between supervisors and their children,
// which do not leave the runtime.
func (w *injector) network(to *runtime.Mailbox, msg any) []time.Duration {
	usual := []time.Duration{0}
	kind := reflect.TypeOf(msg).String()
	if w.supervises(to.Path()) || !strings.HasPrefix(kind, "*messages.") {
		return usual
	}
	if w.heard != nil {
		w.heard[kind] = true
	}
	switch {
	case kind == w.kind:
		w.count("message lost")
		return nil
	case w.strikes("message lost", w.lost):
		return nil
	case w.strikes("message twice", w.twice):
		return []time.Duration{0, w.delay(time.Duration(w.rand.IntN(1000)) * time.Millisecond)}
	case w.strikes("message late", w.late):
		return []time.Duration{w.delay(time.Duration(1+w.rand.IntN(3000)) * time.Millisecond)}
	}
	return usual
}

// delay notes the arrival of a late message.
func (w *injector) delay(d time.Duration) time.Duration {
	if w.now != nil {
		if at := w.now().Add(d); at.After(w.arrival) {
			w.arrival = at
		}
	}
	return d
}

// kinds are the types of the messages so far, ordered.
func (w *injector) kinds() []string { return slices.Sorted(maps.Keys(w.heard)) }

// supervises reports whether an actor is a supervisor. The supervisor of services is the only one
// without children in the tree.
func (w *injector) supervises(path string) bool {
	return w.groups[path] != nil || path == address.Services
}
