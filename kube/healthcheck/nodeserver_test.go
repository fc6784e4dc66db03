package healthcheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// runNode runs a node server until the returned function is called or the test ends, and waits for
// the end of the server.
func runNode(t *testing.T, address string, cfg Config) (*NodeServer, func()) {
	t.Helper()
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := NewNodeServer(address, NewNodeHealth(NodeHealthConfig{State: func() NodeState { return NodeState{Known: true} }}), cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

// listens waits until a server listens.
func listens(t *testing.T, s *NodeServer) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		// a real socket has no virtual time
		if a := s.Address(); a != "" {
			return a
		}
	}
	t.Fatal("it does not listen")
	return ""
}

// TestNodeServerWaitsForItsAddress: another listener has the address first. When it closes, the
// server answers. The end of the server frees the address.
func TestNodeServerWaitsForItsAddress(t *testing.T) {
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := stranger.Addr().String()
	problems := make(chan error, 10)
	s, stop := runNode(t, address, Config{
		RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond, OnProblem: func(p Problem) { problems <- p.Err },
	})
	if err := <-problems; !errors.Is(err, syscall.EADDRINUSE) || s.Address() != "" {
		t.Errorf("problem %v, listens on %q", err, s.Address())
	}
	_ = stranger.Close()
	if got := listens(t, s); got != address {
		t.Errorf("listens on %s, want %s", got, address)
	}
	if err := <-problems; err != nil {
		t.Errorf("problem %v, want the end of the last one", err)
	}
	if got, err := request(http.MethodGet, "http://"+address+"/healthz"); err != nil || got.status != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
	stop()
	if len(problems) > 0 || s.Address() != "" {
		t.Errorf("after the end: problem %v, listens on %q", <-problems, s.Address())
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the address is not free: %v", err)
	}
	_ = again.Close()
}

// TestNodeServerLogsItsAddress: the log in JSON has the address as text, because the JSON of a
// net.Addr is an object.
func TestNodeServerLogsItsAddress(t *testing.T) {
	var out bytes.Buffer
	s, stop := runNode(t, "0.0.0.0:0", Config{Log: slog.New(slog.NewJSONHandler(&out, nil))})
	address := listens(t, s)
	stop() // the log is complete
	var line struct {
		Msg     string `json:"msg"`
		Address any    `json:"address"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil || line.Msg != "listening" || line.Address != "0.0.0.0:"+port && line.Address != "[::]:"+port {
		t.Errorf("listens on %s, %v: %s", address, err, out.String())
	}
}

// TestNodeServerTriesAgain: the server tries again with growing delays and reports each reason
// once. It starts again with the shortest delay after a working listener broke.
func TestNodeServerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		var told []error
		listener := &silent{broken: make(chan struct{})}
		s, stop := runNode(t, here, Config{
			Listen: func(_, address string) (net.Listener, error) {
				if tries = append(tries, time.Now()); address != here {
					t.Errorf("tried %s", address)
				}
				switch n := len(tries); {
				case n == 8:
					return listener, nil
				case n > 4 && n < 8:
					return nil, syscall.EACCES
				}
				return nil, syscall.EADDRINUSE
			},
			OnProblem: func(p Problem) { told = append(told, p.Err) },
		})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(tries) != 8 || s.Address() == "" {
			t.Fatalf("%d tries, listens on %q", len(tries), s.Address())
		}
		for i, want := range []int{1, 2, 4, 8, 16, 30, 30} {
			if d, least := tries[i+1].Sub(tries[i]), time.Duration(want)*time.Second; d < least || d > least*6/5 {
				t.Errorf("delay %d is %v, want %v and a fifth at most", i, d, least)
			}
		}
		broke := time.Now()
		_ = listener.Close()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if len(tries) != 9 || tries[8].Sub(broke) > 1300*time.Millisecond {
			t.Errorf("broke at %v, tried at %v", broke, tries[8:])
		}
		stop()
		for i, want := range []error{syscall.EADDRINUSE, syscall.EACCES, nil, net.ErrClosed, syscall.EADDRINUSE} {
			if i >= len(told) || !errors.Is(told[i], want) {
				t.Fatalf("told %v, problem %d should be %v", told, i, want)
			}
		}
		if len(told) != 5 {
			t.Errorf("told %v", told)
		}
	})
}
