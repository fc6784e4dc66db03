package link

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errClosed is the cause of a session that was ended by the end of Run.
var errClosed = errors.New("link closed")

// watch supervises a session until it is over: it sends a probe after a silence, ends the session
// when VPP does not answer in time and forwards interface events. It returns when the session has
// failed or ctx is done, in which case it ends the session itself.
func (s *session) watch(ctx context.Context, hint func()) {
	due := time.Now()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			s.fail(errClosed)
			return
		case <-s.dead:
			return
		case <-s.event:
			hint()
		case <-alarm.C:
			now := time.Now()
			due = s.check(now, now.Sub(due))
			alarm.Reset(due.Sub(now))
		}
	}
}

// check compares the clock with the timeouts: it fails the session when the oldest request is
// overdue, or its details have no end, requests a probe after a silence, and returns when to check
// again. late is how much later than planned check was called.
func (s *session) check(now time.Time, late time.Duration) time.Time {
	s.mu.Lock()
	if late > s.cfg.ProbeInterval/2 {
		// This process was suspended, so replies may wait in the socket: the timeouts are extended
		// by that time.
		s.moved, s.heard, s.turned = earlier(now, s.moved.Add(late)), earlier(now, s.heard.Add(late)), earlier(now, s.turned.Add(late))
	}
	next := now.Add(s.cfg.ProbeInterval)
	overdue, silent := error(nil), false
	if p := s.queue.oldest(); p != nil {
		deadline, complete := later(p.sent, s.moved).Add(s.cfg.ReplyTimeout), later(p.sent, s.turned).Add(s.cfg.DumpTimeout)
		switch {
		case !deadline.After(now):
			overdue = fmt.Errorf("%w: %s waits for more than %s", ErrTimeout, p.route.name, s.cfg.ReplyTimeout)
		case !complete.After(now):
			overdue = fmt.Errorf("%w: %s is not complete after %s", ErrTimeout, p.route.name, s.cfg.DumpTimeout)
		}
		next = earlier(next, earlier(deadline, complete))
	}
	if quiet := s.heard.Add(s.cfg.ProbeInterval); quiet.After(now) {
		next = earlier(next, quiet)
	} else { // probes must not fill the window of a VPP that takes longer for a request
		silent = s.queue.n < max(1, s.cfg.Window/2)
	}
	s.mu.Unlock()
	switch {
	case overdue != nil:
		s.fail(overdue)
	case silent:
		poke(s.probe)
	}
	return next
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
