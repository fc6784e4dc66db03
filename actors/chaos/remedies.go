package chaos

import (
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Repairs that the troupe makes after it has found something wrong. They hide bugs, because the
// world is well in the end: the next drift check corrects a wrong belief, and the next roll call
// replaces a lost message. So each repair needs a fault that explains it. Stolen rows and settings
// explain a renderer that believed something else than VPP holds.
const (
	again  = "what VPP refused is tried again"
	doubt  = "VPP is read, because it has refused something"
	repeat = "a service is sent again what it has not acknowledged"
)

// explanations are the faults that can lead to a remedy; what is not in it is never needed.
func explanations() map[string][]string {
	// A VPP that was started again has other FIB sources than the one that was read, and nothing of
	// what an actor that does not know it yet may ask for. What is asked of an interface that has
	// just gone is refused as well, and so is a change of a row that was stolen or put there.
	refusal := []string{
		"VPP refuses", "VPP begins badly", "table full", "VPP crashes", "machine reboots", "overlay ended",
		"rows stolen", "rows put by another", "rows given back",
	}
	// An actor that fails loses the message that it was about to handle, and one that is held up
	// can not answer in time.
	loss := []string{
		"panics before messages", "panics after messages", "panics in starts", "panics in stops", "kill an actor", "kill most services",
		"stuck actor", "poisoned service", "messages lost", "one kind lost", "messages twice", "messages late", "services late",
	}
	return map[string][]string{
		again:  refusal,
		doubt:  refusal,
		repeat: loss,
	}
}

// remedies say when there is no need for any.
type remedies struct {
	failed map[string][]time.Time // when a service failed lately
	boots  map[string]string      // the VPP that an actor has been told of
	over   bool                   // all faults are over, and all is well again
}

// observer is the report.Observer of a simulation.
type observer struct{ *world }

var _ report.Observer = observer{}

// Synced satisfies report.Observer.
func (observer) Synced(string, time.Duration, bool) {}

// Programmed satisfies report.Observer.
func (observer) Programmed(report.Programming) {}

// Operations satisfies report.Observer.
func (o observer) Operations(_ string, _, failed, unknown int) {
	if failed > 0 {
		o.injector.count("operation refused")
	}
	if unknown > 0 {
		o.injector.count("operation unanswered")
	}
}

// Memory satisfies report.Observer.
func (observer) Memory(string, int, int, int) {}

// InputErrors satisfies report.Observer.
func (observer) InputErrors(int) {}

// Healed satisfies report.Observer.
func (o observer) Healed(part, step string, _ int) {
	switch step {
	case "key":
		o.remedy(again)
	case "object":
		o.remedy(doubt)
	default:
		o.remedy("step " + step + " of " + part)
	}
}

// Drifted satisfies report.Observer: nothing explains it but what was modified outside of the agent
// since the read before.
func (o observer) Drifted(renderer string, n int) {
	o.injector.count("drift found")
	explained := o.world.strayed[renderer]
	delete(o.world.strayed, renderer)
	if slices.Contains(o.world.deps.RoleGivers(), renderer) {
		// its roles: the next one may have its index and name
		explained += o.injector.counts["overlay ended"]
		if o.world.unseen() {
			explained += o.injector.counts["pod ended"]
		}
	}
	if renderer == nat44.Renderer {
		explained += o.injector.counts["overlay ended"] // its access lists
		for _, reads := range o.stolen {
			if reads == o.vpp.Reads-1 {
				explained++
			}
		}
	}
	if o.remedies.boots[address.Renderer(renderer)] != o.vpp.Boot() {
		return // it is another VPP, of which the renderer has not been told yet
	}
	if n > explained {
		o.breach("I15: %s believed something wrong of %d things in VPP; others have changed %d", renderer, n, explained)
	}
}

// A service that fails so often within such a time is in a crash loop, whatever it fails of, and is
// put into quarantine.
const (
	crashes     = 3
	crashWindow = 5 * time.Second
)

// failure is the runtime's OnFault.
func (w *world) failure(f *messages.Fault) {
	if !strings.HasPrefix(f.GetActor(), address.Services+"/") {
		return
	}
	now := w.sim.Now()
	lately := slices.DeleteFunc(w.remedies.failed[f.GetActor()], func(at time.Time) bool { return now.Sub(at) > crashWindow })
	if lately = append(lately, now); len(lately) >= crashes {
		w.injector.count("crash loop")
	}
	w.remedies.failed[f.GetActor()] = lately
}

// handled sees every message before it is handled; it is the runtime's FaultHook.
func (w *world) handled(to *runtime.Mailbox, msg any, phase runtime.Phase) {
	if w.order.sees(to.Path(), msg, phase) {
		w.breach("I13: %s begins before all its earlier siblings are ready", to.Path())
	}
	if phase == runtime.Before {
		switch m := msg.(type) {
		case *messages.Nudge:
			w.remedy(repeat)
		case *messages.LinkState:
			w.remedies.boots[to.Path()] = m.GetBoot()
			if to.Path() == address.Renderer(routes.Name) {
				// a renderer that has just begun does not know what CNAT hides, and finds it later
				w.strayed[routes.Name] += w.vpp.VPP.HiddenRoutes("troupe")
			}
		}
	}
	w.injector.fault(to, msg, phase)
}

// remedy judges something that the troupe has done (I15).
func (w *world) remedy(what string) {
	explained := slices.ContainsFunc(explanations()[what], func(fault string) bool { return w.injector.counts[fault] > 0 })
	switch {
	case !explained && !w.remedies.over:
		w.breach("I15: %s, which no fault explains", what)
	case w.remedies.over:
		w.breach("I15: %s, although all faults are over", what)
	}
}
