//go:build !agent

package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

const (
	startTimeout        = 30 * time.Second // until the server answers
	defaultCloseTimeout = 15 * time.Second
	embeddedName        = "troupe"
	// A single member never connects to itself, so etcd opens no port for this address. The
	// address must not change.
	embeddedPeerURL = "http://127.0.0.1:2380"
	socketName      = "etcd.sock"
	// maxSocketPath is the longest path that fits into sun_path of sockaddr_un (unix(7)) with
	// its NUL.
	maxSocketPath = 107
	// A single member waits for no heartbeat, so its election timeout can be short. The default
	// of 1 s would be most of its start. Each tick costs CPU time at rest, 0.1 ms in all.
	embeddedTick, embeddedElection = 50, 250 // milliseconds; etcd wants at least five ticks
)

// EmbeddedConfig configures an etcd inside this process: a cluster of one member, for a single
// node, a demo or a test.
type EmbeddedConfig struct {
	// Dir is the directory of the data, a lock and, by default, the socket. It is created with
	// mode 0700 if it is missing. Required.
	Dir string
	// Listen is the address for clients: "host:port" (port 0 = any free port; a loopback
	// address, because there is no TLS), or the absolute path of a unix socket. Default: a
	// socket in Dir, or in a private temporary directory if the path in Dir is too long for a
	// socket.
	Listen string
	// NoSync disables fsync, for demos and tests. This is faster, but a power failure may
	// damage the data.
	NoSync bool
	// CloseTimeout limits Close. Default 15 s.
	CloseTimeout time.Duration
	// Logger receives the log of etcd, each line one level lower; nil = none.
	Logger *slog.Logger
}

// Embedded is a running etcd inside this process.
type Embedded struct {
	cfg       EmbeddedConfig
	server    *embed.Etcd
	client    *clientv3.Client
	lock      *dirLock
	cleanup   string
	closing   atomic.Bool
	log       *zap.Logger
	closeOnce sync.Once
	closeErr  error
}

// OpenEmbedded locks the data directory and checks its contents; it does not start etcd. It fails
// with ErrLocked if another process has the directory, and with ErrDamaged if the data are
// unusable. etcd itself would wait without limit, or end the process.
func OpenEmbedded(cfg EmbeddedConfig) (*Embedded, error) {
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, defaultCloseTimeout)
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open embedded etcd in %s: %w", cfg.Dir, err)
	}
	e := &Embedded{cfg: cfg, lock: lock}
	e.log = newZapLogger(cfg.Logger, &e.closing)
	if err := checkData(e.data(), e.log); err != nil {
		return nil, fmt.Errorf("open embedded etcd in %s: %w", cfg.Dir, errors.Join(err, e.Close()))
	}
	return e, nil
}

// Start starts etcd and waits until it serves, startTimeout is over or ctx ends. It must be called
// once, and Close only after Start has returned. Client, Endpoints and Err have values only after a
// successful start.
func (e *Embedded) Start(ctx context.Context) error {
	if err := e.start(ctx); err != nil {
		return fmt.Errorf("start embedded etcd in %s: %w", e.cfg.Dir, err)
	}
	return nil
}

// data is the data directory of etcd.
func (e *Embedded) data() string { return filepath.Join(e.cfg.Dir, dataDirName) }

// Client returns a client of this etcd. Its Endpoints are the addresses for other clients, for
// example for etcdctl. Close closes the client.
func (e *Embedded) Client() *clientv3.Client { return e.client }

// Err delivers the error of a listener that failed, and is closed at the end of etcd. An etcd that
// cannot write its log panics instead, because it has acknowledged writes that it cannot keep.
func (e *Embedded) Err() <-chan error { return e.server.Err() }

// Close stops etcd within CloseTimeout. Requests and watches of other clients end, the data are on
// disk, and the directory is unlocked. After ErrCloseTimeout the server continues to stop, and
// unlocks the directory when it has stopped. Further calls return the same error.
func (e *Embedded) Close() error {
	e.closeOnce.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Embedded) start(ctx context.Context) error {
	listen, err := e.listenURL()
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Name = embeddedName
	cfg.Dir = e.data()
	cfg.TickMs, cfg.ElectionMs = embeddedTick, embeddedElection
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = []url.URL{listen}
	cfg.AdvertiseClientUrls = []url.URL{listen}
	peer, err := url.Parse(embeddedPeerURL)
	if err != nil {
		return err
	}
	cfg.AdvertisePeerUrls = []url.URL{*peer}
	cfg.InitialCluster = embeddedName + "=" + embeddedPeerURL
	// A new data directory gets a new cluster ID, so that clients can distinguish an etcd
	// without its old data from a restarted one.
	cfg.InitialClusterToken = fmt.Sprintf("troupe-%d", time.Now().UnixNano())
	// Without compaction the database of a long-running agent would grow without limit.
	cfg.AutoCompactionRetention = "1h"
	// The clients of this etcd use gRPC only.
	cfg.EnableGRPCGateway = false
	cfg.UnsafeNoFsync = e.cfg.NoSync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(e.log)
	if e.server, err = startServer(ctx, cfg, startTimeout); err != nil {
		return err
	}
	endpoint := endpointOf(listen, e.server)
	e.client, err = NewClient(ClientConfig{Endpoints: []string{endpoint}, Logger: e.cfg.Logger})
	return err
}

// listenURL returns the address for clients.
func (e *Embedded) listenURL() (url.URL, error) {
	listen := e.cfg.Listen
	if listen == "" {
		dir, err := filepath.Abs(e.cfg.Dir)
		if err != nil {
			return url.URL{}, err
		}
		listen = filepath.Join(dir, socketName)
		if len(listen) > maxSocketPath {
			if e.cleanup, err = os.MkdirTemp("", "troupe-etcd-"); err != nil {
				return url.URL{}, fmt.Errorf("make directory of the socket: %w", err)
			}
			listen = filepath.Join(e.cleanup, socketName)
		}
	}
	if filepath.IsAbs(listen) {
		if len(listen) > maxSocketPath {
			return url.URL{}, fmt.Errorf("%w: path of socket %s is longer than %d bytes", ErrConfig, listen, maxSocketPath)
		}
		return url.URL{Scheme: "unix", Path: listen}, nil
	}
	return url.URL{Scheme: "http", Host: listen}, nil
}

// endpointOf returns the address of the server, with the port that the kernel chose.
func endpointOf(listen url.URL, server *embed.Etcd) string {
	if listen.Scheme == "http" && len(server.Clients) > 0 {
		listen.Host = server.Clients[0].Addr().String()
	}
	return listen.String()
}

// close closes the client first, so that etcd does not wait for its requests.
func (e *Embedded) close() error {
	var errs []error
	if e.client != nil {
		errs = append(errs, e.client.Close())
	}
	e.closing.Store(true)
	if e.server == nil {
		return errors.Join(append(errs, e.leave())...)
	}
	return errors.Join(append(errs, stopServer(e.server, e.cfg.CloseTimeout, e.leave))...)
}

// leave unlocks the directory after the end of the server, because another process must not open
// the database earlier.
func (e *Embedded) leave() error {
	var err error
	if e.cleanup != "" {
		err = os.RemoveAll(e.cleanup)
	}
	return errors.Join(err, e.lock.release())
}

// startServer starts etcd and waits until it serves. It returns ErrDamaged if etcd panics or wants
// to end the process.
func startServer(ctx context.Context, cfg *embed.Config, timeout time.Duration) (server *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	if server, err = embed.StartEtcd(cfg); err != nil {
		return nil, err
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-deadline.C:
		err = fmt.Errorf("not ready within %s", timeout)
	}
	return nil, errors.Join(err, stopServer(server, timeout, func() error { return nil }))
}

// stopServer stops the server, then calls then, and waits for both until the timeout. It runs in a
// goroutine, because the server's Close cannot be interrupted.
func stopServer(server *embed.Etcd, timeout time.Duration, then func() error) error {
	done := make(chan error, 1)
	go func() {
		server.Close()
		done <- then()
	}()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case err := <-done:
		return err
	case <-deadline.C:
		return fmt.Errorf("%w: %s", ErrCloseTimeout, timeout)
	}
}
