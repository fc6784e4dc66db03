package actors

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// rung is one step of the ladder of healing. Each one costs more than the one before and is taken when that did not help.
type rung uint8

const (
	// rungKey: what was refused is tried again, 1 s x 2^n apart with jitter.
	rungKey rung = iota
	// rungObject: VPP is read because one object is refused again and again; what is known of it may be wrong.
	rungObject
	// rungDownstream: VPP is read and compared as a whole.
	rungDownstream
	// rungFull: what is wanted is read anew as well, and a new incarnation of the part works everything out again.
	rungFull
	// rungSubtree: the part is restarted together with its siblings, the connection to VPP included.
	rungSubtree
	// rungExit: the process ends; whoever started it starts it again, and VPP goes on forwarding.
	rungExit
	// noRung: there is nothing to do now.
	noRung
)

// String is the word for metrics and the journal.
func (r rung) String() string {
	return [...]string{"key", "object", "downstream", "full", "subtree", "exit", "none"}[r]
}

// budget is how often a rung may be taken within a time; then the next one is.
type budget struct {
	most   int
	within time.Duration
}

// budgets of the rungs that the healer takes. Downstream resyncs are counted for each part, the others for all together: they cost everybody.
func budgets() map[rung]budget {
	const window = 10 * time.Minute
	return map[rung]budget{rungDownstream: {3, window}, rungFull: {3, window}, rungSubtree: {2, window}, rungExit: {1, window}}
}

// ladder decides what is done about parts that are not well and do not get well by themselves. It is plain data: the healer carries out what
// it decides. Single objects that fail do not concern it: who is responsible for them takes the first two rungs, however often.
type ladder struct {
	patience time.Duration // with a part that is not well, and with each rung
	cases    map[string]*illness
	spent    map[spending][]time.Time
	counts   map[string]map[rung]uint64 // rungs that were taken, by part
}

// illness is what a part that is not well has.
type illness struct {
	reason string
	since  time.Time
	until  time.Time // nothing is done before
	at     rung      // taken last; noRung = none yet
	lowest rung      // it begins there
	paused time.Time // since when nothing could be done about it; zero = something can
}

// spending is what a budget is for.
type spending struct {
	rung rung
	part string // "" = all parts
}

// mostPatience bounds how long progress keeps the ladder from being climbed.
const mostPatience = 10

func newLadder(patience time.Duration) *ladder {
	return &ladder{patience: patience, cases: map[string]*illness{}, spent: map[spending][]time.Time{}, counts: map[string]map[rung]uint64{}}
}

// well notes that nothing is wrong with a part, or nothing that can be mended here. It returns the rung that has helped; noRung = none was
// needed.
func (l *ladder) well(part string) (helped rung) {
	ill := l.cases[part]
	delete(l.cases, part)
	if ill == nil {
		return noRung
	}
	return ill.at
}

// outside notes that a part is not well and that it cannot be mended here: it waits for somebody else. One that was being mended, and was
// restarted for it, says so at first, too; it is not well by that.
func (l *ladder) outside(part string, now time.Time) {
	ill := l.cases[part]
	switch {
	case ill == nil:
	case ill.paused.IsZero():
		ill.paused, ill.until = now, now.Add(l.patience)
	case now.Sub(ill.paused) >= l.patience:
		delete(l.cases, part)
	}
}

// ill notes that something is wrong with a part, and says what is to be done about it now. As long as the numbers in the reason change, work is
// being done, and there is no need to disturb it; but not for ever.
func (l *ladder) ill(part, reason string, lowest rung, now time.Time) rung {
	ill := l.cases[part]
	if ill == nil {
		l.cases[part] = &illness{reason: reason, since: now, until: now.Add(l.patience), at: noRung, lowest: lowest}
		return noRung
	}
	ill.lowest, ill.paused = max(ill.lowest, lowest), time.Time{}
	progress := reason != ill.reason && withoutNumbers(reason) == withoutNumbers(ill.reason)
	if ill.reason = reason; progress && ill.at == noRung && now.Before(ill.since.Add(mostPatience*l.patience)) {
		ill.until = now.Add(l.patience)
	}
	if now.Before(ill.until) {
		return noRung
	}
	return l.climb(part, ill, now)
}

// slept puts off whatever is waited for by a time in which nobody could do anything.
func (l *ladder) slept(d time.Duration) {
	for _, ill := range l.cases {
		ill.since, ill.until = ill.since.Add(d), ill.until.Add(d)
		if !ill.paused.IsZero() {
			ill.paused = ill.paused.Add(d)
		}
	}
}

// withoutNumbers leaves the words of a reason.
func withoutNumbers(reason string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, reason)
}

// climb takes the lowest rung that still has a budget, and never a lower one than before.
func (l *ladder) climb(part string, ill *illness, now time.Time) rung {
	r := ill.lowest
	if ill.at != noRung {
		r = max(r, ill.at)
	}
	for r < rungExit && !l.spend(r, part, now) {
		r++
	}
	ill.at, ill.until = r, now.Add(l.patience)
	l.count(part, r, 1)
	if r > rungDownstream { // it concerns everybody: whether it helps the others is seen first
		for _, other := range l.cases {
			if other.until.Before(ill.until) {
				other.until = ill.until
			}
		}
	}
	return r
}

// spend takes one of a budget, if there is one left.
func (l *ladder) spend(r rung, part string, now time.Time) bool {
	of := spending{rung: r}
	if r == rungDownstream {
		of.part = part
	}
	b := budgets()[r]
	l.spent[of] = slices.DeleteFunc(l.spent[of], func(at time.Time) bool { return now.Sub(at) >= b.within })
	if len(l.spent[of]) >= b.most {
		return false
	}
	l.spent[of] = append(l.spent[of], now)
	return true
}

// count adds rungs that were taken.
func (l *ladder) count(part string, r rung, n uint64) {
	if l.counts[part] == nil {
		l.counts[part] = map[rung]uint64{}
	}
	l.counts[part][r] += n
}

// open lists the parts that are not well, ordered.
func (l *ladder) open() []string { return slices.Sorted(maps.Keys(l.cases)) }
