package chaos

import (
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// remedies judge the repairs of the agent (I15). A repair hides a bug, because the world is well in
// the end: the next drift check corrects a wrong belief. So each repair needs a fault that explains
// it.
type remedies struct {
	failed map[string][]time.Time // recent failures of each service actor, by path
	boots  map[string]string      // the boot of VPP that each actor knows, by path
	over   bool                   // all faults have ended, and all is well again
}

// observer is the report.Observer of a simulation.
type observer struct {
	report.None
	*world
}

var _ report.Observer = observer{}

// Operations satisfies report.Observer.
func (o observer) Operations(_ string, _, failed, unknown int) {
	if failed > 0 {
		o.injector.count("operation refused")
	}
	if unknown > 0 {
		o.injector.count("operation unanswered")
	}
}

// Healed satisfies report.Observer. No fault of a simulation explains a step of the escalation.
func (o observer) Healed(part, step string, _ int) {
	switch step {
	case "key":
		o.remedy("an operation that VPP refused is retried", refuses)
	case "object":
		o.remedy("VPP is read because it refused an operation", refuses)
	default:
		o.remedy("step "+step+" of "+part, 0)
	}
}

// Drifted satisfies report.Observer. A drift check may find only changes that were made outside of
// the agent since the read before.
func (o observer) Drifted(renderer string, n int) {
	o.injector.count("drift found")
	explained := o.strayed[renderer]
	delete(o.strayed, renderer)
	if slices.Contains(o.deps.RoleGivers(), renderer) {
		// the next interface may have the index and the name of the replaced one, without
		// its roles
		explained += o.injector.counts["overlay ended"]
		if o.unseen() {
			explained += o.injector.counts["pod ended"]
		}
	}
	if renderer == nat44.Renderer {
		explained += o.injector.counts["overlay ended"] // access lists of the interface
		for _, reads := range o.stolen {
			if reads == o.vpp.Reads-1 {
				explained++
			}
		}
	}
	if o.remedies.boots[address.Renderer(renderer)] != o.vpp.Boot() {
		return // VPP has restarted, and the renderer does not know it yet
	}
	if n > explained {
		o.breach("I15: %s was wrong about %d objects in VPP; others have changed %d", renderer, n, explained)
	}
}

// failure is the runtime's OnFault. It counts crash loops: the supervisor quarantines a service
// actor that fails so often in such a time, whatever the reasons are.
func (w *world) failure(f *messages.Fault) {
	const crashes, window = 3, 5 * time.Second
	if address.Supervisor(f.GetActor()) != address.Services {
		return
	}
	now := w.sim.Now()
	recent := slices.DeleteFunc(w.remedies.failed[f.GetActor()], func(at time.Time) bool { return now.Sub(at) > window })
	if recent = append(recent, now); len(recent) >= crashes {
		w.injector.count("crash loop")
	}
	w.remedies.failed[f.GetActor()] = recent
}

// handled is the runtime's FaultHook: it sees every message before an actor handles it.
func (w *world) handled(to *runtime.Mailbox, msg any, phase runtime.Phase) {
	if w.order.sees(to.Path(), msg, phase) {
		w.breach("I13: %s begins before all its earlier siblings are ready", to.Path())
	}
	if phase == runtime.Before {
		switch m := msg.(type) {
		case *messages.LinkState:
			w.remedies.boots[to.Path()] = m.GetBoot()
			if to.Path() == address.Renderer(routes.Name) {
				// after its start the renderer cannot see routes that CNAT hides,
				// and finds them later
				w.strayed[routes.Name] += w.vpp.VPP.HiddenRoutes("troupe")
			}
		}
	}
	w.injector.fault(to, msg, phase)
}

// remedy judges a repair (I15): a fault with one of these traits must explain it, and after the
// last fault there must be none.
func (w *world) remedy(what string, causes traits) {
	switch {
	case w.remedies.over:
		w.breach("I15: %s, although all faults are over", what)
	case !w.injector.counts.any(causes):
		w.breach("I15: %s, which no fault explains", what)
	}
}
