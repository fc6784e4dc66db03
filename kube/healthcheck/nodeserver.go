package healthcheck

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/kube/healthcheck/connlimit"
)

// NodeServerConfig is the configuration of a NodeServer. The zero value of a field means its
// default, except for Address and Handler.
type NodeServerConfig struct {
	// Address is "host:port". Required.
	Address string
	// Handler answers the requests; usually it is a NodeHealth. Required.
	Handler http.Handler
	// Listen opens the listener. It should not block. Default net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// OnProblem is called when the server cannot listen, again when the reason changes, and with
	// nil when it listens. It is called from the goroutine of Run and must not block. Default: only
	// the log has it.
	OnProblem func(err error)
	// RetryMin and RetryMax bound the delay before the address is tried again; it doubles. Default
	// 1 s and 30 s.
	RetryMin, RetryMax time.Duration
	// CloseTimeout is the time that requests under way get when Run ends. Default 1 s.
	CloseTimeout time.Duration
	// MostConnections is the largest number of connections; above it a new connection replaces the
	// longest idle one. Default 512.
	MostConnections int
	// OnLimit is called for each connection that is closed because of MostConnections, from any
	// goroutine; it must not block. Default: no call.
	OnLimit func()
	// Log gets the problems and the listener. Default slog.Default().
	Log *slog.Logger
}

// withDefaults returns the configuration with every zero field replaced.
func (c NodeServerConfig) withDefaults() NodeServerConfig {
	if c.Listen == nil {
		c.Listen = net.Listen
	}
	if c.OnProblem == nil {
		c.OnProblem = func(error) {}
	}
	if c.OnLimit == nil {
		c.OnLimit = func() {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.MostConnections = cmp.Or(c.MostConnections, nodeConnections)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 30*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, time.Second)
	return c
}

// NodeServer serves the health of the node (port 10256) or metrics (port 9993) at an address of
// its own, like kube-proxy. It retries a taken address until it is free; a kube-proxy may still use
// it. It replaces a listener that breaks.
type NodeServer struct {
	cfg     NodeServerConfig
	httpLog *log.Logger

	mu      sync.Mutex
	address net.Addr // nil while it does not listen

	reported string // Run only: the last problem
}

// NewNodeServer returns a server that does not listen yet.
func NewNodeServer(cfg NodeServerConfig) *NodeServer {
	cfg = cfg.withDefaults()
	return &NodeServer{cfg: cfg, httpLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug)}
}

// Address returns the address at which the server listens, "ip:port"; "" while it does not listen.
// Any goroutine may ask.
func (s *NodeServer) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.address == nil {
		return ""
	}
	return s.address.String()
}

// Run serves until ctx ends, then closes everything and returns nil. It is called once.
func (s *NodeServer) Run(ctx context.Context) error {
	backoff := delays(s.cfg.RetryMin, s.cfg.RetryMax)
	for ctx.Err() == nil {
		listener, err := s.cfg.Listen("tcp", s.cfg.Address)
		if err == nil {
			s.report(nil)
			backoff = delays(s.cfg.RetryMin, s.cfg.RetryMax)
			err = s.serve(ctx, listener)
		}
		if ctx.Err() != nil {
			break
		}
		// The delay is needed after a broken listener too, because another process may have taken
		// its address.
		delay := backoff.Step()
		s.report(err)
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
	return nil
}

// serve answers on a listener until it breaks or ctx ends.
func (s *NodeServer) serve(ctx context.Context, listener net.Listener) error {
	server := newServer(s.cfg.Handler, s.httpLog)
	bounded := connlimit.Bound(server, listener, s.cfg.MostConnections, s.cfg.OnLimit)
	s.listens(listener.Addr())
	defer s.listens(nil)
	broken := make(chan error, 1)
	go func() { broken <- server.Serve(bounded) }()
	s.cfg.Log.Info("listening", "address", listener.Addr().String())
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
		broken <- err
	}
	_ = listener.Close() // the next listener needs the address now
	deadline, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTimeout)
	defer cancel()
	if server.Shutdown(deadline) != nil {
		_ = server.Close()
	}
	<-broken
	return err
}

// listens publishes the address; nil = none.
func (s *NodeServer) listens(address net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = address
}

// report passes on a problem that differs from the last one.
func (s *NodeServer) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == s.reported {
		return
	}
	s.reported = text
	if err != nil {
		s.cfg.Log.Warn("cannot listen, retrying; does a kube-proxy still run here?",
			"address", s.cfg.Address, "err", err)
	}
	s.cfg.OnProblem(err)
}
