package simulated

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestProbes: a line has an answer each, a bad one too, and clients end with the context.
func TestProbes(t *testing.T) {
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	path := filepath.Join(t.TempDir(), "probes")
	if err := serveProbes(ctx, path, vpp); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for line, want := range map[string]string{
		"tap-web":                           "expected INTERFACE SOURCE DESTINATION",
		"tap-web x 10.1.1.3:80":             "not an ip:port",
		"tap-web 10.1.1.2:1000 10.1.1.3:80": "no such interface",
	} {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			t.Fatal(err)
		}
		if got, err := answers.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
	stop()
	if _, err := answers.ReadString('\n'); err == nil {
		t.Error("the client is still connected")
	}
}
