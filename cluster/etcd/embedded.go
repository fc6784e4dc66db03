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
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
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

const (
	dataDirName  = "data"
	lockFileName = "lock"
)

// dirLock locks a data directory for this process; the kernel releases it at the end of the
// process.
type dirLock struct{ file *os.File }

// lockDir creates the directory if it is missing and locks it, without waiting.
func lockDir(dir string) (*dirLock, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no data directory given", ErrConfig)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := tryLock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &dirLock{file: file}, nil
}

func (l *dirLock) release() error { return l.file.Close() }

// tryLock takes an exclusive flock(2), like bbolt on its file, so that it fails while any etcd has
// the database open.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

// checkData checks the data of an earlier process before etcd reads them. etcd itself waits without
// limit for a database that another etcd has open. If it cannot read the database, it panics in a
// goroutine of its own, in which we cannot recover.
func checkData(data string, log *zap.Logger) (err error) {
	member := filepath.Join(data, "member")
	entries, err := os.ReadDir(member)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	if err := probeDatabase(filepath.Join(member, "snap", "db")); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	if err := readData(data, log); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// readData reads the database and the log like etcd, and panics in the same cases. It is etcd's own
// verification without two of its rules, which are true only after an orderly stop. etcd syncs the
// entries of its log but not the commit index, so the database may be ahead of that index after a
// kill. etcd accepts this; a stricter check would keep a killed agent from starting.
func readData(data string, log *zap.Logger) error {
	db := backend.NewDefaultBackend(log, datadir.ToBackendFileName(data))
	defer db.Close() //nolint:errcheck // opened for reading
	wals := datadir.ToWALDir(data)
	snapshots, err := wal.ValidSnapshotEntries(log, wals)
	if err != nil {
		return err
	}
	if len(snapshots) == 0 {
		return errors.New("the log has no beginning")
	}
	snapshot := snapshots[len(snapshots)-1]
	if _, err := wal.Verify(log, wals, snapshot); err != nil {
		return err
	}
	if index, _ := schema.ReadConsistentIndex(db.ReadTx()); index < snapshot.GetIndex() {
		return fmt.Errorf("the database is at entry %d, before the snapshot of the log at %d", index, snapshot.GetIndex())
	}
	return nil
}

// probeDatabase reports ErrLocked if another process has the database open.
func probeDatabase(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	}
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return errors.Join(tryLock(file), file.Close())
}
