package link

import (
	"log/slog"
	"reflect"
	"sync"
	"time"

	"go.fd.io/govpp/api"
)

// connection is a connection with one VPP, from its handshake to its end. Three goroutines work on
// it: the sender (send.go) alone writes to the transport, the transport's reader calls receive
// (receive.go), and the goroutine of Run supervises timeouts (watch.go). Callers submit jobs and
// wait. mu is never held across I/O or a callback.
type connection struct {
	// Set by newConnection and never changed.
	cfg      *Config
	log      *slog.Logger
	api      transport
	registry *registry
	// ping and pingFrame are set by the handshake, before any caller has the connection.
	ping      *route
	pingFrame []byte

	// Any goroutine may use the channels. jobs hands requests to the sender.
	jobs chan job
	// probe requests a control_ping from the sender, space signals it that requests were
	// answered, event and election signal Run that VPP reported a change of an interface or of a
	// virtual router. All have room for one and are filled without blocking.
	probe, space, event, election chan struct{}
	// dead is closed when the connection is over; cause says why.
	dead chan struct{}
	// senders ends with the sender goroutine.
	senders sync.WaitGroup

	// mu guards the fields below.
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

// newConnection makes a connection on a transport that is not connected yet.
func newConnection(cfg *Config, api transport, reg *registry, log *slog.Logger) *connection {
	now := time.Now()
	conn := &connection{
		cfg: cfg, log: log, api: api, registry: reg,
		jobs:  make(chan job),
		probe: make(chan struct{}, 1), space: make(chan struct{}, 1), event: make(chan struct{}, 1), election: make(chan struct{}, 1),
		dead:   make(chan struct{}),
		routes: map[reflect.Type]*route{}, incoming: map[uint16]*incoming{},
		heard: now, moved: now, turned: now,
	}
	api.listen(conn.receive, conn.fail)
	return conn
}

// fail ends the connection; the first cause counts. Callers wake up by dead.
func (conn *connection) fail(cause error) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.end(cause)
}

// end is fail while conn.mu is held.
func (conn *connection) end(cause error) {
	if conn.cause == nil {
		conn.cause = cause
		close(conn.dead)
	}
}

// reason returns why the connection ended, nil while it is open.
func (conn *connection) reason() error {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.cause
}

// close ends the connection and the transport. It waits at most Config.CloseTimeout. The goroutines
// that stay behind end when VPP goes away.
func (conn *connection) close(cause error) {
	conn.fail(cause)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := conn.api.Disconnect(); err != nil {
			conn.log.Debug("cannot close the transport to VPP", "err", err)
		}
		conn.senders.Wait()
	}()
	patience := time.NewTimer(conn.cfg.CloseTimeout)
	defer patience.Stop()
	select {
	case <-closed:
	case <-patience.C:
		conn.log.Warn("transport to VPP does not close, abandoning it", "after", conn.cfg.CloseTimeout)
	}
}

// poke fills a channel with room for one, without blocking.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

var _ Caller = (*connection)(nil)

// name is the name of a message, also for a nil one.
func name(msg api.Message) string {
	if msg == nil {
		return "<nil>"
	}
	return msg.GetMessageName()
}
