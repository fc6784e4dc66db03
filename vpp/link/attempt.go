package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// maxConnections is how many connections this process may have with one VPP that answers none of
// them, closed ones included. VPP 25.10 keeps a closed connection until the process of its API
// runs. With 16 connections that are closed or wait for that process, VPP polls its sockets for
// ever and nothing else runs. The other 13 are for other clients.
const maxConnections = 3

// Why Run gives up waiting for an attempt.
var (
	errRestarted = errors.New("another VPP listens")
	errReplaced  = errors.New("replaced by another connection")
	// errSpent needs a transport whose Connect gives up by itself: otherwise the last
	// connection waits.
	errSpent = errors.New("VPP has not noticed the end of the connections before: waiting for its restart")
)

// attempt is a connection whose handshake is under way. It does not end with the Run that began it.
type attempt struct {
	connection *connection
	// stamp is the VPP that it is with.
	stamp  string
	began  time.Time
	cancel context.CancelFunc
	// outcome has room for the one value.
	outcome chan outcome
}

// outcome is the end of a handshake.
type outcome struct {
	id  identity
	err error
}

// ration counts the connections with one VPP since it last proved that the process of its API runs.
// Proofs are an answer, the end of a connection by VPP, and another VPP.
type ration struct {
	// stamp is the VPP that they are with.
	stamp string
	// closed are the connections that this process has closed.
	closed int
	// since is when the first connection after the last proof was opened; zero = there is none.
	since time.Time
	// waiting is the connection that is not closed; nil = there is none, or VPP has answered on
	// it.
	waiting *attempt
}

// proven forgets all connections except the one that waits.
func (r *ration) proven() { r.closed, r.since = 0, time.Time{} }

// ended counts a connection that is over, or that VPP has answered (nil).
func (r *ration) ended(err error) {
	var dial *net.OpError
	switch {
	case err == nil, endedByVPP(err):
		r.proven()
	case errors.As(err, &dial) && dial.Op == "dial": // there was no connection
	case answered(err):
		r.proven()
		r.closed = 1
	default:
		r.closed++
	}
}

// endedByVPP reports whether VPP closed or refused a connection.
func endedByVPP(err error) bool {
	for _, cause := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, fs.ErrNotExist} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// answered reports whether an error of a handshake is about what VPP answered.
func answered(err error) bool {
	var retval *RetvalError
	return errors.Is(err, ErrProtocol) || errors.Is(err, ErrUnsupported) || errors.As(err, &retval)
}

// begin returns the attempt that waits for VPP, or else begins one.
func (l *Link) begin() (*attempt, error) {
	r := &l.ration
	if r.waiting != nil {
		return r.waiting, nil
	}
	stamp, err := l.cfg.Stamp()
	if err != nil {
		return nil, err
	}
	if stamp != r.stamp {
		*r = ration{stamp: stamp}
	}
	if r.closed >= maxConnections {
		return nil, errSpent
	}
	ctx, cancel := context.WithCancel(context.Background())
	conn := newConnection(&l.cfg, l.cfg.transport(), l.registry, l.log)
	a := &attempt{connection: conn, stamp: stamp, began: time.Now(), cancel: cancel, outcome: make(chan outcome, 1)}
	if r.since.IsZero() {
		r.since = a.began
	}
	r.waiting = a
	go func() {
		id, err := l.open(ctx, conn, stamp)
		a.outcome <- outcome{id, err}
	}()
	return a, nil
}

// settle ends the wait for an attempt that has an outcome.
func (l *Link) settle(a *attempt, o outcome) (identity, error) {
	a.cancel()
	l.ration.waiting = nil
	l.ration.ended(o.err)
	return o.id, o.err
}

// abandon closes the attempt that waits for VPP, which takes at most Config.CloseTimeout.
func (l *Link) abandon(a *attempt, why error) {
	a.cancel()
	patience := time.NewTimer(l.cfg.CloseTimeout)
	defer patience.Stop()
	select {
	case o := <-a.outcome:
		if o.err == nil { // VPP answered at the last moment
			a.connection.close(why)
		}
	case <-patience.C:
	}
	l.ration.waiting = nil
	l.ration.ended(why)
}

// await waits for an attempt as long as VPP is busy: a connection that is closed and opened again
// helps neither side. It gives up when another VPP listens, and, for the case that VPP has lost the
// first frame, after a pause of minutes where one more connection is left. The attempt goes on
// waiting when ctx is done.
func (r *runner) await(ctx context.Context, a *attempt) (identity, error) {
	l := r.link
	silent := time.NewTimer(time.Until(a.began.Add(l.cfg.ConnectTimeout)))
	defer silent.Stop()
	replace := time.NewTimer(time.Until(a.began.Add(l.cfg.ReplaceAfter << l.ration.closed)))
	defer replace.Stop()
	look := time.NewTicker(l.cfg.BackoffMax)
	defer look.Stop()
	for {
		select {
		case o := <-a.outcome:
			return l.settle(a, o)
		case <-ctx.Done():
			return identity{}, ctx.Err()
		case <-silent.C:
			r.down(fmt.Sprintf("VPP does not answer at %s since %s (%v): its main thread is busy or hangs, or it is no VPP; waiting for an answer",
				l.cfg.Socket, l.ration.since.UTC().Format(time.RFC3339), ErrTimeout))
		case <-look.C:
			if stamp, err := l.cfg.Stamp(); err == nil && stamp != a.stamp {
				l.abandon(a, errRestarted)
				return identity{}, errRestarted
			}
		case <-replace.C:
			if l.ration.closed+2 <= maxConnections {
				l.abandon(a, errReplaced)
				return identity{}, errReplaced
			}
		}
	}
}

// Close closes a connection that still waits for VPP's first answer, which the end of Run leaves
// open for the next Run. It returns ErrRunning while Run runs.
func (l *Link) Close() error {
	if !l.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer l.running.Store(false)
	if a := l.ration.waiting; a != nil {
		l.abandon(a, errClosed)
	}
	return nil
}

// newBackoff returns pauses that double from least to most, each shortened by a random part of up
// to a half, so that the agents of a cluster do not connect in step. The library only lengthens a
// pause, so it gets half of each bound.
func newBackoff(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least / 2, Factor: 2, Jitter: 1, Steps: 32, Cap: most / 2}
}

// sleep waits, at most until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
