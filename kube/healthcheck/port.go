package healthcheck

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/troupe-vpp/troupe/kube/service"
)

// Limits of a connection. The port is open to everybody who reaches the node; a load balancer asks one small question at a time.
const (
	requestTimeout = 5 * time.Second
	idleTimeout    = 60 * time.Second
	headerBytes    = 8 << 10
)

// port is one listen address. Its fields belong to the goroutine of Run, but for the check that handlers read.
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
		check := p.check.Load() // the latest word there is
		answer := service.HealthAnswer(check.Service, check.Health, ok)
		header := w.Header()
		for name, values := range answer.Header {
			header[name] = values
		}
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body) // who does not wait for the answer does not get it
	})
}

// open begins to listen, or notes why it cannot and when to try again.
func (s *Servers) open(ctx context.Context, p *port) {
	l, err := s.cfg.Listen(network(p.addr), p.addr.String())
	if err != nil {
		s.failed(p, err)
		return
	}
	server := &http.Server{
		Handler: p.handler(s.cfg.Healthy), ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: s.httpLog,
	}
	p.server, p.listener, p.err, p.retry, p.backoff = server, l, nil, time.Time{}, s.backoff()
	s.log.Info("health check listens", "svc", p.check.Load().Service, "address", p.addr)
	s.running.Go(func() {
		err := server.Serve(l)
		select { // Run is told even if it has closed the listener itself; it knows
		case s.died <- death{p, server, err}:
		case <-ctx.Done():
		}
	})
}

// failed notes that an address is not served.
func (s *Servers) failed(p *port, err error) {
	delay := p.backoff.Step()
	p.err, p.retry = err, time.Now().Add(delay)
	s.log.Debug("health check does not listen", "svc", p.check.Load().Service, "address", p.addr, "err", err, "retry", delay)
}

// close stops to listen at once; what the address still answers says that the service has nothing here.
func (s *Servers) close(p *port) {
	p.check.Store(p.check.Load().closed())
	if p.server != nil {
		s.log.Info("health check closed", "svc", p.check.Load().Service, "address", p.addr)
		s.release(p)
	}
}

// release closes the listener now, because somebody else may want the port in a moment, and the connections in the background, within the
// time limit.
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
