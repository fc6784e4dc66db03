package runtime

import (
	"maps"
	"slices"
	"strings"
)

// ward is one child of a Dynamic supervisor. There are ten thousand of them, so what only failing ones need is apart.
type ward struct {
	key        string
	box        *Mailbox // nil: it has ended, or could not be started
	wanted     bool     // false while it stops for good
	stopping   bool     // box was told to stop
	generation uint64   // highest that is known of
	trouble    *wardTrouble
}

// wardTrouble is the past of a child that has failed.
type wardTrouble struct {
	retry       retry
	failures    window // within the quarantine window
	quarantined bool
	generation  uint64 // that was known when the quarantine began
}

func (w *ward) troubles() *wardTrouble {
	if w.trouble == nil {
		w.trouble = &wardTrouble{}
	}
	return w.trouble
}

// dynamicState is what Inspect shows: the children are visible as actors, so only those with a problem are named.
type dynamicState struct {
	Children    int         `json:"children"`
	Quarantined int         `json:"quarantined"`
	Failures    int         `json:"failuresInWindow"`
	Budget      int         `json:"budget"`
	Troubled    []wardState `json:"troubled,omitempty"`
}

type wardState struct {
	Key         string `json:"key"`
	Quarantined bool   `json:"quarantined"`
	Waiting     bool   `json:"waiting"`
	Attempts    int    `json:"attempts"`
	Generation  uint64 `json:"generation"`
}

// shownWards limits what Inspect shows of a Dynamic supervisor.
const shownWards = 100

// Inspect satisfies Inspector.
func (d *dynamic) Inspect() any {
	state := dynamicState{
		Children: len(d.wards), Quarantined: d.quarantined, Failures: d.failures.count(), Budget: d.policy.Budget,
	}
	for _, key := range sortedKeys(d.wards) {
		w := d.wards[key]
		if w.trouble == nil || !w.trouble.retry.waiting() || len(state.Troubled) == shownWards {
			continue
		}
		state.Troubled = append(state.Troubled, wardState{key, w.trouble.quarantined, true, w.trouble.retry.attempts, w.generation})
	}
	return state
}

// sortedKeys makes the order of a map repeatable.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// baseName is the last element of a path.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
