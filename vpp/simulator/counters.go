package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/simulator/handlers"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// Counters counts the requests of the API clients of a simulated VPP. Requests of the Go API (Exec,
// topology, foreign rows) do not count. The counters survive a crash.
type Counters struct {
	requests  map[string]uint64
	failed    map[string]uint64
	mutating  uint64
	dumps     uint64
	dropped   uint64
	crashes   uint64
	lastCrash string
}

// Of returns how many requests of the given message name were executed.
func (c Counters) Of(name string) uint64 { return c.requests[name] }

// Failed returns how many requests of the given message name were answered with a return code other
// than 0.
func (c Counters) Failed(name string) uint64 { return c.failed[name] }

// Mutating returns how many requests were to change the configuration, successful or not.
func (c Counters) Mutating() uint64 { return c.mutating }

// Dumps returns how many dumps were requested, cursor messages included.
func (c Counters) Dumps() uint64 { return c.dumps }

// Dropped returns how many frames were ignored without an answer: unknown message id, too short,
// unknown client index.
func (c Counters) Dropped() uint64 { return c.dropped }

// String lists the requests by name, one per line, sorted.
func (c Counters) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.requests)) {
		fmt.Fprintf(&b, "%s %d", name, c.requests[name])
		if n := c.failed[name]; n > 0 {
			fmt.Fprintf(&b, " (%d failed)", n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (c *Counters) reset() {
	*c = Counters{requests: make(map[string]uint64), failed: make(map[string]uint64)}
}

// count notes a request.
func (c *Counters) count(name string, kind handlers.Class) {
	c.requests[name]++
	switch {
	case kind == handlers.ClassWrite:
		c.mutating++
	case strings.HasSuffix(name, "_dump") || strings.HasSuffix(name, "_interface_get"):
		c.dumps++
	}
}

// result notes the answer to a request.
func (c *Counters) result(m *wire.Message, reply api.Message) {
	if m.Reply == nil {
		return
	}
	if retval, ok := wire.RetvalOf(reply); ok && retval != 0 {
		c.failed[m.Name]++
	}
}

// Counters returns a copy of the counters.
func (v *VPP) Counters() Counters {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.counters
	c.requests = maps.Clone(c.requests)
	c.failed = maps.Clone(c.failed)
	return c
}

// ResetCounters sets all counters to 0.
func (v *VPP) ResetCounters() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counters.reset()
}
