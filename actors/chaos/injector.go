package chaos

import (
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// errInjected is what actors panic with.
var errInjected = errors.New("injected: panic")

// injector is the fault injection into messages and incarnations. A rate of n means one in n, 0
// never.
type injector struct {
	rand *rand.Rand

	before, after, starting, stopping int // panics
	lost, twice, late                 int // messages between actors
	poisoned                          string
	kind                              string // of messages that all get lost
	// kinds of messages there have been; nil = they are not recorded
	heard  map[string]bool
	counts Counts
	// nil = the arrival of the last late message is not recorded
	now     func() time.Time
	arrival time.Time // of the last one
}

// Counts are the faults that struck, by name.
type Counts map[string]int

func (w *injector) calm() {
	w.before, w.after, w.starting, w.stopping, w.lost, w.twice, w.late, w.poisoned, w.kind = 0, 0, 0, 0, 0, 0, 0, "", ""
}

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
	if supervises(to.Kind()) {
		rate *= 20 // their children fail with them
	}
	if w.strikes(name, rate) {
		panic(errInjected)
	}
}

// network is the runtime's NetworkHook. What supervisors and their children tell each other does
// not leave the runtime.
func (w *injector) network(to *runtime.Mailbox, msg any) []time.Duration {
	usual := []time.Duration{0}
	kind := reflect.TypeOf(msg).String()
	if supervises(to.Kind()) || !strings.HasPrefix(kind, "*messages.") {
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

// delay notes when a message will arrive.
func (w *injector) delay(d time.Duration) time.Duration {
	if w.now != nil {
		if at := w.now().Add(d); at.After(w.arrival) {
			w.arrival = at
		}
	}
	return d
}

// kinds are the kinds of messages there have been, in alphabetical order.
func (w *injector) kinds() []string { return slices.Sorted(maps.Keys(w.heard)) }

// supervises reports whether a kind of actor is a supervisor.
func supervises(kind string) bool {
	return kind == "root" || kind == "dataplane" || kind == "world" || kind == "services" || kind == "upkeep"
}
