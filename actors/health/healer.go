package health

import (
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Config is the configuration of the healer. It is read-only.
type Config struct {
	// Expected are the parts without which the node is not ready. Advisory are parts that only
	// add a warning.
	Expected, Advisory []string
	// Forwarding are the parts that put rows into VPP. Followers are the paths of actors that are
	// told whether they are well, with a change and when they ask.
	Forwarding, Followers []string
	// Patience is how long a part may be wrong before the next step of the escalation.
	Patience time.Duration
	// Readiness is where the healer publishes; never nil.
	Readiness *Readiness
	// Observer counts.
	Observer report.Observer
	// Fatal ends the process when no step has helped; nil = the process goes on. It must not
	// block.
	Fatal func(error)
}

// healer collects the health of all parts, publishes readiness and treats parts that are not well.
type healer struct {
	config     *Config
	parts      map[string]received
	ready      bool
	since      time.Time
	unready    string // why not ready
	logged     string // the reason that was logged last
	served     bool   // ready at least once
	changes    map[string]change
	escalation *escalation
	started    time.Time
	ticked     time.Time // the last look at all parts
	forwarding report.Forwarding
}

// received is the last report of a part.
type received struct {
	*messages.Health
	at time.Time
}

// change is when a part last became ready or not ready.
type change struct {
	ok bool
	at time.Time
}

// healthTick is the timer message for the check of all parts.
type healthTick struct{}

// New returns the actor.
func New(config *Config) runtime.Behaviour { return &healer{config: config} }

func (h *healer) Start(c *runtime.Context) {
	// Readiness begins anew: each part repeats its health within a heartbeat.
	h.parts, h.since, h.changes = map[string]received{}, c.Now(), map[string]change{}
	h.escalation, h.started, h.ticked = newEscalation(h.config.Patience), c.Now(), c.Now()
	h.publish(c)
	for _, name := range h.config.Expected {
		if c.Incarnation() > 1 {
			c.Send(c.PID(address.Part(name)), &report.Ask{})
		}
	}
	c.After(report.Heartbeat, &healthTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour: a node whose agent stops is not ready, whatever VPP still does.
func (h *healer) Stop(c *runtime.Context) {
	h.config.Readiness.store(Report{Since: c.Now(), Parts: []Part{{Name: "agent", Reason: "healer is down", Since: c.Now()}}})
}

func (h *healer) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Health:
		h.parts[m.GetPart()] = received{m, c.Now()}
		h.publish(c)
	case *report.Healed:
		h.escalation.count(m.Part, m.Step, uint64(m.N))
		h.config.Observer.Healed(m.Part, m.Step.String(), m.N)
	case *messages.Resync:
		h.tellFollowers(c)
	case *report.Emptied:
		h.forwarding = report.Forwarding{}
		h.publish(c)
	case *Query:
		c.Reply(h.page())
	case *healthTick:
		h.publish(c) // a silent part sends no message
		// a late timer: the machine slept, the process was stopped, or the healer was delayed;
		// parts cannot recover in such a time
		if late := c.Now().Sub(h.ticked) - report.Heartbeat; late > report.Heartbeat {
			h.escalation.slept(late)
		}
		h.ticked = c.Now()
		h.heal(c)
		if !h.ready {
			h.log(c)
		}
		c.After(report.Heartbeat, &healthTick{})
	}
}

// publish computes readiness from scratch.
func (h *healer) publish(c *runtime.Context) {
	all := Report{Ready: true}
	for _, name := range h.config.Expected {
		part := h.judge(c, name)
		if last, known := h.changes[name]; !known || last.ok != part.OK {
			h.changes[name] = change{part.OK, c.Now()}
		}
		part.Since = h.changes[name].at
		all.Ready = all.Ready && part.OK
		all.Parts = append(all.Parts, part)
	}
	all.Parts = append(all.Parts, h.advice(c)...)
	slices.SortFunc(all.Parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	h.record(c, all)
	all.Since = h.since
	h.config.Readiness.store(all)
	if now := h.forwards(c, all); now != h.forwarding {
		h.forwarding = now
		h.tellFollowers(c)
	}
}

// forwards judges whether this node may attract packets. A part that is restarted, or reads VPP
// again, is not well for a moment, in which VPP goes on. Before that, all rows must be in VPP; an
// object that VPP refuses keeps the others from nothing for longer than a while.
func (h *healer) forwards(c *runtime.Context, all Report) report.Forwarding {
	const moment, while = 5 * time.Second, 30 * time.Second
	now := report.Forwarding{OK: true, Before: h.forwarding.Before}
	for _, part := range all.Parts {
		if part.OK || !slices.Contains(h.config.Forwarding, part.Name) {
			continue
		}
		switch lasted := c.Now().Sub(part.Since); {
		case h.forwarding.OK:
			now.OK = now.OK && (part.Partial || lasted < moment)
		default:
			now.OK = now.OK && part.Partial && lasted >= while
		}
	}
	now.Before = now.Before || now.OK
	return now
}

// tellFollowers tells the followers whether this node may attract packets.
func (h *healer) tellFollowers(c *runtime.Context) {
	for _, path := range h.config.Followers {
		told := h.forwarding
		c.Send(c.PID(path), &told)
	}
}

// judge derives the state of a part from its last report.
func (h *healer) judge(c *runtime.Context, name string) Part {
	last, known := h.parts[name]
	if !known {
		return Part{Name: name, Reason: "no report yet"}
	}
	part := Part{Name: name, OK: last.GetOk(), Reason: last.GetReason(), Epoch: last.GetEpoch(), Partial: last.GetPartial(), Lost: last.GetLost()}
	if at := last.GetWaiting(); at != 0 {
		part.Waiting = time.Unix(0, at)
	}
	if at := last.GetAsOf(); at != 0 {
		part.AsOf = time.Unix(0, at)
	}
	if silent := c.Now().Sub(last.at); silent > report.SilentAfter {
		part.OK, part.Partial, part.Lost, part.Reason = false, false, false, "silent for "+silent.Round(time.Second).String()
	} else if part.OK && !h.ready && last.GetEpoch() > 0 && last.GetInterfaces() < h.parts["interfaces"].GetInterfaces() {
		// it has not carried out the last interface set; later on interfaces come and go all the
		// time
		part.OK, part.Reason = false, "interfaces are being programmed"
	} else if part.OK && last.GetReason() == report.FromMirror && h.parts["watch"].GetOk() {
		// it still works with the local mirror although the source has delivered
		part.OK = false
	}
	return part
}

// advice returns the state of the advisory parts that have reported. Their silence is a warning.
func (h *healer) advice(c *runtime.Context) (parts []Part) {
	for _, name := range h.config.Advisory {
		last, known := h.parts[name]
		if !known {
			continue
		}
		part := Part{Name: name, OK: true, Reason: last.GetReason()}
		if silent := c.Now().Sub(last.at); silent > report.SilentAfter {
			part.Reason = "silent for " + silent.Round(time.Second).String()
		}
		if _, seen := h.changes[name]; !seen {
			h.changes[name] = change{true, c.Now()}
		}
		part.Since = h.changes[name].at
		parts = append(parts, part)
	}
	return parts
}

// log logs readiness and its reason. While parts come up the reason changes with each of them, so
// it is logged when it has lasted.
func (h *healer) log(c *runtime.Context) {
	if h.logged != h.unready || h.ready {
		say := c.Logger().Info
		if h.served = h.served || h.ready; h.served && !h.ready {
			say = c.Logger().Warn
		}
		say("readiness changed", "ready", h.ready, "reason", h.unready)
	}
	h.logged = h.unready
}

// record logs changes of readiness and writes them into the journal.
func (h *healer) record(c *runtime.Context, all Report) {
	reasons := all.Reasons()
	if all.Ready == h.ready && reasons == h.unready {
		return
	}
	changed := all.Ready != h.ready
	if changed {
		h.since = c.Now()
		text := "ready"
		if !all.Ready {
			text = "not ready"
		}
		report.Event(c, &messages.Event{Kind: "readiness", Text: text, Error: reasons})
	}
	h.ready, h.unready = all.Ready, reasons
	if changed {
		h.log(c)
	}
}

func (h *healer) Inspect() any {
	parts := map[string]string{}
	for name, p := range h.parts {
		parts[name] = "ok"
		if !p.GetOk() {
			parts[name] = p.GetReason()
		}
	}
	return map[string]any{"ready": h.ready, "since": h.since, "unready": h.unready, "parts": parts}
}
