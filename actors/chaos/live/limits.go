package live

import (
	"strings"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/actors"
)

// Limits of all faults together.
const (
	// MostFaults is how many faults last at the same time.
	MostFaults = 16
	// mostFailures under one supervisor within failureWindow is less than the smallest budget of the tree, 10 in 10 s: a drill leaves room
	// for failures that are real. Services are not counted: each fails alone, without a budget.
	mostFailures  = 6
	failureWindow = 10 * time.Second
)

// limiter counts the failures that were injected below each supervisor.
type limiter struct {
	mu  sync.Mutex
	log map[string][]time.Time // by path of the supervisor, oldest first; at most mostFailures each
}

// allow reports whether one more failure of an actor is tolerable now, and counts it.
func (l *limiter) allow(path string, now time.Time) bool {
	parent := path[:max(strings.LastIndexByte(path, '/'), 0)]
	if parent == actors.PathServices {
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

// exempt says why faults never happen to an actor, whatever it is called; "" = they may.
func exempt(name string) string {
	switch name {
	case actors.RootName, "root":
		return "the root actor is exempt: its end is the end of the process"
	case actors.PathJournal, "journal":
		return "the journal is exempt: it keeps the audit record"
	case actors.RootName + "/chaos", "chaos":
		return "chaos itself is exempt"
	default:
		return ""
	}
}
