package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	defaultDialTimeout = 5 * time.Second
	// etcd closes connections of clients that send keep-alive pings more often than every 5 s.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
	// The back-off of gRPC grows to two minutes by default; a node must rejoin sooner.
	reconnectMin = 100 * time.Millisecond
	reconnectMax = 3 * time.Second
)

// ClientConfig configures a client of etcd.
type ClientConfig struct {
	// Endpoints are URLs (http, https, unix) or host:port pairs of the members; at least one.
	Endpoints []string
	// CA, Cert and Key are PEM files: the certificate authority of the servers, and the certificate
	// and key of this client. CA alone verifies the server only; Cert and Key need each other. All
	// are optional; without CA the client uses the roots of the system. It reads Cert and Key again
	// for every connection, so that a rotated pair needs no restart.
	CA, Cert, Key string
	// DialTimeout limits the time to connect. Default 5 s.
	DialTimeout time.Duration
	// Logger receives the log of the client, each line one level lower; nil = none.
	Logger *slog.Logger
}

// NewClient makes a client of etcd v3. It does not connect, so it does not fail while etcd is down;
// the Syncer retries without limit. It fails if the endpoints or the TLS files are unusable. The
// caller closes the client after every Syncer that uses it has returned.
func NewClient(cfg ClientConfig) (*clientv3.Client, error) {
	tlsConfig, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            cfg.Endpoints,
		DialTimeout:          cmp.Or(cfg.DialTimeout, defaultDialTimeout),
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		TLS:                  tlsConfig,
		Logger:               newZapLogger(cfg.Logger, nil),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectMin, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMax},
			MinConnectTimeout: cmp.Or(cfg.DialTimeout, defaultDialTimeout),
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("make etcd client of %s: %w", strings.Join(cfg.Endpoints, ","), err)
	}
	return client, nil
}

// tls returns nil if no file is set and no endpoint needs TLS.
func (cfg ClientConfig) tls() (*tls.Config, error) {
	if (cfg.Cert == "") != (cfg.Key == "") {
		return nil, fmt.Errorf("%w: etcd client certificate and key must be given together", ErrConfig)
	}
	if cfg.CA == "" && cfg.Cert == "" && !cfg.wantsTLS() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CA != "" {
		roots, err := readRoots(cfg.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	if cfg.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
			if err != nil {
				return nil, fmt.Errorf("load etcd client certificate %s: %w", cfg.Cert, err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}

func (cfg ClientConfig) wantsTLS() bool {
	for _, e := range cfg.Endpoints {
		if strings.HasPrefix(e, "https://") || strings.HasPrefix(e, "unixs://") {
			return true
		}
	}
	return false
}

// readRoots reads a PEM file. A file without a certificate is an error, because no server would be
// trusted.
func readRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read etcd CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read etcd CA %s: %w", file, errors.New("no certificate in it"))
	}
	return roots, nil
}

var (
	// ErrConfig marks an error of the configuration.
	ErrConfig = errors.New("invalid configuration of etcd")
	// ErrLocked is returned when another process holds the data directory of an embedded etcd.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrDamaged is returned when the data directory of an embedded etcd fails the check before the
	// start.
	ErrDamaged = errors.New("data directory is damaged")
	// ErrCloseTimeout is returned if an embedded etcd did not stop in time; it continues to stop in
	// the background.
	ErrCloseTimeout = errors.New("embedded etcd did not stop in time")
)

// Timeout of a request for documents, and the pause before a retry.
const (
	documentsTimeout = 5 * time.Second
	documentsRetry   = time.Second
)

// Documents follows the keys under a prefix, which ends with "/", until ctx ends. Whenever a
// document may have changed, it calls out from its own goroutine with all values, by the rest of
// their keys. A failed read calls out with the error, and is retried without limit.
//
// After each change it reads all documents again instead of applying the change, because they are
// few and change seldom.
func Documents(ctx context.Context, client *clientv3.Client, prefix string, out func(documents map[string][]byte, err error)) {
	for ctx.Err() == nil {
		revision, err := listDocuments(ctx, client, prefix, out)
		if err == nil {
			err = awaitChange(ctx, client, prefix, revision+1)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		out(nil, fmt.Errorf("read %s* from etcd: %w", prefix, err))
		select {
		case <-ctx.Done():
		case <-time.After(documentsRetry):
		}
	}
}

// listDocuments calls out with all documents and returns their revision.
func listDocuments(ctx context.Context, client *clientv3.Client, prefix string, out func(map[string][]byte, error)) (int64, error) {
	brief, cancel := context.WithTimeout(ctx, documentsTimeout)
	defer cancel()
	response, err := client.Get(brief, prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	documents := make(map[string][]byte, len(response.Kvs))
	for _, kv := range response.Kvs {
		documents[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Value
	}
	out(documents, nil)
	return response.Header.GetRevision(), nil
}

// errWatchEnded means that etcd ended a watch without an error.
var errWatchEnded = errors.New("the watch ended")

// awaitChange returns nil after a change since a revision, or if etcd has compacted that revision.
func awaitChange(ctx context.Context, client *clientv3.Client, prefix string, revision int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for response := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision)) {
		switch {
		case response.CompactRevision > 0, len(response.Events) > 0:
			return nil
		case response.Err() != nil:
			return response.Err()
		}
	}
	return errWatchEnded
}

// newZapLogger returns the zap logger that etcd needs; it writes to slog. Every line is one level
// lower than in etcd, because etcd also returns relevant failures as errors. It panics when etcd
// wants to end the process, so that the caller can make an error of it. While closing is set (nil =
// never), all lines have the level debug, because etcd logs the close of its listeners as errors.
func newZapLogger(log *slog.Logger, closing *atomic.Bool) *zap.Logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return zap.New(slogCore{handler: log.Handler(), closing: closing}, zap.WithFatalHook(zapcore.WriteThenPanic))
}

// slogCore is a zapcore.Core on a slog.Handler.
type slogCore struct {
	handler slog.Handler
	closing *atomic.Bool
}

// level maps a level, to debug at most while etcd is closing.
func (c slogCore) level(level zapcore.Level) slog.Level {
	if c.closing != nil && c.closing.Load() {
		return min(slogLevel(level), slog.LevelDebug)
	}
	return slogLevel(level)
}

// slogLevel maps the levels of zap, one step down.
func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level >= zapcore.DPanicLevel:
		return slog.LevelError
	case level >= zapcore.ErrorLevel:
		return slog.LevelWarn
	case level >= zapcore.WarnLevel:
		return slog.LevelInfo
	case level >= zapcore.InfoLevel:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

func (c slogCore) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), c.level(level))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{handler: c.handler.WithAttrs(slogAttrs(fields)), closing: c.closing}
}

func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(cmp.Or(entry.Time, time.Now()), c.level(entry.Level), "etcd: "+entry.Message, 0)
	record.AddAttrs(slogAttrs(fields)...)
	return c.handler.Handle(context.Background(), record)
}

func (slogCore) Sync() error { return nil }

// slogAttrs encodes fields with zap's own methods, so that it supports every type of zap field.
func slogAttrs(fields []zapcore.Field) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		encoder := zapcore.NewMapObjectEncoder()
		f.AddTo(encoder)
		for key, value := range encoder.Fields {
			attrs = append(attrs, slog.Any(key, value))
		}
	}
	return attrs
}
