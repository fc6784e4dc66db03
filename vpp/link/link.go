package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/troupe-vpp/troupe/messages"
)

// Link is the connection of this process to one VPP. Run maintains it; Do and Dump use it from any
// goroutine, before, during and after Run: without a connection they return ErrDown at once.
type Link struct {
	cfg      Config
	log      *slog.Logger
	registry *registry
	current  atomic.Pointer[connection]
	// running guards ration: it belongs to Run, or to Close.
	running atomic.Bool
	ration  ration
}

var _ Caller = (*Link)(nil)

// New makes a link. It connects when Run is called.
func New(cfg Config, log *slog.Logger) *Link {
	cfg = cfg.withDefaults()
	if cfg.Stamp == nil {
		cfg.Stamp = socketStamp(cfg.Socket)
	}
	if cfg.transport == nil {
		cfg.transport = func() transport { return newSocket(cfg.Socket) }
	}
	return &Link{cfg: cfg, log: log, registry: newRegistry()}
}

// Do implements Caller on the current connection. A call stays with the connection it began with.
func (l *Link) Do(ctx context.Context, reqs []api.Message) ([]Result, error) {
	if conn := l.current.Load(); conn != nil {
		return conn.Do(ctx, reqs)
	}
	results := newCall(len(reqs)).results
	complete(results, reqs, ErrDown)
	return results, ErrDown
}

// Dump implements Caller on the current connection, every page of it.
func (l *Link) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	if conn := l.current.Load(); conn != nil {
		return conn.Dump(ctx, req, each)
	}
	return fmt.Errorf("dump %s: %w", name(req), ErrDown)
}

// Run maintains the connection: it connects, reports, watches, and reconnects without limit. on is
// called from Run's goroutine with every change of the state, the first time at once; the message
// belongs to the receiver. When on reports a connection that is up, Do and Dump use it; when on
// reports that it is down, they have stopped using it and every call on it has been released or is
// about to be. Run returns nil after ctx is done, within Config.CloseTimeout. It may be called
// again: all runs of a link together have at most three connections that VPP does not answer, so
// every client of this process uses the same link.
func (l *Link) Run(ctx context.Context, on func(*messages.LinkState)) error {
	if !l.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer l.running.Store(false)
	r := runner{link: l, report: on, pause: newBackoff(l.cfg.BackoffMin, l.cfg.BackoffMax)}
	r.down("not connected yet")
	for ctx.Err() == nil {
		if wait := r.once(ctx); wait > 0 {
			sleep(ctx, wait)
		}
	}
	r.down("closed")
	return nil
}

// runner is the state of one Run.
type runner struct {
	link   *Link
	report func(*messages.LinkState)
	pause  wait.Backoff
	// connections counts the connections so far.
	connections uint64
	// reason is what was reported last, "" for a connection that is up and before the first
	// report.
	reason string
}

// once makes one attempt, or goes on with the one that waits, and serves its connection to the end.
// It returns how long to wait before the next.
func (r *runner) once(ctx context.Context) time.Duration {
	a, err := r.link.begin()
	var id identity
	if err == nil {
		id, err = r.await(ctx, a)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return 0
	case errors.Is(err, errRestarted), errors.Is(err, errReplaced):
		return r.link.cfg.BackoffMin
	case errors.Is(err, fs.ErrNotExist):
		// VPP is not started yet, which is not a failure.
		r.down(fmt.Sprintf("waiting for VPP: %v", err))
		r.pause = newBackoff(r.link.cfg.BackoffMin, r.link.cfg.BackoffMax)
		return r.link.cfg.PollInterval
	case err != nil:
		r.down(err.Error())
		return r.pause.Step()
	}
	began := time.Now()
	r.serve(ctx, a.connection, id)
	if time.Since(began) > r.link.cfg.BackoffMax {
		r.pause = newBackoff(r.link.cfg.BackoffMin, r.link.cfg.BackoffMax)
	}
	return r.pause.Step()
}

// serve lets a connection be used until it is over.
func (r *runner) serve(ctx context.Context, conn *connection, id identity) {
	l := r.link
	r.connections++
	l.current.Store(conn)
	l.log.Info("connected to VPP", "boot", id.boot, "version", id.version, "session", r.connections)
	r.tell(&messages.LinkState{Up: true, Boot: id.boot, Version: id.version, Session: r.connections, Features: id.features})
	hint, election := func() {}, func() {}
	if l.cfg.OnEvent != nil {
		hint = l.cfg.OnEvent
		hint()
	}
	if l.cfg.OnElection != nil {
		election = l.cfg.OnElection
	}
	conn.watch(ctx, hint, election)
	l.current.Store(nil)
	cause := conn.reason()
	level := slog.LevelWarn
	if errors.Is(cause, errClosed) {
		level = slog.LevelInfo
	}
	l.log.Log(ctx, level, "connection to VPP ended", "err", cause, "session", r.connections)
	r.down(cause.Error())
	conn.close(cause)
	l.ration.ended(cause)
}

// down reports that there is no connection, once per reason.
func (r *runner) down(reason string) {
	if r.reason != reason {
		r.tell(&messages.LinkState{Reason: reason, Session: r.connections})
	}
}

// tell reports a state.
func (r *runner) tell(state *messages.LinkState) {
	r.reason = state.GetReason()
	r.report(state)
}

// Quiet passes the log lines of GoVPP's client of the stats segment to log, at debug level: every
// failure that matters is returned as an error as well. GoVPP keeps its logger in an unguarded
// package variable, so call it once, before the first connection.
func Quiet(log *slog.Logger) {
	statsclient.Log.SetOutput(quietWriter{log.With("component", "govpp/statsclient")})
}

// quietWriter logs what is written, one line at a time.
type quietWriter struct{ log *slog.Logger }

func (w quietWriter) Write(line []byte) (int, error) {
	w.log.Debug("GoVPP logged a line", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}
