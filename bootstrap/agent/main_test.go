package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/deploy/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that takes milliseconds.
const patience = 30 * time.Second

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

// within waits for so long at most until a condition holds.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
		time.Sleep(time.Millisecond)
	}
}

// shortDir is a directory whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ag")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// shop unpacks the cluster of the demo.
func shop(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, demo.Files); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return dir
}

// everything is the configuration of an agent with everything inside.
func everything(t *testing.T) *config.Agent {
	t.Helper()
	dir := shortDir(t)
	cfg := config.Defaults()
	cfg.NodeName = "shop-a"
	cfg.Kubernetes.Source = config.SourceFilesPrefix + shop(t)
	cfg.VPP.Mode = config.VPPSimulated
	cfg.Etcd.Mode, cfg.Etcd.DataDir = config.EtcdEmbedded, filepath.Join(dir, "etcd")
	cfg.Services.ServiceCIDRs, cfg.Services.ClusterCIDRs = []string{"10.96.0.0/16"}, []string{"10.1.0.0/16"}
	cfg.API.HTTPAddress, cfg.API.ControlSocket = "127.0.0.1:0", filepath.Join(dir, "ctl")
	cfg.API.HealthzBindAddress = ""
	return cfg
}

// run starts an agent and stops it at the end of the test, which it must do without an error.
func run(t *testing.T, cfg *config.Agent) *Agent {
	t.Helper()
	a, err := Start(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	return a
}

func stop(t *testing.T, a *Agent) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// ready waits until an agent is ready.
func ready(t *testing.T, a *Agent) {
	t.Helper()
	eventually(t, "ready", func() bool { return a.Backend().Readiness().Ready })
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// dead is a TCP address without a listener.
func dead(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ended reports whether Wait returns within a moment.
func ended(t *testing.T, a *Agent) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := a.Wait(ctx)
	if ctx.Err() != nil {
		t.Fatal("the agent goes on")
	}
	return err
}

// healthAddress is the address of the health server, "ip:port"; "" = it does not listen.
func healthAddress(a *Agent) string {
	if a.nodePort == nil {
		return ""
	}
	return a.nodePort.Address()
}
