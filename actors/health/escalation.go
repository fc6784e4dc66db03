package health

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
)

// budget is how often a step may be taken within a time; then the next one is.
type budget struct {
	most   int
	within time.Duration
}

// budgets of the steps that the healer takes. Downstream resyncs are counted for each part, the
// others for all together: they concern all parts.
func budgets() map[report.Step]budget {
	const window = 10 * time.Minute
	return map[report.Step]budget{
		report.StepDownstream: {3, window}, report.StepFull: {3, window}, report.StepSubtree: {2, window}, report.StepExit: {1, window},
	}
}

// escalation decides what is done about parts that are not well and do not recover by themselves.
// It is plain data: the healer carries out what it decides. Single objects that fail are retried by
// their renderer (the first two steps) and never escalate.
type escalation struct {
	patience time.Duration // with a part that is not well, and with each step
	cases    map[string]*condition
	spent    map[expense][]time.Time
	counts   map[string]map[report.Step]uint64 // steps that were taken, by part
}

// condition is what is wrong with a part.
type condition struct {
	reason string
	since  time.Time
	until  time.Time   // nothing is done before
	at     report.Step // taken last; NoStep = none yet
	lowest report.Step // it begins there
	paused time.Time   // since when nothing could be done about it; zero = something can
}

// expense is what a budget is for.
type expense struct {
	step report.Step
	part string // "" = all parts
}

func newEscalation(patience time.Duration) *escalation {
	return &escalation{
		patience: patience, cases: map[string]*condition{}, spent: map[expense][]time.Time{}, counts: map[string]map[report.Step]uint64{},
	}
}

// recovered notes that nothing is wrong with a part, or nothing that can be repaired here. It
// returns the step that has helped; NoStep = none was needed.
func (l *escalation) recovered(part string) (helped report.Step) {
	is := l.cases[part]
	delete(l.cases, part)
	if is == nil {
		return report.NoStep
	}
	return is.at
}

// waits notes that a part is not well and waits for something outside of the process. A part that
// was restarted to be repaired reports that at first, too, and has not recovered by that.
func (l *escalation) waits(part string, now time.Time) {
	is := l.cases[part]
	switch {
	case is == nil:
	case is.at == report.NoStep: // nothing has been tried: patience begins anew
		delete(l.cases, part)
	case is.paused.IsZero():
		is.paused, is.until = now, now.Add(l.patience)
	case now.Sub(is.paused) >= l.patience:
		delete(l.cases, part)
	}
}

// failing notes that something is wrong with a part, and says what is to be done about it now.
func (l *escalation) failing(part, reason string, lowest report.Step, now time.Time) report.Step {
	is := l.cases[part]
	if is == nil {
		l.cases[part] = &condition{reason: reason, since: now, until: now.Add(l.patience), at: report.NoStep, lowest: lowest}
		return report.NoStep
	}
	// a part that has become silent does not get the gentle steps
	is.lowest, is.paused = max(is.lowest, lowest), time.Time{}
	is.reason = reason
	if now.Before(is.until) {
		return report.NoStep
	}
	return l.next(part, is, now)
}

// slept puts off every step by a time in which the process could not work.
func (l *escalation) slept(d time.Duration) {
	for _, is := range l.cases {
		is.since, is.until = is.since.Add(d), is.until.Add(d)
		if !is.paused.IsZero() {
			is.paused = is.paused.Add(d)
		}
	}
}

// next takes the lowest step that still has a budget, and never a lower one than before.
func (l *escalation) next(part string, is *condition, now time.Time) report.Step {
	s := is.lowest
	if is.at != report.NoStep {
		s = max(s, is.at)
	}
	for s < report.StepExit && !l.spend(s, part, now) {
		// a step that has not helped so often will not now
		s++
	}
	is.at, is.until = s, now.Add(l.patience)
	l.count(part, s, 1)
	if s > report.StepDownstream { // it concerns all parts: the others wait whether it helps them
		for _, other := range l.cases {
			if other.until.Before(is.until) {
				other.until = is.until
			}
		}
	}
	return s
}

// spend takes one of a budget, if there is one left.
func (l *escalation) spend(s report.Step, part string, now time.Time) bool {
	of := expense{step: s}
	if s == report.StepDownstream {
		of.part = part
	}
	b := budgets()[s]
	l.spent[of] = slices.DeleteFunc(l.spent[of], func(at time.Time) bool { return now.Sub(at) >= b.within })
	if len(l.spent[of]) >= b.most {
		return false
	}
	l.spent[of] = append(l.spent[of], now)
	return true
}

// count adds steps that were taken.
func (l *escalation) count(part string, s report.Step, n uint64) {
	if l.counts[part] == nil {
		l.counts[part] = map[report.Step]uint64{}
	}
	l.counts[part][s] += n
}

// open lists the parts that are not well, ordered.
func (l *escalation) open() []string { return slices.Sorted(maps.Keys(l.cases)) }
