package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
)

// Config configures the listeners of a Server and its further handlers.
type Config struct {
	// HTTPAddress is the address of the read-only listener; "" = none.
	HTTPAddress string
	// ControlSocket is the path of the unix socket that also serves state-changing calls; "" =
	// none.
	ControlSocket string
	// Metrics answers /metrics; nil = 404.
	Metrics http.Handler
	// Health answers /healthz, as kube-proxy does: whether load balancers may use this node; nil =
	// 404.
	Health http.Handler
	// Page answers / and all paths without a handler; nil = 404. Use may set it later.
	Page http.Handler
	// Probed is called with the status of every answer of "livez" and "readyz". It must not
	// block; nil = no call.
	Probed func(probe string, status int)
	// AllowedHosts are the host names besides localhost at which the read-only listener
	// answers: the name of the node and names from the configuration. IP addresses are always
	// allowed.
	AllowedHosts []string
	// MostConnections limits the connections of the read-only listener; above it a new one
	// replaces the longest idle one. 0 = 256.
	MostConnections int
	// Refused is called for each refused request and connection, from any goroutine. It must
	// not block; nil = no call.
	Refused func(Refusal)
	// Audit is called after each state-changing call on the control socket, from any goroutine.
	// It must not block; nil = no call.
	Audit func(Audit)
	// Redact removes the bodies of messages and the states of actors from the answers of the
	// read-only listener.
	Redact bool
	// Timeout limits a request. 0 = 10 s.
	Timeout time.Duration
	// Reads and Changes are further resources below /api/v1/, by path. Reads answer GET, and
	// Changes answer POST on the control socket.
	Reads, Changes map[string]func(r *http.Request) (any, error)
}

func (c *Config) observe(probe string, status int) {
	if c.Probed != nil {
		c.Probed(probe, status)
	}
}

func (c *Config) refused(r Refusal) {
	if c.Refused != nil {
		c.Refused(r)
	}
}

// Timeouts of clients and of the shutdown.
const (
	defaultTimeout    = 10 * time.Second
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 3 * time.Second
	maxHeader         = 16 << 10
	mostConnections   = 256
)

// Server is the HTTP server of the agent. Listen and then Serve must be called once each.
type Server struct {
	process api.Process
	backend api.Backend // the process if it is an agent; nil = it is another one
	cfg     Config
	log     *slog.Logger

	tcp, control net.Listener // set by Listen
	diffs        *reader[*api.Diff]
	sessions     *reader[*api.ServiceSessions] // for the read-only listener
	hosts        ownHosts                      // of the read-only listener
	ending       context.Context               // ends when Serve ends
	end          context.CancelFunc
}

// New returns a server that does not listen yet. A process that is not an api.Backend has probes,
// actors and the resources of cfg only.
func New(process api.Process, cfg Config, log *slog.Logger) *Server {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.MostConnections == 0 {
		cfg.MostConnections = mostConnections
	}
	s := &Server{process: process, cfg: cfg, log: log, hosts: newOwnHosts(cfg.AllowedHosts)}
	s.ending, s.end = context.WithCancel(context.Background())
	if backend, is := process.(api.Backend); is {
		s.backend = backend
		s.diffs = newReader(s.ending, cfg.Timeout, s.datedDiff)
		s.sessions = newReader(s.ending, cfg.Timeout, backend.ServiceSessions)
	}
	return s
}

// Use sets Config.Page of a server that does not serve yet, because a page asks the server
// (Public).
func (s *Server) Use(page http.Handler) { s.cfg.Page = page }

// Listen opens the listeners, so that the agent finds an address in use before it starts anything
// else. After an error no listener is open.
func (s *Server) Listen() error {
	if s.cfg.HTTPAddress != "" {
		l, err := net.Listen("tcp", s.cfg.HTTPAddress)
		if err != nil {
			return inUse(fmt.Errorf("listen for HTTP: %w", err), "api.httpAddress")
		}
		s.tcp = l
	}
	if s.cfg.ControlSocket != "" {
		l, err := listenUnix(s.cfg.ControlSocket)
		if err != nil {
			if s.tcp != nil {
				err = errors.Join(err, s.tcp.Close())
			}
			return inUse(fmt.Errorf("listen on the control socket: %w", err), "api.controlSocket")
		}
		s.control = l
	}
	return nil
}

// Addr returns the address of the read-only listener, with the actual port for port 0; nil if there
// is none.
func (s *Server) Addr() net.Addr {
	if s.tcp == nil {
		return nil
	}
	return s.tcp.Addr()
}

// Serve answers requests until ctx ends; it returns nil then, and an error if a listener fails.
func (s *Server) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		all  sync.WaitGroup
		once sync.Once
		why  error
	)
	serve := func(l net.Listener, control bool) {
		if l == nil {
			return
		}
		all.Go(func() {
			if err := s.serveOn(ctx, l, control); err != nil {
				once.Do(func() { why = err })
				stop()
			}
		})
	}
	serve(s.tcp, false)
	serve(s.control, true)
	<-ctx.Done()
	s.end()
	all.Wait()
	return why
}

// serveOn answers on one listener until ctx ends.
func (s *Server) serveOn(ctx context.Context, l net.Listener, control bool) error {
	server := &http.Server{
		Handler:           s.handler(control),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       s.cfg.Timeout,
		// later than the deadline of the request, which sends an answer
		WriteTimeout:   s.cfg.Timeout + time.Second,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader,
		ConnContext:    withPeer,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// Active requests outlive ctx: Shutdown waits for them, Close ends them.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := l
	if !control { // the file system decides who may connect to the control socket
		served = healthcheck.Bound(server, l, s.cfg.MostConnections, func() {
			s.cfg.refused(Refusal{
				Listener: ListenerHTTP, Why: RefusedConnections,
				Text: fmt.Sprintf("more than %d connections at the same time: the longest idle one is closed", s.cfg.MostConnections),
			})
		})
	}
	if err := healthcheck.Serve(ctx, server, served, shutdownTimeout); err != nil {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}

// guarded limits the time and the body of every request, and answers if a handler panics.
func (s *Server) guarded(next http.Handler) http.Handler {
	return s.contained(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.Timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	}))
}

// contained limits the body of every request, and answers if a handler panics.
func (s *Server) contained(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if reason := recover(); reason != nil {
				s.log.Error("HTTP handler panicked", "path", r.URL.Path, "err", fmt.Sprint(reason), "stack", string(debug.Stack()))
				fail(w, http.StatusInternalServerError, "internal error")
			}
		}()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// socketMode gives access to the control socket to the user of the agent only.
const socketMode = 0o600

// listenUnix listens on a unix socket that only its owner can open at any time. It creates the
// socket in a private directory, sets the mode, and moves it to its path. It replaces the socket
// file of a dead agent; a socket with a listener is an error.
func listenUnix(path string) (net.Listener, error) {
	if err := free(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// mode 0700; a short name, because a socket path has at most 107 bytes
	private, err := os.MkdirTemp(dir, ".c")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	temporary := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temporary, socketMode), os.Rename(temporary, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &controlListener{UnixListener: l, path: path}, nil
}

// free returns an error if a path is in use, nil if a new socket can have it.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("%s is in use by another agent: %w", path, syscall.EADDRINUSE)
	}
	return nil
}

// controlListener removes its socket file when it is closed, once.
type controlListener struct {
	*net.UnixListener
	path string
}

// Addr returns the path that clients use.
func (l *controlListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the file.
func (l *controlListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		_ = os.Remove(l.path)
	}
	return err
}

// inUse adds to the error of an address in use the setting of the address, and the usual reason.
func inUse(err error, setting string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf("%w (%s): does a second agent run on this node?", err, setting)
}
