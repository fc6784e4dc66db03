package informers

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// health collects the state of the watches. Reflectors set it; the worker takes the changes.
type health struct {
	wake func()

	mu       sync.Mutex
	starting map[string]bool    // resources that were never watched, by name
	troubles map[string]trouble // why resources are not watched, by name
	pending  []verdict          // not taken yet, oldest first
	last     verdict
}

// verdict is a report for Sink.Health.
type verdict struct {
	ok     bool
	reason string
	causes string // reason without details, so that the log sees only new causes
}

// maxPending bounds the verdicts that wait for the worker. Short outages are reported too, but not
// every outage of a long series.
const maxPending = 8

// newHealth returns the health of resources that are not watched yet.
func newHealth(wake func(), plurals []string) *health {
	h := &health{wake: wake, starting: map[string]bool{}, troubles: map[string]trouble{}}
	for _, name := range plurals {
		h.starting[name] = true
	}
	return h
}

// set notes that a resource is watched (the zero trouble), or the trouble that prevents its watch.
// A resource that starts and has no trouble is neither healthy nor unhealthy.
func (h *health) set(resource string, t trouble) {
	if h.note(resource, t) {
		h.wake()
	}
}

// note is set without the wake-up; it reports whether there is something to take.
func (h *health) note(resource string, t trouble) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t == (trouble{}) {
		delete(h.troubles, resource)
		delete(h.starting, resource)
	} else {
		h.troubles[resource] = t
	}
	// A source that starts is neither healthy nor unhealthy until each kind has been watched or
	// has failed.
	if len(h.troubles) == 0 && len(h.starting) > 0 {
		return false
	}
	now := h.verdict()
	if now == h.last {
		return false
	}
	h.last = now
	// The last verdict always gets a place, because it stays true.
	if len(h.pending) == maxPending {
		h.pending = h.pending[:maxPending-1]
	}
	h.pending = append(h.pending, now)
	return true
}

// verdict joins the troubles. A trouble of all resources appears once, so that the verdict stays
// the same while single resources lose and regain their watches. Missing permissions are joined
// into one text as well. The lock must be held.
func (h *health) verdict() verdict {
	var texts, causes, denied []string
	var why trouble
	say := func(cause cause, text string) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if cause != expired && !slices.Contains(causes, string(cause)) {
			causes = append(causes, string(cause))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.troubles)) {
		switch t := h.troubles[name]; t.cause {
		case forbidden:
			denied, why = append(denied, name), t
		default:
			say(t.cause, t.String(name))
		}
	}
	if len(denied) > 0 {
		say(forbidden, why.String(strings.Join(denied, ", ")))
	}
	return verdict{ok: len(texts) == 0, reason: strings.Join(texts, "; "), causes: strings.Join(causes, "; ")}
}

// take returns the verdicts since the last call.
func (h *health) take() []verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.pending
	h.pending = nil
	return out
}

// state returns the current verdict.
func (h *health) state() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}
