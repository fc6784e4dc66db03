package link

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// counting makes transports to a fake VPP and counts them.
type counting struct {
	vpp   *fakeVPP
	dials atomic.Int64
	stamp atomic.Pointer[string]
}

// config is the configuration of a link over counted transports, with the stamp of VPP.
func (c *counting) config() Config {
	c.stamp.Store(new(string))
	return Config{
		transport: func() transport {
			c.dials.Add(1)
			return c.vpp.adapter()
		},
		Stamp: func() (string, error) { return *c.stamp.Load(), nil },
	}
}

// TestConnectionsWithASilentVPP: over hours, whatever state the link was in, and however often Run
// ends, a VPP that does not answer gets three connections, closed ones included. An answer, or
// another VPP, resets the count.
func TestConnectionsWithASilentVPP(t *testing.T) {
	tests := []struct {
		name string
		// connected says that VPP answers at first.
		connected bool
		// runs is how often Run ends and is called again meanwhile.
		runs int
		want int64
	}{
		{"from the start", false, 0, 3},
		{"after an answered connection", true, 0, 3},
		{"run after run", false, 100, 3},
		{"after an answered connection, run after run", true, 100, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vpp := newFakeVPP()
				c := &counting{vpp: vpp}
				l := New(c.config(), quietLog())
				wake := func() {}
				if !tt.connected {
					wake = vpp.hang()
				}
				var last atomic.Pointer[messages.LinkState]
				run := func() (stop func()) {
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan struct{})
					go func() {
						defer close(done)
						if err := l.Run(ctx, func(s *messages.LinkState) { last.Store(s) }); err != nil {
							t.Error(err)
						}
					}()
					return func() {
						cancel()
						<-done
					}
				}
				stop := run()
				synctest.Wait()
				if tt.connected {
					wake = vpp.hang()
				}
				for range tt.runs {
					time.Sleep(time.Minute)
					stop()
					stop = run()
				}
				time.Sleep(10 * time.Hour)
				if n := c.dials.Load(); n != tt.want {
					t.Errorf("%d connections, want %d", n, tt.want)
				}
				if s := last.Load(); s.GetUp() || !strings.Contains(s.GetReason(), "VPP does not answer at /run/vpp/api.sock since 2000-01-01T00:00:") {
					t.Errorf("state = %v", s)
				}
				wake()
				time.Sleep(time.Second)
				if s := last.Load(); !s.GetUp() || c.dials.Load() != tt.want {
					t.Errorf("%d connections, state = %v", c.dials.Load(), s)
				}
				wake = vpp.hang() // the count starts anew
				time.Sleep(10 * time.Hour)
				if n := c.dials.Load(); n != tt.want+2 {
					t.Errorf("%d connections, want %d and two", n, tt.want)
				}
				wake()
				time.Sleep(time.Second)
				if s := last.Load(); !s.GetUp() {
					t.Errorf("state = %v", s)
				}
				stop()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOneConnectionWhileVPPIsBusy: after minutes there is still one connection, and its late answer
// is used.
func TestOneConnectionWhileVPPIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vpp := newFakeVPP()
		c := &counting{vpp: vpp}
		wake := vpp.hang()
		l := start(t, c.config())
		defer l.stop()
		time.Sleep(119 * time.Second)
		if n, states := c.dials.Load(), len(l.history()); n != 1 || states != 2 {
			t.Errorf("%d connections, %d states", n, states)
		}
		wake()
		synctest.Wait()
		if s := l.last(); !s.GetUp() || s.GetSession() != 1 || c.dials.Load() != 1 {
			t.Errorf("%d connections, state = %v", c.dials.Load(), s)
		}
	})
}

// TestAnotherVPPIsNotWaitedFor: the socket file of another VPP ends the wait, and the count.
func TestAnotherVPPIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vpp := newFakeVPP()
		c := &counting{vpp: vpp}
		wake := vpp.hang()
		defer wake()
		l := start(t, c.config())
		defer l.stop()
		time.Sleep(time.Hour)
		for generation := range int64(5) {
			if n := c.dials.Load(); n != 3*(generation+1) {
				t.Errorf("VPP %d: %d connections", generation, n)
			}
			stamp := fmt.Sprint(generation)
			c.stamp.Store(&stamp)
			time.Sleep(3 * time.Second)
			if n := c.dials.Load(); n != 3*(generation+1)+1 {
				t.Errorf("VPP %d: %d connections after a restart", generation, n)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestConnectThatGivesUp: a transport that does not wait for VPP gets no fourth connection either.
func TestConnectThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{vpp: newFakeVPP()}
		cfg := c.config()
		dial := cfg.transport
		cfg.transport = func() transport { return impatient{dial()} }
		l := start(t, cfg)
		defer l.stop()
		time.Sleep(time.Hour)
		if s := l.last(); c.dials.Load() != 3 || s.GetReason() != errSpent.Error() {
			t.Errorf("%d connections, state = %v", c.dials.Load(), s)
		}
	})
}

// impatient is a transport that gives up.
type impatient struct{ transport }

// Connect gives up after a while.
func (impatient) Connect() error {
	time.Sleep(3 * time.Second)
	return context.DeadlineExceeded
}

// TestRation says which end of a connection VPP has noticed.
func TestRation(t *testing.T) {
	dial := func(err error) error { return fmt.Errorf("connect: %w", &net.OpError{Op: "dial", Err: err}) }
	for _, tt := range []struct {
		err         error
		before, now int
	}{
		{nil, 2, 0},
		{fmt.Errorf("read from VPP: %w", io.EOF), 2, 0},
		{syscall.EPIPE, 2, 0},
		{dial(syscall.ECONNREFUSED), 2, 0},
		{dial(syscall.EAGAIN), 2, 2}, // its listen queue is full: there was no connection
		{dial(syscall.EACCES), 0, 0},
		{fmt.Errorf("handshake: %w", ErrProtocol), 2, 1},
		{&RetvalError{Message: "sockclnt_create", Retval: -1}, 2, 1},
		{ErrTimeout, 0, 1},
		{errClosed, 0, 1},
		{errReplaced, 1, 2},
	} {
		r := ration{closed: tt.before}
		if r.ended(tt.err); r.closed != tt.now {
			t.Errorf("%v: %d became %d, want %d", tt.err, tt.before, r.closed, tt.now)
		}
	}
}

// TestCloseWhileRunning: the connection belongs to Run.
func TestCloseWhileRunning(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, _ *fakeVPP, l *running) {
		if err := l.Close(); err != ErrRunning {
			t.Errorf("Close = %v", err)
		}
	})
}
