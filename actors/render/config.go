package render

import (
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Config is the configuration of a Driver. All renderers share it. It is read-only, except Granted.
type Config struct {
	// VPP is the connection.
	VPP link.Caller
	// Observer counts.
	Observer report.Observer
	// Tick is the interval at which refused objects are tried again, if there are any.
	Tick time.Duration
	// Backoff is the first delay after VPP refused something; it doubles up to 30 s.
	Backoff time.Duration
	// HeapReserve is how many percent of VPP's main heap rows leave free; 0 = none.
	HeapReserve int
	// Heap makes a reader of VPP's statistics about its heap; nil = VPP is asked, at a higher
	// cost.
	Heap func() Heap
	// Granted counts the bytes of VPP's heap that all renderers have granted to rows.
	Granted atomic.Int64
	// DriftCheckOverdue is how long a drift check waits for work to end.
	DriftCheckOverdue time.Duration
}

// backoff is the delay after refusals of objects and settings: up to 30 s, a fifth longer or
// shorter.
func (g *Config) backoff() runtime.Backoff {
	const longest, jitter = 30 * time.Second, 0.2
	return runtime.Backoff{Min: g.Backoff, Max: longest, Jitter: jitter}
}
