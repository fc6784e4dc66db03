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

	"k8s.io/apimachinery/pkg/util/wait"
)

// NodeServerConfig tells a NodeServer where to listen. The zero value of a field but Address and Handler means its default.
type NodeServerConfig struct {
	// Address is "host:port". Required.
	Address string
	// Handler answers, usually a NodeHealth. Required.
	Handler http.Handler
	// Listen opens the listener. It should not block. Default net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// OnProblem is told when nobody answers, again when the reason changes, and with nil when somebody does after all. It is called from the
	// goroutine of Run and must not block. Default: nobody is told; the log is.
	OnProblem func(err error)
	// RetryMin and RetryMax bound the delay before the address is tried again; it doubles. Default 1 s and 30 s.
	RetryMin, RetryMax time.Duration
	// CloseTimeout is how long requests under way may take at the end. Default 1 s.
	CloseTimeout time.Duration
	// Log gets what happens. Default slog.Default().
	Log *slog.Logger
}

func (c NodeServerConfig) withDefaults() NodeServerConfig {
	if c.Listen == nil {
		c.Listen = net.Listen
	}
	if c.OnProblem == nil {
		c.OnProblem = func(error) {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 30*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, time.Second)
	return c
}

// NodeServer serves the health of the node (kube-proxy: port 10256). An address that is taken, for example by a kube-proxy that still runs, is
// no reason to stop: it is tried again until it is free, and a listener that breaks gets a successor.
type NodeServer struct {
	cfg     NodeServerConfig
	httpLog *log.Logger

	mu      sync.Mutex
	address net.Addr // nil while it does not listen

	told string // Run only: the problem that was told last
}

// NewNodeServer returns a server that does not listen yet.
func NewNodeServer(cfg NodeServerConfig) *NodeServer {
	cfg = cfg.withDefaults()
	return &NodeServer{cfg: cfg, httpLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug)}
}

// Address is where the server listens, "ip:port"; "" while it does not. Any goroutine may ask.
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
	fresh := wait.Backoff{Duration: s.cfg.RetryMin, Factor: 2, Jitter: 0.2, Steps: 32, Cap: s.cfg.RetryMax}
	backoff := fresh
	for ctx.Err() == nil {
		listener, err := s.cfg.Listen("tcp", s.cfg.Address)
		if err == nil {
			s.tell(nil)
			backoff = fresh
			err = s.serve(ctx, listener)
		}
		if ctx.Err() != nil {
			break
		}
		delay := backoff.Step()
		s.tell(err)
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
	return nil
}

// serve answers on a listener until it breaks or ctx ends.
func (s *NodeServer) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.cfg.Handler, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: s.httpLog,
	}
	s.listens(listener.Addr())
	defer s.listens(nil)
	broken := make(chan error, 1)
	go func() { broken <- server.Serve(listener) }()
	s.cfg.Log.Info("node health listens", "address", listener.Addr())
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
		broken <- err
	}
	_ = listener.Close() // the next one may want the address now
	deadline, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTimeout)
	defer cancel()
	if server.Shutdown(deadline) != nil {
		_ = server.Close()
	}
	<-broken
	return err
}

func (s *NodeServer) listens(address net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = address
}

// tell passes on what is news.
func (s *NodeServer) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == s.told {
		return
	}
	s.told = text
	if err != nil {
		s.cfg.Log.Warn("nobody answers for the health of this node, it is tried again; does a kube-proxy still run here?",
			"address", s.cfg.Address, "err", err)
	}
	s.cfg.OnProblem(err)
}
