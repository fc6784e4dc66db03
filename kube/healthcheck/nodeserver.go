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
)

// NodeServer serves the health of the node (port 10256) or metrics (port 9993) at an address of
// its own, like kube-proxy. It retries a taken address until it is free; a kube-proxy may still use
// it. It replaces a listener that breaks.
type NodeServer struct {
	where   string // "host:port"
	handler http.Handler
	cfg     Config
	httpLog *log.Logger

	mu      sync.Mutex
	address net.Addr // nil while it does not listen

	reported string // Run only: the last problem
}

// NewNodeServer returns a server at an address, "host:port", that does not listen yet. It calls
// OnProblem with its address and no service, also when it listens.
func NewNodeServer(address string, handler http.Handler, cfg Config) *NodeServer {
	cfg.MostConnections = cmp.Or(cfg.MostConnections, nodeConnections)
	cfg = cfg.withDefaults()
	return &NodeServer{where: address, handler: handler, cfg: cfg, httpLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug)}
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
		listener, err := s.cfg.Listen("tcp", s.where)
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
	server := newServer(s.handler, s.httpLog)
	bounded := Bound(server, listener, s.cfg.MostConnections, s.cfg.OnLimit)
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
		s.cfg.Log.Warn("cannot listen, retrying; does a kube-proxy still run here?", "address", s.where, "err", err)
	}
	s.cfg.OnProblem(Problem{Address: s.where, Err: err})
}
