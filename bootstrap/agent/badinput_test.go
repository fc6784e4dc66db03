package agent

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestBadInput: each thing that only an operator can mend is a readiness reason of its own, which
// says what to do, and is logged when it is found and in the line about readiness, not once per
// try. The agent goes on trying and never ends.
func TestBadInput(t *testing.T) {
	for name, tc := range map[string]struct {
		// counts what the agent tries
		prepare func(t *testing.T, cfg *config.Agent, tries *atomic.Int64)
		part    string
		says    string
		lines   int // that may have the reason, at most
	}{
		"no rights":         {apiServer(http.StatusForbidden, "Forbidden", nil), "watch", "no permission to list and watch endpointslices, nodes, pods, services: bind the ClusterRole", 2},
		"wrong credentials": {apiServer(http.StatusUnauthorized, "Unauthorized", nil), "watch", "the API server refuses the credentials (401 Unauthorized): check the token", 2},
		"wrong CA":          {apiServer(0, "", &tls.Config{}), "watch", "the certificate of the API server is not trusted: check the certificate authority", 2},
		"no client certificate": {
			apiServer(0, "insecure-skip-tls-verify: true, ", &tls.Config{ClientAuth: tls.RequireAnyClientCert}), "watch", "the API server refuses the TLS connection: check the client certificate", 2,
		},
		"a node that does not exist": {
			func(_ *testing.T, cfg *config.Agent, tries *atomic.Int64) { cfg.NodeName = "shop-z"; tries.Store(3) },
			"registry", "Kubernetes has no node shop-z: --node-name must be the name of the Node object", 1,
		},
		"a VPP that never answers": {muteVPP, "link", "(no answer in time): its main thread is busy or hangs, or it is no VPP; waiting for an answer", 2},
		"a VPP without NAT44":      {vppWith(simulator.Options{WithoutPlugins: []string{"nat44_ed"}}, "", ""), "nat44", "the plugin nat44_ed is not loaded (plugins in VPP's startup.conf)", 3},
		"another VPP": {
			vppWith(simulator.Options{}, "nat44_show_running_config_51077d14", "nat44_show_running_config_00000001"),
			"nat44", "it has another version of the message, the agent is for VPP 24.06 to 26.06", 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			cfg := everything(t)
			cfg.Etcd.Mode = config.EtcdNone
			tc.prepare(t, cfg, &tries)
			var log safeBuffer
			a, err := Start(cfg, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer stop(t, a)
			reason(t, a, tc.part, tc.says)
			eventually(t, "the reason is in the log", func() bool { return log.lines("readiness changed", tc.says) == 1 })
			before := tries.Load()
			eventually(t, "further tries", func() bool { return tries.Load() >= before+2 || tries.Load() == 3 && before == 3 })
			if n := log.lines("", tc.says); n > tc.lines || log.lines("readiness changed", tc.says) != 1 {
				t.Errorf("%d lines have the reason:\n%s", n, log.String())
			}
			if len(a.fatal) != 0 {
				t.Error("the agent ends")
			}
		})
	}
}

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write satisfies io.Writer.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lines counts those that have both texts.
func (b *safeBuffer) lines(one, other string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, one) && strings.Contains(line, other) {
			n++
		}
	}
	return n
}

// apiServer makes the agent read an API server that answers every request with a Status, with TLS
// if it is configured; text is then part of the cluster in the kubeconfig.
func apiServer(code int, text string, secure *tls.Config) func(*testing.T, *config.Agent, *atomic.Int64) {
	return func(t *testing.T, cfg *config.Agent, tries *atomic.Int64) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tries.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"`+text+`","message":"`+text+`"}`)
		}))
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if secure != nil && state == http.StateNew {
				tries.Add(1)
			}
		}
		cfg.Kubernetes.Source, cfg.Kubernetes.Kubeconfig = config.SourceKubernetes, kubeconfig(t, server.Listener.Addr().String())
		if server.TLS = secure; secure == nil {
			server.Start()
		} else {
			server.StartTLS()
			content, err := os.ReadFile(cfg.Kubernetes.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			content = bytes.ReplaceAll(content, []byte("server: 'http:"), []byte(text+"server: 'https:"))
			if err := os.WriteFile(cfg.Kubernetes.Kubeconfig, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(server.Close)
	}
}

// listenAsVPP makes the agent connect to a socket, whose connections are given to serve.
func listenAsVPP(t *testing.T, cfg *config.Agent, tries *atomic.Int64, serve func(net.Conn)) {
	socket := filepath.Join(shortDir(t), "vpp")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tries.Add(1)
			serving.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	cfg.VPP.Mode, cfg.VPP.APISocket, cfg.VPP.StatsSocket = config.VPPSocket, socket, ""
}

// muteVPP accepts connections, takes what comes, and never answers. It gets one connection, so
// there are no further tries.
func muteVPP(t *testing.T, cfg *config.Agent, tries *atomic.Int64) {
	cfg.VPP.ReplyTimeout = config.Duration(100 * time.Millisecond)
	tries.Store(3)
	var connections atomic.Int64
	listenAsVPP(t, cfg, &connections, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	t.Cleanup(func() {
		if n := connections.Load(); n != 1 {
			t.Errorf("%d connections to a VPP that does not answer", n)
		}
	})
}

// vppWith is a simulated VPP in whose table of messages one has another name of the same length.
// Tries are readings of the settings.
func vppWith(options simulator.Options, message, becomes string) func(*testing.T, *config.Agent, *atomic.Int64) {
	return func(t *testing.T, cfg *config.Agent, tries *atomic.Int64) {
		vpp := simulator.New(options)
		t.Cleanup(func() { _ = vpp.Close() })
		inner := filepath.Join(shortDir(t), "inner")
		if err := vpp.Listen(inner); err != nil {
			t.Fatal(err)
		}
		var connections atomic.Int64
		listenAsVPP(t, cfg, &connections, func(conn net.Conn) {
			to, err := net.Dial("unix", inner)
			if err != nil {
				return
			}
			defer to.Close()
			var copying sync.WaitGroup
			copying.Go(func() {
				defer to.Close()
				_, _ = io.Copy(counter{to, tries}, conn)
			})
			// The first frame has the table of messages.
			header := make([]byte, 16)
			if _, err := io.ReadFull(to, header); err == nil {
				frame := make([]byte, binary.BigEndian.Uint32(header[8:]))
				if _, err := io.ReadFull(to, frame); err == nil {
					_, _ = conn.Write(append(header, bytes.ReplaceAll(frame, []byte(message), []byte(becomes))...))
					_, _ = io.Copy(conn, to)
				}
			}
			_ = conn.Close()
			copying.Wait()
		})
	}
}

// counter counts writes.
type counter struct {
	io.Writer
	n *atomic.Int64
}

// Write satisfies io.Writer.
func (c counter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return c.Writer.Write(p)
}
