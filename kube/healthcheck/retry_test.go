package healthcheck

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// attempts are the times of the attempts to listen, by address.
type attempts map[string][]time.Time

// runRetry runs servers in a bubble with a Listen that needs no socket.
func runRetry(t *testing.T, listen func(address string) (net.Listener, error)) (*Servers, attempts) {
	t.Helper()
	tries := attempts{}
	servers := New(Config{
		Listen: func(_, address string) (net.Listener, error) {
			tries[address] = append(tries[address], time.Now())
			return listen(address)
		},
		Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return servers, tries
}

func TestDelaysGrowUpToTheirCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, tries := runRetry(t, func(string) (net.Listener, error) { return nil, syscall.EADDRINUSE })
		servers.Set([]Check{check("a/b", 1, 1, here)})
		time.Sleep(100 * time.Second)
		// neither list is a reason to try sooner
		servers.Set([]Check{check("a/b", 1, 2, here), check("a/c", 1, 1, there)})
		time.Sleep(100 * time.Second)
		synctest.Wait()
		for address, most := range map[string]int{here: 11, there: 8} {
			// without jitter; with full jitter there is one attempt less
			got, want := tries[address], time.Second
			for i := 1; i < len(got); i++ {
				if d := got[i].Sub(got[i-1]); d < want || d > want*6/5+time.Millisecond {
					t.Errorf("%s: delay %d is %v, want %v and a fifth at most", address, i, d, want)
				}
				want = min(2*want, 30*time.Second)
			}
			if len(got) < most-1 || len(got) > most {
				t.Errorf("%s: %d tries", address, len(got))
			}
		}
	})
}

// silent is a listener without clients, until it breaks.
type silent struct {
	broken chan struct{}
	once   sync.Once
}

func (l *silent) Accept() (net.Conn, error) { <-l.broken; return nil, net.ErrClosed }
func (l *silent) Close() error              { l.once.Do(func() { close(l.broken) }); return nil }
func (l *silent) Addr() net.Addr            { return &net.TCPAddr{} }

func TestDelaysBeginAnewAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, listener := 0, &silent{broken: make(chan struct{})}
		servers, tries := runRetry(t, func(string) (net.Listener, error) {
			if n++; n == 4 {
				return listener, nil
			}
			return nil, syscall.EADDRINUSE
		})
		servers.Set([]Check{check("a/b", 1, 1, here)})
		time.Sleep(time.Minute)
		if got := servers.Status(); !got.Ports[0].Listening || len(tries[here]) != 4 {
			t.Fatalf("%d tries: %+v", len(tries[here]), got)
		}
		broke := time.Now()
		_ = listener.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		after := tries[here][4:]
		if len(after) < 3 || after[0].Sub(broke) > 1300*time.Millisecond || after[1].Sub(after[0]) < 2*time.Second {
			t.Errorf("broke at %v, then tried at %v", broke, after)
		}
	})
}

func TestSetNeverWaits(t *testing.T) {
	servers := New(Config{Log: slog.New(slog.DiscardHandler)}) // it does not run
	for range 1000 {
		servers.Set(nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := servers.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
}
