package live

import (
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
)

// Limits of all faults together.
const (
	// MostFaults is the number of faults that may be active at the same time.
	MostFaults = 16
	// mostFailures within failureWindow are injected below one supervisor. That is less than
	// the smallest restart budget of the tree, 10 in 10 s, so that there is room for real
	// failures. Services do not count: they are quarantined one by one, and their supervisor
	// has no budget.
	mostFailures  = 6
	failureWindow = 10 * time.Second
)

// limiter limits the failures that are injected below each supervisor. It is a sliding window, not
// a token bucket, because a restart budget is a sliding window: a bucket would either admit fewer
// at once or exceed the budget.
type limiter struct {
	mu  sync.Mutex
	log map[string][]time.Time // by path of the supervisor, oldest first, at most mostFailures each
}

// allow reports whether one more failure of an actor is within the limit, and counts it if so.
func (l *limiter) allow(path string, now time.Time) bool {
	parent := address.Supervisor(path)
	if parent == address.Services {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := l.log[parent]
	for len(recent) > 0 && now.Sub(recent[0]) >= failureWindow {
		recent = recent[1:]
	}
	ok := len(recent) < mostFailures
	if ok {
		recent = append(recent, now)
	}
	if l.log == nil {
		l.log = map[string][]time.Time{}
	}
	l.log[parent] = recent
	return ok
}

// exempt says why an actor, given by path, name or kind, is exempt from all faults; "" = it is not.
func exempt(name string) string {
	switch name {
	case address.RootName, "root":
		return "the root actor is exempt: its end is the end of the process"
	case address.Journal, "journal":
		return "the journal is exempt: it keeps the audit record"
	case address.RootName + "/chaos", "chaos":
		return "chaos itself is exempt"
	default:
		return ""
	}
}
