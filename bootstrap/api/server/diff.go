package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// diffShared is the time for which clients on TCP get the result of a finished reading of VPP
// again. VPP answers under a barrier that stops its workers, for tens of milliseconds at 10,000
// rows. So the rate of readings must not depend on the number of clients.
const diffShared = 5 * time.Second

// errPanicked is the result of a reading that panicked; the log has the reason.
var errPanicked = errors.New("internal error")

// differ reads VPP for the clients of both listeners, once at a time.
type differ struct {
	read    func(context.Context) (*api.Diff, error)
	timeout time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	present *reading // nil = none is under way
	last    *reading // nil = there was none
	closed  bool
}

// reading is one reading of VPP. Its results are immutable once done is closed.
type reading struct {
	begun time.Time
	done  chan struct{}
	stop  context.CancelFunc

	ended time.Time
	diff  *api.Diff
	err   error
}

// diff answers with the difference between VPP and the desired state. On the control socket it was
// read after the request arrived, on TCP it may be a little older.
func (s *Server) diff(control bool) get {
	return plain(func(ctx context.Context) (*api.Diff, error) { return s.differ.get(ctx, control) })
}

// Diff answers in the same way as the read-only listener: clients share a reading of VPP.
func (s *Server) Diff(ctx context.Context) (*api.Diff, error) { return s.differ.get(ctx, false) }

// get returns the result of a new reading, of the reading under way, or of the last one.
func (d *differ) get(ctx context.Context, fresh bool) (*api.Diff, error) {
	arrived := time.Now()
	for {
		r, err := d.join(ctx, arrived, fresh)
		if err != nil {
			return nil, err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("read VPP: %w", ctx.Err())
		}
		if !fresh || !r.begun.Before(arrived) {
			return r.diff, r.err
		}
		// The reading was under way when the request arrived. A change that the client
		// wants to see may have happened after VPP had answered.
	}
}

// join returns the reading to wait for, and begins one if necessary.
func (d *differ) join(ctx context.Context, arrived time.Time, fresh bool) (*reading, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.last
	switch {
	case d.present != nil:
		return d.present, nil
	case last != nil && fresh && !last.begun.Before(arrived):
		return last, nil
	case last != nil && !fresh && time.Since(last.ended) < diffShared:
		return last, nil
	case d.closed:
		return nil, fmt.Errorf("%w: the agent is stopping", api.ErrUnavailable)
	}
	// The client that begins a reading may disconnect while others wait for the result.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
	r := &reading{begun: time.Now(), done: make(chan struct{}), stop: stop}
	d.present = r
	go d.run(ctx, r)
	return r, nil
}

// run reads VPP. It contains a panic, because the recovery of the handlers is in other goroutines.
func (d *differ) run(ctx context.Context, r *reading) {
	defer func() {
		if reason := recover(); reason != nil {
			d.log.Error("reading of VPP for a diff panicked", "err", fmt.Sprint(reason), "stack", string(debug.Stack()))
			r.diff, r.err = nil, errPanicked
		}
		r.stop()
		r.ended = time.Now()
		d.mu.Lock()
		d.present, d.last = nil, r
		d.mu.Unlock()
		close(r.done)
	}()
	diff, err := d.read(ctx)
	if err != nil {
		r.err = err
		return
	}
	dated := *diff
	dated.Time = r.begun
	r.diff = &dated
}

// close ends the reading that is under way, and waits for its end.
func (d *differ) close() {
	d.mu.Lock()
	d.closed = true
	present := d.present
	d.mu.Unlock()
	if present != nil {
		present.stop()
		<-present.done
	}
}
