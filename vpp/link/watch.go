package link

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errClosed is the cause of a connection that was ended by the end of Run.
var errClosed = errors.New("link closed")

// watch supervises a connection until it is over: it sends a probe after a silence, ends the
// connection when VPP does not answer in time and forwards interface events. It returns when the
// connection has failed or ctx is done, in which case it ends the connection itself.
func (conn *connection) watch(ctx context.Context, hint, election func()) {
	due := time.Now()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			conn.fail(errClosed)
			return
		case <-conn.dead:
			return
		case <-conn.event:
			hint()
		case <-conn.election:
			election()
		case <-alarm.C:
			now := time.Now()
			due = conn.check(now, now.Sub(due))
			alarm.Reset(due.Sub(now))
		}
	}
}

// check compares the clock with the timeouts: it fails the connection when the oldest request is
// overdue, or its details have no end, requests a probe after a silence, and returns when to check
// again. late is how much later than planned check was called.
func (conn *connection) check(now time.Time, late time.Duration) time.Time {
	conn.mu.Lock()
	if late > conn.cfg.ProbeInterval/2 {
		// This process was suspended, so replies may wait in the socket: the timeouts are
		// extended by that time.
		conn.moved, conn.heard, conn.turned = earlier(now, conn.moved.Add(late)), earlier(now, conn.heard.Add(late)), earlier(now, conn.turned.Add(late))
	}
	next := now.Add(conn.cfg.ProbeInterval)
	overdue, silent := error(nil), false
	if p := conn.queue.oldest(); p != nil {
		deadline, complete := later(p.sent, conn.moved).Add(conn.cfg.ReplyTimeout), later(p.sent, conn.turned).Add(conn.cfg.DumpTimeout)
		switch {
		case !deadline.After(now):
			overdue = fmt.Errorf("%w: %s waits for more than %s", ErrTimeout, p.route.name, conn.cfg.ReplyTimeout)
		case !complete.After(now):
			overdue = fmt.Errorf("%w: %s is not complete after %s", ErrTimeout, p.route.name, conn.cfg.DumpTimeout)
		}
		next = earlier(next, earlier(deadline, complete))
	}
	if quiet := conn.heard.Add(conn.cfg.ProbeInterval); quiet.After(now) {
		next = earlier(next, quiet)
	} else { // probes must not fill the window of a VPP that takes longer for a request
		silent = conn.queue.n < max(1, conn.cfg.Window/2)
	}
	conn.mu.Unlock()
	switch {
	case overdue != nil:
		conn.fail(overdue)
	case silent:
		poke(conn.probe)
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
