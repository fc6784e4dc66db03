package node

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

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
