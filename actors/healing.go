package actors

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// healed tells the healer what was done below it: objects that were tried again, and VPP that was read for one of them.
type healed struct {
	part string
	rung rung
	n    int
}

// heal tells the healer what was done; nothing is not worth a message.
func heal(c *runtime.Context, part string, r rung, n int) {
	if n > 0 {
		c.Send(c.PID(PathHealer), &healed{part, r, n})
	}
}

// HealingQuery asks the healer what it has done and is about to do. The answer is a HealingPage.
type HealingQuery struct{}

// HealingPage answers a HealingQuery.
type HealingPage struct {
	// Counts says how often each rung of the ladder was taken since the healer started, by part and rung.
	Counts map[string]map[string]uint64
	// Cases are the parts that are not well for a reason that the healer does something about, ordered by part.
	Cases []HealingCase
}

// HealingCase is a part that is not well.
type HealingCase struct {
	// Part is its name, Reason what is wrong with it.
	Part, Reason string
	// Since is when it began; Until is when something is done, or done again.
	Since, Until time.Time
	// Rung was taken last; "none" = none yet.
	Rung string
}

// reasonSilent is what is wrong with a part that does not speak: its actor hangs, or is gone.
const reasonSilent = "silent"

// heal looks after every part and does what its ladder says.
func (h *healer) heal(c *runtime.Context) {
	for _, part := range h.deps.expected() {
		reason, lowest := h.complaint(c, part)
		if reason == "" && !h.parts[part].GetOk() {
			h.ladder.outside(part, c.Now())
			continue
		}
		if reason == "" {
			if helped := h.ladder.well(part); helped != noRung {
				record(c, &messages.Event{Kind: "healing", Object: part, Text: fmt.Sprintf("well again after the rung %q", helped)})
			}
			continue
		}
		since := c.Now()
		if ill := h.ladder.cases[part]; ill != nil {
			since = ill.since
		}
		if r := h.ladder.ill(part, reason, lowest, c.Now()); r != noRung {
			h.take(c, part, r, reason, c.Now().Sub(since))
		}
	}
}

// complaint says what is wrong with a part that can be mended from here, and with which rung to begin; "" = nothing is.
func (h *healer) complaint(c *runtime.Context, part string) (reason string, lowest rung) {
	said, known := h.parts[part]
	switch {
	case !known && c.Now().Sub(h.started) > healthStale, known && c.Now().Sub(said.at) > healthStale:
		return reasonSilent, rungSubtree // whoever does not listen cannot be asked for anything
	case !known || said.GetOk():
		return "", noRung
	case said.GetReach() == messages.Reach_REACH_UPSTREAM && h.parts["registry"].GetOk():
		return said.GetReason(), rungFull
	case said.GetReach() == messages.Reach_REACH_DOWNSTREAM && said.GetEpoch() == 0: // not a renderer: it has nothing to compare
		return said.GetReason(), rungFull
	case said.GetReach() == messages.Reach_REACH_DOWNSTREAM:
		return said.GetReason(), rungDownstream
	}
	return "", noRung
}

// take carries out what the ladder has decided.
func (h *healer) take(c *runtime.Context, part string, r rung, reason string, lasted time.Duration) {
	e := &messages.Event{
		Kind: "healing", Object: part, Error: reason, Text: fmt.Sprintf("rung %q, because it has not been well for %s", r, lasted.Round(time.Second)),
	}
	path := pathOf(part)
	switch r {
	case rungDownstream:
		e.Method = messages.Method_METHOD_DOWNSTREAM_RESYNC
		c.Send(c.PID(path), &messages.Verify{Reason: "healing"})
	case rungFull:
		e.Method = messages.Method_METHOD_FULL_RESYNC
		c.Send(c.PID(PathWatch), &messages.Pull{})
		c.Send(c.PID(path), &messages.Restart{Reason: "healing: " + reason})
	case rungSubtree:
		e.Method = messages.Method_METHOD_FULL_RESYNC
		c.Send(c.PID(subtreeOf(path)), &messages.Restart{Reason: "healing: " + part + ": " + reason})
	case rungExit:
		if h.deps.Fatal != nil {
			h.deps.Fatal(fatal(classProcess, fmt.Errorf("%s has not been well for %s, whatever was done about it: %s", part, lasted.Round(time.Second), reason)))
		}
	}
	record(c, e)
	c.Logger().Warn("healing", "part", part, "rung", r.String(), "err", reason)
	h.observe(part, r, 1)
}

// observe counts for metrics.
func (h *healer) observe(part string, r rung, n int) {
	if h.deps.Observer != nil {
		h.deps.Observer.Healed(part, r.String(), n)
	}
}

// page answers what was done.
func (h *healer) page() *HealingPage {
	page := &HealingPage{Counts: map[string]map[string]uint64{}}
	for part, counts := range h.ladder.counts {
		page.Counts[part] = map[string]uint64{}
		for r, n := range counts {
			page.Counts[part][r.String()] = n
		}
	}
	for _, part := range h.ladder.open() {
		ill := h.ladder.cases[part]
		page.Cases = append(page.Cases, HealingCase{Part: part, Reason: ill.reason, Since: ill.since, Until: ill.until, Rung: ill.at.String()})
	}
	return page
}

// pathOf is the actor of a part.
func pathOf(part string) string {
	switch part {
	case "watch", "registry", "nodes":
		return "agent/world/" + part
	default:
		return PathDataplane + "/" + part
	}
}

// subtreeOf is the supervisor of an actor.
func subtreeOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }
