package health

import (
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Query asks the healer for its past and next steps. The answer is a Page.
type Query struct{}

// Page answers a Query.
type Page struct {
	// Counts says how often each step was taken since the healer started, by part and step.
	Counts map[string]map[string]uint64
	// Cases are the parts that are not well for a reason that the healer can treat, ordered by
	// part.
	Cases []Case
}

// Case is a part that is not well.
type Case struct {
	// Part is the name of the part, Reason what is wrong with it.
	Part, Reason string
	// Since is when the case began; Until is when the next step may be taken.
	Since, Until time.Time
	// Step is the last step taken; "none" = none yet.
	Step string
}

// reasonSilent is the reason of a part without a heartbeat: its actor hangs, or is gone.
const reasonSilent = "silent"

// heal checks every part and takes the steps that the escalation decides.
func (h *healer) heal(c *runtime.Context) {
	for _, part := range h.config.Expected {
		reason, lowest := h.complaint(c, part)
		if reason == "" && !h.parts[part].GetOk() {
			h.escalation.waits(part, c.Now())
			continue
		}
		if reason == "" {
			if helped := h.escalation.recovered(part); helped != report.NoStep {
				report.Event(c, &messages.Event{Kind: "healing", Object: part, Text: fmt.Sprintf("recovered after step %q of the escalation", helped)})
			}
			continue
		}
		since := c.Now()
		if is := h.escalation.cases[part]; is != nil {
			since = is.since
		}
		if s := h.escalation.failing(part, reason, lowest, c.Now()); s != report.NoStep {
			h.take(c, part, s, reason, c.Now().Sub(since))
		}
	}
}

// complaint returns what is wrong with a part that the healer can treat, and the first step; "" =
// nothing.
func (h *healer) complaint(c *runtime.Context, part string) (reason string, lowest report.Step) {
	last, known := h.parts[part]
	switch {
	case !known && c.Now().Sub(h.started) > report.SilentAfter, known && c.Now().Sub(last.at) > report.SilentAfter:
		return reasonSilent, report.StepSubtree // an actor that hangs takes no messages
	case !known || last.GetOk():
		return "", report.NoStep
	case last.GetReach() == messages.Reach_REACH_UPSTREAM && h.parts["registry"].GetOk():
		return last.GetReason(), report.StepFull
	case last.GetReach() == messages.Reach_REACH_DOWNSTREAM && last.GetEpoch() == 0:
		// not a renderer, so there is nothing to compare with VPP
		return last.GetReason(), report.StepFull
	case last.GetReach() == messages.Reach_REACH_DOWNSTREAM:
		return last.GetReason(), report.StepDownstream
	}
	return "", report.NoStep
}

// take carries out a step.
func (h *healer) take(c *runtime.Context, part string, s report.Step, reason string, lasted time.Duration) {
	lasted = lasted.Round(time.Second)
	e := &messages.Event{
		Kind: "healing", Object: part, Error: reason, Text: fmt.Sprintf("escalation to step %q after %s without recovery", s, lasted),
	}
	path := address.Part(part)
	switch s { // the first two steps are taken by the renderers themselves
	case report.StepDownstream:
		e.Method = messages.Method_METHOD_DOWNSTREAM_RESYNC
		c.Send(c.PID(path), &messages.Verify{Reason: "healing"})
	case report.StepFull:
		e.Method = messages.Method_METHOD_FULL_RESYNC
		c.Send(c.PID(address.Registry), &messages.Pull{})
		c.Send(c.PID(path), &messages.Restart{Reason: "healing: " + reason})
	case report.StepSubtree:
		e.Method = messages.Method_METHOD_FULL_RESYNC
		c.Send(c.PID(address.Supervisor(path)), &messages.Restart{Reason: "healing: " + part + ": " + reason})
	case report.StepExit:
		if h.config.Fatal != nil {
			h.config.Fatal(fmt.Errorf("%s did not recover for %s, after every step of the escalation: %s", part, lasted, reason))
		}
	}
	report.Event(c, e)
	c.Logger().Warn("part does not recover, escalating", "part", part, "step", s.String(), "after", lasted, "err", reason)
	h.config.Observer.Healed(part, s.String(), 1)
}

// page answers a Query.
func (h *healer) page() *Page {
	page := &Page{Counts: map[string]map[string]uint64{}}
	for part, counts := range h.escalation.counts {
		page.Counts[part] = map[string]uint64{}
		for s, n := range counts {
			page.Counts[part][s.String()] = n
		}
	}
	for _, part := range h.escalation.open() {
		is := h.escalation.cases[part]
		page.Cases = append(page.Cases, Case{Part: part, Reason: is.reason, Since: is.since, Until: is.until, Step: is.at.String()})
	}
	return page
}
