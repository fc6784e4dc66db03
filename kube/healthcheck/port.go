package healthcheck

import (
	"context"
	"log"
	"net"
	"net/http"
	"net/netip"
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

// newServer returns a server with the limits of a connection.
func newServer(handler http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: errors,
	}
}

// delays returns the back-off of an address that cannot be opened.
func delays(shortest, longest time.Duration) wait.Backoff {
	return wait.Backoff{Duration: shortest, Factor: 2, Jitter: 0.2, Steps: 32, Cap: longest}
}

// port is one listen address. Its fields belong to the goroutine of Run, except for check, which
// handlers read.
type port struct {
	addr  netip.AddrPort
	check atomic.Pointer[Check]

	server   *http.Server // nil while it is not listening
	listener net.Listener
	err      error // why it is not listening
	backoff  wait.Backoff
	retry    time.Time
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

// open begins to listen. If it fails, it notes the reason and the time of the next try.
func (s *Servers) open(ctx context.Context, p *port) {
	l, err := s.cfg.Listen(network(p.addr), p.addr.String())
	if err != nil {
		s.failed(p, err)
		return
	}
	server := newServer(p.handler(s.cfg.Healthy), s.httpLog)
	bounded := Bound(server, l, s.cfg.MostConnections, s.cfg.OnLimit)
	p.server, p.listener, p.err, p.retry, p.backoff = server, l, nil, time.Time{}, delays(s.cfg.RetryMin, s.cfg.RetryMax)
	s.log.Info("health check listens", "svc", p.check.Load().Service, "address", p.addr)
	s.running.Go(func() {
		err := server.Serve(bounded)
		select { // also after Run has closed the listener itself
		case s.ended <- serverEnd{p, server, err}:
		case <-ctx.Done():
		}
	})
}

// failed notes that an address is not served.
func (s *Servers) failed(p *port, err error) {
	delay := p.backoff.Step()
	p.err, p.retry = err, time.Now().Add(delay)
	s.log.Debug("health check cannot listen, retrying", "svc", p.check.Load().Service, "address", p.addr, "err", err, "retry", delay)
}

// close stops listening at once. Requests under way get the answer that the service has no
// endpoints here.
func (s *Servers) close(p *port) {
	p.check.Store(p.check.Load().closed())
	if p.server != nil {
		s.log.Info("health check closed", "svc", p.check.Load().Service, "address", p.addr)
		s.release(p)
	}
}

// release closes the listener at once, because another listener may need the port, and closes the
// connections in the background, within the time limit.
func (s *Servers) release(p *port) {
	server := p.server
	_ = p.listener.Close()
	p.server, p.listener = nil, nil
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
}
