package node

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestWithVPP: the function gets a connection that is up, its error comes back, and a VPP that is
// not there is an error at once.
func TestWithVPP(t *testing.T) {
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("as the function says")
	version := ""
	err := withVPP(t.Context(), socket, func(_ context.Context, s *messages.LinkState, _ link.Caller) error {
		version = s.GetVersion()
		return failure
	})
	if !errors.Is(err, failure) || version != "25.10-release" {
		t.Errorf("error %v, version %q", err, version)
	}
	err = withVPP(t.Context(), socket+".none", func(context.Context, *messages.LinkState, link.Caller) error {
		t.Error("called without a VPP")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
}

// TestInterrupted: Ctrl-C while the function runs => the function can still talk to VPP; Ctrl-C
// before the connection => the function does not run.
func TestInterrupted(t *testing.T) {
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	err := withVPP(ctx, socket, func(ctx context.Context, _ *messages.LinkState, c link.Caller) error {
		interrupt()
		if ctx.Err() == nil {
			t.Error("the function does not see the end")
		}
		_, err := c.Do(context.WithoutCancel(ctx), []api.Message{&vpe.ShowVersion{}})
		return err
	})
	if err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	err = withVPP(ctx, socket, func(context.Context, *messages.LinkState, link.Caller) error {
		t.Error("the function runs")
		return nil
	})
	if err == nil {
		t.Error("no error before a connection")
	}
}
