package healthcheck

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/troupe-vpp/troupe/kube/service"
)

// Limits of a connection. Every client that reaches the node can connect; a load balancer sends one
// small request at a time.
const (
	requestTimeout = 5 * time.Second
	idleTimeout    = 60 * time.Second
	headerBytes    = 8 << 10
	// The port of a service gets the probes of that service. The port of the node gets the probes
	// of all services with externalTrafficPolicy Cluster.
	portConnections = 128
	nodeConnections = 512
)

// delays returns the back-off of an address that cannot be opened.
func delays(shortest, longest time.Duration) wait.Backoff {
	return wait.Backoff{Duration: shortest, Factor: 2, Jitter: 0.2, Steps: 32, Cap: longest}
}

// socket serves a handler at one address: it tries again while it cannot listen, and replaces a
// listener that breaks.
type socket struct {
	network, address string
	handler          http.Handler
	cfg              *Config
	httpLog          *log.Logger
	// called after each try and after the end of a listener; it must not block
	changed func()

	// mu guards the fields below; release, Status and the goroutine of run use them.
	mu       sync.Mutex
	listener net.Listener // nil while it does not listen
	err      error        // why it does not listen
	released bool
}

// newSocket returns a socket that does not listen yet.
func newSocket(network, address string, handler http.Handler, cfg *Config, changed func()) *socket {
	return &socket{
		network: network, address: address, handler: handler, cfg: cfg, changed: changed, httpLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
}

// state returns the address at which the socket listens, or why it does not listen.
func (s *socket) state() (at net.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil, s.err
	}
	return s.listener.Addr(), nil
}

// listen tries to listen, once.
func (s *socket) listen() {
	s.mu.Lock()
	if !s.released {
		s.listener, s.err = s.cfg.Listen(s.network, s.address)
		if s.err != nil {
			s.listener = nil
		}
	}
	s.mu.Unlock()
	s.changed()
}

// release closes the listener at once and for ever, because another listener may need the address.
func (s *socket) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = true
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

// run serves until ctx ends, then closes everything. listen was called before.
func (s *socket) run(ctx context.Context) {
	defer s.release()
	backoff := delays(s.cfg.RetryMin, s.cfg.RetryMax)
	for ctx.Err() == nil {
		s.mu.Lock()
		listener := s.listener
		s.mu.Unlock()
		if listener != nil {
			backoff = delays(s.cfg.RetryMin, s.cfg.RetryMax)
			err := s.serve(ctx, listener)
			s.mu.Lock()
			s.listener, s.err = nil, err
			s.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			s.changed()
		}
		// The delay is needed after a broken listener too, because another process may have taken
		// its address.
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff.Step()):
			s.listen()
		}
	}
}

// serve answers on a listener until it breaks or ctx ends.
func (s *socket) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: s.httpLog,
	}
	return Serve(ctx, server, Bound(server, listener, s.cfg.MostConnections, s.cfg.OnLimit), s.cfg.CloseTimeout)
}

// Serve answers on a listener until ctx ends, and returns nil, or until the listener breaks, and
// returns why. It closes the listener at once, because the next one needs the address. Requests
// under way get grace to end; then their connections are closed.
func Serve(ctx context.Context, server *http.Server, listener net.Listener, grace time.Duration) error {
	broken := make(chan error, 1)
	go func() { broken <- server.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
		broken <- err
	}
	_ = listener.Close()
	deadline, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if server.Shutdown(deadline) != nil {
		_ = server.Close()
	}
	<-broken
	return err
}

// port is the address of a service. Its fields belong to the goroutine of Run, except for check,
// which handlers read.
type port struct {
	*socket
	check  atomic.Pointer[Check]
	cancel context.CancelFunc
}

// handler answers any request for any path, as kube-proxy does.
func (p *port) handler(healthy func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ok := healthy()
		check := p.check.Load()
		answer := service.HealthAnswer(check.Service, check.Health, ok)
		header := w.Header()
		for name, values := range answer.Header {
			header[name] = values
		}
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body) // the client may have gone
	})
}

// open begins to listen.
func (s *Servers) open(ctx context.Context, addr netip.AddrPort, check *Check) {
	p := &port{}
	p.check.Store(check)
	p.socket = newSocket(network(addr), addr.String(), p.handler(s.cfg.Healthy), &s.cfg, func() {
		select {
		case s.moved <- struct{}{}:
		default: // Run has not seen the last one yet
		}
	})
	s.ports[addr] = p
	p.listen()
	ctx, p.cancel = context.WithCancel(ctx)
	s.running.Go(func() { p.run(ctx) })
	if at, _ := p.state(); at != nil {
		s.log.Info("health check listens", "svc", check.Service, "address", addr)
	}
}

// close stops listening at once. Requests under way get the answer that the service has no
// endpoints here.
func (s *Servers) close(p *port) {
	p.check.Store(p.check.Load().closed())
	if at, _ := p.state(); at != nil {
		s.log.Info("health check closed", "svc", p.check.Load().Service, "address", p.address)
	}
	p.release()
	p.cancel()
}

// NodeServer serves the health of the node (port 10256) or metrics (port 9993) at an address of
// its own, like kube-proxy. It retries a taken address until it is free; a kube-proxy may still use
// it. It replaces a listener that breaks.
type NodeServer struct {
	socket   *socket
	cfg      Config
	reported string // Run only: the last problem
}

// NewNodeServer returns a server at an address, "host:port", that does not listen yet. It calls
// OnProblem with its address and no service, also when it listens.
func NewNodeServer(address string, handler http.Handler, cfg Config) *NodeServer {
	cfg.MostConnections = cmp.Or(cfg.MostConnections, nodeConnections)
	s := &NodeServer{cfg: cfg.withDefaults()}
	s.socket = newSocket("tcp", address, handler, &s.cfg, s.report)
	return s
}

// Address returns the address at which the server listens, "ip:port"; "" while it does not listen.
// Any goroutine may ask.
func (s *NodeServer) Address() string {
	if at, _ := s.socket.state(); at != nil {
		return at.String()
	}
	return ""
}

// Run serves until ctx ends, then closes everything and returns nil. It is called once.
func (s *NodeServer) Run(ctx context.Context) error {
	s.socket.listen()
	s.socket.run(ctx)
	return nil
}

// report passes on a problem that differs from the last one.
func (s *NodeServer) report() {
	text := ""
	at, err := s.socket.state()
	if at != nil {
		s.cfg.Log.Info("listening", "address", at.String())
	} else {
		text = err.Error()
	}
	if text == s.reported {
		return
	}
	s.reported = text
	if err != nil {
		s.cfg.Log.Warn("cannot listen, retrying; does a kube-proxy still run here?", "address", s.socket.address, "err", err)
	}
	s.cfg.OnProblem(Problem{Address: s.socket.address, Err: err})
}
