package simulated

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/plan"
)

// options are the options of a demo that ends by itself and discards its output.
func options(t *testing.T) *demoOptions {
	t.Helper()
	return &demoOptions{
		NodeName: "shop-a", HTTPAddress: "127.0.0.1:0", Exit: true, Format: "table", Started: time.Now(), Out: &bytes.Buffer{}, Log: slog.New(slog.DiscardHandler),
	}
}

// TestRun: all checks of the demo pass on each node of its cluster.
func TestRun(t *testing.T) {
	for _, node := range []string{"shop-a", "shop-b", "shop-c"} {
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			o := options(t)
			o.NodeName, o.Format, o.Out = node, "json", &out
			if err := runDemo(t.Context(), *o); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			var report Report
			decoder := json.NewDecoder(&out)
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&report); err != nil {
				t.Fatal(err)
			}
			if decoder.More() {
				t.Error("more than one document")
			}
			if !report.OK || report.Services != 15 || report.InSync != 15 || report.Rows < 20 || len(report.Probes) < 40 || len(report.Drills) != 2+3 {
				t.Errorf("%+v", report)
			}
			if _, err := time.ParseDuration(report.InSyncAfter); err != nil {
				t.Error(err)
			}
			t.Logf("in sync after %s", report.InSyncAfter)
		})
	}
}

// TestRunIsInterrupted: an interrupted demo fails before its checks are done, and succeeds
// afterwards.
func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runDemo(ended, *options(t)); !errors.Is(err, ErrInterrupted) {
		t.Errorf("at once: %v", err)
	}
	o := options(t)
	o.Exit = false
	shown, cancel := context.WithCancel(t.Context())
	var printed strings.Builder
	o.Out = writer(func(text string) {
		printed.WriteString(text)
		if strings.Contains(text, "get services --address 127.0.0.1:") {
			cancel()
		}
	})
	if err := runDemo(shown, *o); err != nil {
		t.Errorf("after the proof: %v\n%s", err, printed.String())
	}
}

// writer is a function that gets the written bytes.
type writer func(string)

// Write satisfies io.Writer.
func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// TestRunLeavesNothing: the demo deletes all its files.
func TestRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = runDemo(ctx, *options(t))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestRunRefuses: a cluster or a node that does not exist is an error.
func TestRunRefuses(t *testing.T) {
	o := options(t)
	o.NodeName = "unknown"
	if err := runDemo(t.Context(), *o); !errors.Is(err, ErrCluster) || !errors.Is(err, plan.ErrUnknownNode) {
		t.Errorf("unknown node: %v", err)
	}
	o = options(t)
	o.Cluster = filepath.Join(t.TempDir(), "none")
	if err := runDemo(t.Context(), *o); !errors.Is(err, ErrCluster) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// TestPortInUse: the demo takes another port if the default port is in use.
func TestPortInUse(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	dir, o := t.TempDir(), options(t)
	o.HTTPAddress = busy.Addr().String()
	if _, err := o.cluster(dir); err != nil {
		t.Fatal(err)
	}
	a, err := start(o, filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	if a.HTTPAddress() == o.HTTPAddress || !strings.HasPrefix(a.HTTPAddress(), "127.0.0.1:") {
		t.Errorf("it serves on %s", a.HTTPAddress())
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestSmallCluster: in a cluster without pods and services only the drills remain.
func TestSmallCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const node = "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}," +
		" status: {addresses: [{type: InternalIP, address: 192.168.7.1}]}}"
	if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := options(t)
	o.Cluster, o.NodeName, o.Format, o.Out = dir, "n1", "json", &out
	if err := runDemo(t.Context(), *o); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var report Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || !report.OK || report.Services != 0 || len(report.Drills) != 1+3 {
		t.Errorf("%v, %+v", err, report)
	}
}
