package apitest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// Agent is a server of a Troupe on real sockets.
type Agent struct {
	*Troupe
	// Address is the address of its read-only listener.
	Address string
	// Socket is the path of its control socket.
	Socket string
	// Stop ends it and returns what Serve returned; it may be called more than once.
	Stop func() error
}

// Start runs a server until the test ends; change may alter its configuration.
func Start(t testing.TB, backend *Troupe, change func(*server.Config)) *Agent {
	t.Helper()
	dir, err := os.MkdirTemp("", "api") // the directory of a test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := server.Config{HTTPAddress: "127.0.0.1:0", ControlSocket: filepath.Join(dir, "control.sock")}
	if change != nil {
		change(&cfg)
	}
	s := server.New(backend, cfg, slog.New(slog.DiscardHandler))
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	a := &Agent{Troupe: backend, Address: s.Addr().String(), Socket: cfg.ControlSocket}
	a.Stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := a.Stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return a
}
