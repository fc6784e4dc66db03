package health

import (
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
)

// budget is how often a step may be taken within a time, before the next step is taken instead.
type budget struct {
	most   int
	within time.Duration
}

// budgets of the steps that the healer takes. Downstream resyncs are counted for each part. The
// other steps concern all parts and are counted for all together.
func budgets() map[report.Step]budget {
	const window = 10 * time.Minute
	return map[report.Step]budget{
		report.StepDownstream: {3, window}, report.StepFull: {3, window}, report.StepSubtree: {2, window}, report.StepExit: {1, window},
	}
}

// escalation decides about steps for parts that do not recover by themselves. It is plain data: the
// healer takes the steps. Single objects that fail are retried by their renderer (the first two
// steps) and never escalate.
type escalation struct {
	patience time.Duration // of a part that is not well, and after each step
	cases    map[string]*condition
	spent    map[expense][]time.Time
	counts   map[string]map[report.Step]uint64 // steps that were taken, by part
}

// condition is what is wrong with a part.
type condition struct {
	reason string
	since  time.Time
	until  time.Time   // no step is taken before
	at     report.Step // last step; NoStep = none yet
	lowest report.Step // the first step
	// since when the part waits for something outside of the process; zero = it does not
	paused time.Time
}

// expense is the key of a budget.
type expense struct {
	step report.Step
	part string // "" = all parts
}

func newEscalation(patience time.Duration) *escalation {
	return &escalation{
		patience: patience, cases: map[string]*condition{}, spent: map[expense][]time.Time{}, counts: map[string]map[report.Step]uint64{},
	}
}

// recovered notes that a part is well. It returns the step that has helped; NoStep = none was
// needed.
func (l *escalation) recovered(part string) (helped report.Step) {
	is := l.cases[part]
	delete(l.cases, part)
	if is == nil {
		return report.NoStep
	}
	return is.at
}

// waits notes that a part waits for something outside of the process. A part that was restarted as
// a step reports that at first, too, and has not recovered by that.
func (l *escalation) waits(part string, now time.Time) {
	is := l.cases[part]
	switch {
	case is == nil:
	case is.at == report.NoStep: // no step was taken: patience begins anew
		delete(l.cases, part)
	case is.paused.IsZero():
		is.paused, is.until = now, now.Add(l.patience)
	case now.Sub(is.paused) >= l.patience:
		delete(l.cases, part)
	}
}

// failing notes that a part is not well, and returns the step to take now.
func (l *escalation) failing(part, reason string, lowest report.Step, now time.Time) report.Step {
	is := l.cases[part]
	if is == nil {
		l.cases[part] = &condition{reason: reason, since: now, until: now.Add(l.patience), at: report.NoStep, lowest: lowest}
		return report.NoStep
	}
	// a part that has become silent skips the gentle steps
	is.lowest, is.paused = max(is.lowest, lowest), time.Time{}
	is.reason = reason
	if now.Before(is.until) {
		return report.NoStep
	}
	return l.next(part, is, now)
}

// slept delays every step by a time in which the process could not work.
func (l *escalation) slept(d time.Duration) {
	for _, is := range l.cases {
		is.since, is.until = is.since.Add(d), is.until.Add(d)
		if !is.paused.IsZero() {
			is.paused = is.paused.Add(d)
		}
	}
}

// next takes the lowest step with a budget left, and never a lower one than before.
func (l *escalation) next(part string, is *condition, now time.Time) report.Step {
	s := is.lowest
	if is.at != report.NoStep {
		s = max(s, is.at)
	}
	for s < report.StepExit && !l.spend(s, part, now) {
		// a step that has not helped so often will not help now
		s++
	}
	is.at, is.until = s, now.Add(l.patience)
	l.count(part, s, 1)
	// the step concerns all parts: the others wait whether it helps them
	if s > report.StepDownstream {
		for _, other := range l.cases {
			if other.until.Before(is.until) {
				other.until = is.until
			}
		}
	}
	return s
}

// spend uses the budget of a step, if some is left.
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
