package informers

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// health collects the state of the watches. Reflectors set it; the worker takes what changed.
type health struct {
	wake func()

	mu       sync.Mutex
	starting map[string]bool   // resources that were never watched, by name
	reasons  map[string]string // why resources are not watched, by name
	pending  []verdict         // not taken yet, oldest first
	last     verdict
}

// verdict is a report for Sink.Health.
type verdict struct {
	ok     bool
	reason string
}

// maxPending bounds the verdicts that wait for the worker. Short outages are reported too, but not each of a long series.
const maxPending = 8

// newHealth returns the health of resources that are not watched yet.
func newHealth(wake func(), plurals []string) *health {
	h := &health{wake: wake, starting: map[string]bool{}, reasons: map[string]string{}}
	for _, name := range plurals {
		h.starting[name] = true
	}
	return h
}

// set notes that a resource is watched (reason "") or why it is not. That a resource is not watched yet, without a reason, is neither
// good nor bad.
func (h *health) set(resource, reason string) {
	if h.note(resource, reason) {
		h.wake()
	}
}

// note is set without the wake-up; it reports whether there is something to take.
func (h *health) note(resource, reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if reason == "" {
		delete(h.reasons, resource)
		delete(h.starting, resource)
	} else {
		h.reasons[resource] = reason
	}
	// A source that starts is neither good nor bad until each kind has been watched or has failed.
	if len(h.reasons) == 0 && len(h.starting) > 0 {
		return false
	}
	now := h.verdict()
	if now == h.last {
		return false
	}
	h.last = now
	// The last verdict always gets a place: it is the one that stays true.
	if len(h.pending) == maxPending {
		h.pending = h.pending[:maxPending-1]
	}
	h.pending = append(h.pending, now)
	return true
}

// verdict joins the reasons. What keeps the agent from all resources is said once, so that it stays the same while they lose their watches and get
// them again. The lock must be held.
func (h *health) verdict() verdict {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(h.reasons)) {
		text := h.reasons[name]
		if !strings.HasPrefix(text, silent) {
			text = name + ": " + text
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return verdict{ok: len(texts) == 0, reason: strings.Join(texts, "; ")}
}

// take returns the verdicts since the last call.
func (h *health) take() []verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.pending
	h.pending = nil
	return out
}

// state returns the verdict of now.
func (h *health) state() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}
