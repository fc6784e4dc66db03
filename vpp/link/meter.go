package link

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
)

// Runner is a Caller with the connection behind it; *Link is one.
type Runner interface {
	Caller
	// Run keeps VPP connected until ctx ends; see Link.Run.
	Run(ctx context.Context, on func(*messages.LinkState)) error
}

// Meter is a Runner that counts the requests that pass through it, so that commands and tests can
// report the cost of an operation. It changes no request.
type Meter struct {
	Runner
	writes, rowReads, rowChecks, refused, boots atomic.Uint64
	// of the latest VPP that was connected
	boot atomic.Pointer[string]
}

// Usage is what a Meter has counted since its start.
type Usage struct {
	// Writes counts requests that change the configuration of VPP, successful or not. Freeing
	// sessions does not count.
	Writes uint64
	// RowReads counts reads of the service rows that an event caused, RowChecks reads that a
	// timer caused (Routine).
	RowReads, RowChecks uint64
	// Refused counts requests that change something and that VPP answered with a return code
	// other than 0.
	Refused uint64
	// Boots counts the incarnations of VPP that were connected, the first one included. A new
	// incarnation has lost all state.
	Boots uint64
}

// NewMeter returns a meter around a connection.
func NewMeter(r Runner) *Meter { return &Meter{Runner: r} }

// Usage returns what was counted.
func (m *Meter) Usage() Usage {
	return Usage{
		Writes: m.writes.Load(), RowReads: m.rowReads.Load(), RowChecks: m.rowChecks.Load(), Refused: m.refused.Load(), Boots: m.boots.Load(),
	}
}

// Run satisfies Runner.
func (m *Meter) Run(ctx context.Context, on func(*messages.LinkState)) error {
	return m.Runner.Run(ctx, func(s *messages.LinkState) {
		if boot := s.GetBoot(); s.GetUp() {
			if last := m.boot.Swap(&boot); last == nil || *last != boot {
				m.boots.Add(1)
			}
		}
		on(s)
	})
}

// Do satisfies Caller.
func (m *Meter) Do(ctx context.Context, reqs []api.Message) ([]Result, error) {
	for _, req := range reqs {
		if changes(req.GetMessageName()) {
			m.writes.Add(1)
		}
	}
	results, err := m.Runner.Do(ctx, reqs)
	for i := range results {
		var refusal *RetvalError
		if i < len(reqs) && changes(reqs[i].GetMessageName()) && errors.As(results[i].Err, &refusal) {
			m.refused.Add(1)
		}
	}
	return results, err
}

// Dump satisfies Caller.
func (m *Meter) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	switch req.GetMessageName() {
	case "nat44_lb_static_mapping_dump", "cnat_translation_dump":
		if IsRoutine(ctx) {
			m.rowChecks.Add(1)
		} else {
			m.rowReads.Add(1)
		}
	}
	return m.Runner.Dump(ctx, req, each)
}

// changes reports whether a message changes the configuration of VPP, by the conventions of VPP's
// API for names.
func changes(name string) bool {
	for _, suffix := range []string{"_dump", "_get", "_summary", "_is_enabled"} {
		if strings.HasSuffix(name, suffix) {
			return false
		}
	}
	for _, prefix := range []string{"show_", "want_", "get_", "control_ping", "cli_", "nat44_del_session"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	for _, part := range []string{"_show_", "_get_", "_lookup"} {
		if strings.Contains(name, part) {
			return false
		}
	}
	return true
}

// routineKey is the key of the mark of Routine.
type routineKey struct{}

// Routine marks the requests made with ctx as periodic: a timer caused them, and no event. A Meter
// counts them apart from requests that events cause.
func Routine(ctx context.Context) context.Context { return context.WithValue(ctx, routineKey{}, true) }

// IsRoutine reports whether ctx has the mark of Routine.
func IsRoutine(ctx context.Context) bool { return ctx.Value(routineKey{}) != nil }
