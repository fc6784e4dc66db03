package link

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
)

// session is one connection to one VPP from handshake to loss. Three goroutines work on it: the
// sender (send.go) alone writes to the transport, the transport's reader calls receive
// (receive.go), and the goroutine of Run supervises timeouts (watch.go). Callers submit jobs and
// wait. mu is never held across I/O or a callback.
type session struct {
	cfg      *Config
	log      *slog.Logger
	api      adapter.VppAPI
	registry *registry
	// ping and pingFrame are set before the session is used and never change.
	ping      *route
	pingFrame []byte

	// jobs hands requests to the sender.
	jobs chan job
	// probe requests a control_ping from the sender, space signals it that requests were answered,
	// event signals Run that VPP reported a change of an interface. All have room for one and are
	// filled without blocking.
	probe, space, event chan struct{}
	// dead is closed when the session is over; cause says why.
	dead chan struct{}
	// senders ends with the sender goroutine.
	senders sync.WaitGroup

	mu       sync.Mutex
	cause    error
	routes   map[reflect.Type]*route
	incoming map[uint16]*incoming
	queue    fifo
	// starved says that the sender waits for space.
	starved bool
	// heard is the time of the last frame; moved is the time at which the oldest request last
	// changed or received a detail; turned is the time at which it became the oldest.
	heard, moved, turned time.Time
	// strays counts frames that belong to no request.
	strays uint64
}

// newSession makes a session on a transport that is not connected yet.
func newSession(cfg *Config, api adapter.VppAPI, reg *registry, log *slog.Logger) *session {
	now := time.Now()
	s := &session{
		cfg: cfg, log: log, api: api, registry: reg,
		jobs:  make(chan job),
		probe: make(chan struct{}, 1), space: make(chan struct{}, 1), event: make(chan struct{}, 1),
		dead:   make(chan struct{}),
		routes: map[reflect.Type]*route{}, incoming: map[uint16]*incoming{},
		heard: now, moved: now, turned: now,
	}
	api.SetMsgCallback(s.receive)
	if transport, ok := api.(interface{ onEnd(func(error)) }); ok {
		transport.onEnd(s.fail)
	}
	return s
}

// fail ends the session; the first cause counts. Callers wake up by dead.
func (s *session) fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(cause)
}

// end is fail while s.mu is held.
func (s *session) end(cause error) {
	if s.cause == nil {
		s.cause = cause
		close(s.dead)
	}
}

// reason returns why the session ended, nil while it is open.
func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// close ends the session and the transport. It waits at most Config.CloseTimeout: the Disconnect of
// a transport that is not ours may write to a VPP that hangs, which cannot be interrupted. The
// goroutines that stay behind end when VPP goes away.
func (s *session) close(cause error) {
	s.fail(cause)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := disconnect(s.api); err != nil {
			s.log.Debug("cannot close the transport to VPP", "err", err)
		}
		s.senders.Wait()
	}()
	patience := time.NewTimer(s.cfg.CloseTimeout)
	defer patience.Stop()
	select {
	case <-closed:
	case <-patience.C:
		s.log.Warn("transport to VPP does not close, abandoning it", "after", s.cfg.CloseTimeout)
	}
}

// disconnect closes a transport and converts a panic of it into an error: GoVPP's client, as a
// transport of Config.Adapter, closes a channel twice when it is disconnected twice.
func disconnect(api adapter.VppAPI) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in disconnect: %v", p)
		}
	}()
	return api.Disconnect()
}

// poke fills a channel with room for one, without blocking.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

var _ Caller = (*session)(nil)

// name is the name of a message, also for a nil one.
func name(msg api.Message) string {
	if msg == nil {
		return "<nil>"
	}
	return msg.GetMessageName()
}
