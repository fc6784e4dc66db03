package actors

import (
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// healthStale is how long a part may be silent before it counts as not ready; parts repeat their health every healthRepeat.
const healthStale = 5 * healthRepeat

// healer knows which parts of the agent do what they should and publishes readiness.
type healer struct {
	deps    *Deps
	parts   map[string]heard
	ready   bool
	since   time.Time
	unready string // why not ready
	logged  string // the reason that was logged last
	turned  map[string]turn
	ladder  *ladder
	started time.Time
	ticked  time.Time // the last look at everybody
}

// heard is the last word of a part.
type heard struct {
	*messages.Health
	at time.Time
}

// turn is when a part last became what it is.
type turn struct {
	ok bool
	at time.Time
}

// healthTick makes the healer look for parts that fell silent.
type healthTick struct{}

// expected are the parts without which the node is not ready.
func (d *Deps) expected() []string {
	parts := append([]string{"link", "interfaces", "watch", "registry"}, d.renderers()...)
	if d.NodeSync != nil {
		parts = append(parts, "nodes")
	}
	return parts
}

// advisory are the parts that only have something to say: without them the node is as ready as with them.
func (*Deps) advisory() []string { return []string{"sessions", "external"} }

// Start satisfies runtime.Behaviour.
func (h *healer) Start(c *runtime.Context) {
	h.parts, h.since, h.turned = map[string]heard{}, c.Now(), map[string]turn{}
	h.ladder, h.started, h.ticked = newLadder(h.deps.Timing.Patience), c.Now(), c.Now()
	h.publish(c)
	c.After(healthRepeat, &healthTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour: a node whose agent goes is not ready, whatever VPP still does.
func (h *healer) Stop(c *runtime.Context) {
	h.deps.Readiness.store(Report{Since: c.Now(), Parts: []Part{{Name: "agent", Reason: "healer is down", Since: c.Now()}}})
}

// Receive satisfies runtime.Behaviour.
func (h *healer) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Health:
		h.parts[m.GetPart()] = heard{m, c.Now()}
		h.publish(c)
	case *healed:
		h.ladder.count(m.part, m.rung, uint64(m.n))
		h.observe(m.part, m.rung, m.n)
	case *HealingQuery:
		c.Reply(h.page())
	case *healthTick:
		h.publish(c)
		h.awake(c.Now())
		h.heal(c)
		if !h.ready {
			h.log(c)
		}
		c.After(healthRepeat, &healthTick{})
	}
}

// awake notices that its own time was late: the machine slept, the process was stopped, or the healer was held up. Nobody is to be healed for not
// having got well in that time.
func (h *healer) awake(now time.Time) {
	if late := now.Sub(h.ticked) - healthRepeat; late > healthRepeat {
		h.ladder.slept(late)
	}
	h.ticked = now
}

// publish computes readiness from scratch.
func (h *healer) publish(c *runtime.Context) {
	report := Report{Ready: true}
	for _, name := range h.deps.expected() {
		part := Part{Name: name, Reason: "not heard of yet"}
		if said, ok := h.parts[name]; ok {
			part = Part{Name: name, OK: said.GetOk(), Reason: said.GetReason(), Epoch: said.GetEpoch()}
			if silent := c.Now().Sub(said.at); silent > healthStale {
				part.OK, part.Reason = false, "silent for "+silent.Round(time.Second).String()
			} else if part.OK && h.behind(said.Health) {
				part.OK, part.Reason = false, "interfaces are being programmed"
			} else if part.OK && h.outdated(said.Health) {
				part.OK = false
			}
		}
		if last, known := h.turned[name]; !known || last.ok != part.OK {
			h.turned[name] = turn{part.OK, c.Now()}
		}
		part.Since = h.turned[name].at
		report.Ready = report.Ready && part.OK
		report.Parts = append(report.Parts, part)
	}
	report.Parts = append(report.Parts, h.advice(c)...)
	slices.SortFunc(report.Parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	h.tell(c, report)
	report.Since = h.since
	h.deps.Readiness.store(report)
}

// advice is what advisory parts say, as far as they have been heard of; their silence is a warning as well.
func (h *healer) advice(c *runtime.Context) (parts []Part) {
	for _, name := range h.deps.advisory() {
		said, known := h.parts[name]
		if !known {
			continue
		}
		part := Part{Name: name, OK: true, Reason: said.GetReason()}
		if silent := c.Now().Sub(said.at); silent > healthStale {
			part.Reason = "silent for " + silent.Round(time.Second).String()
		}
		if _, turned := h.turned[name]; !turned {
			h.turned[name] = turn{true, c.Now()}
		}
		part.Since = h.turned[name].at
		parts = append(parts, part)
	}
	return parts
}

// log says why the node is not ready, or that it is. While parts come up the reason changes with each of them: it is logged when it has lasted.
func (h *healer) log(c *runtime.Context) {
	if h.logged != h.unready || h.ready {
		c.Logger().Info("readiness", "ready", h.ready, "reason", h.unready)
	}
	h.logged = h.unready
}

// behind reports whether a renderer has not carried out the interface set that the interfaces actor is sure of. That matters until the node
// is ready; later on interfaces come and go all the time.
func (h *healer) behind(renderer *messages.Health) bool {
	return !h.ready && renderer.GetEpoch() > 0 && renderer.GetInterfaces() < h.parts["interfaces"].GetInterfaces()
}

// outdated reports whether a part is well with what the local mirror says although the source has spoken meanwhile.
func (h *healer) outdated(part *messages.Health) bool {
	return part.GetReason() == causeMirror && h.parts["watch"].GetOk()
}

// tell logs and journals changes of readiness.
func (h *healer) tell(c *runtime.Context, report Report) {
	reasons := report.Reasons()
	if report.Ready == h.ready && reasons == h.unready {
		return
	}
	if report.Ready != h.ready {
		h.since = c.Now()
		text := "ready"
		if !report.Ready {
			text = "not ready"
		}
		record(c, &messages.Event{Kind: "readiness", Text: text, Error: reasons})
	}
	changed := report.Ready != h.ready
	h.ready, h.unready = report.Ready, reasons
	if changed {
		h.log(c)
	}
}

// Reasons joins what keeps the parts from being ready; "" when all are.
func (r Report) Reasons() string {
	var reasons []string
	for _, p := range r.Parts {
		if !p.OK {
			reasons = append(reasons, p.Name+": "+p.Reason)
		}
	}
	return strings.Join(reasons, "; ")
}
