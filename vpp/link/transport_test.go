package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
)

func TestGarbageFrames(t *testing.T) {
	short := func(n int) func(*fakeVPP, [][]byte) [][]byte {
		return func(_ *fakeVPP, frames [][]byte) [][]byte { return [][]byte{frames[0][:n]} }
	}
	tests := []struct {
		name string
		// bad makes the answer to a request bad.
		bad func(vpp *fakeVPP, frames [][]byte) [][]byte
		// ends says that the connection ends.
		ends bool
	}{
		{"only a number", short(2), true},
		{"half a context", short(5), true},
		{"no return value", short(6), true},
		{"half a return value", short(9), true},
		{"trailing bytes", func(_ *fakeVPP, f [][]byte) [][]byte { return [][]byte{append(f[0], 1, 2, 3)} }, false},
		{"answer twice", func(_ *fakeVPP, f [][]byte) [][]byte { return [][]byte{f[0], append([]byte(nil), f[0]...)} }, false},
		{"unknown number before", func(_ *fakeVPP, f [][]byte) [][]byte { return append([][]byte{{0xFF, 0xFF, 1}}, f...) }, false},
		{"unknown context before", func(v *fakeVPP, f [][]byte) [][]byte {
			return append([][]byte{v.encode(&memclnt.ControlPingReply{}, 0xDEADBEEF)}, f...)
		}, false},
		{"other message", func(v *fakeVPP, f [][]byte) [][]byte {
			wrong := v.encode(&memclnt.ControlPingReply{}, 0)
			copy(wrong[2:6], f[0][2:6])
			return [][]byte{wrong}
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
				onMapping(vpp, 5, func(_ *fakeConn, frames [][]byte) [][]byte { return tt.bad(vpp, frames) })
				results, err := l.Do(t.Context(), adds(10))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if l.last().GetUp() == tt.ends {
					t.Errorf("state = %v", l.last())
				}
				if !tt.ends {
					partition(t, results, 10)
					return
				}
				partition(t, results, 4)
				if !errors.Is(results[4].Err, ErrUnknown) || !errors.Is(results[4].Err, ErrProtocol) {
					t.Errorf("result = %v", results[4].Err)
				}
			})
		})
	}
}

// stubborn is a transport whose Connect or Disconnect hangs.
type stubborn struct {
	*fakeConn
	connect, disconnect chan struct{}
}

// Connect hangs while the channel connect is open.
func (s *stubborn) Connect() error {
	if s.connect != nil {
		<-s.connect
	}
	return s.fakeConn.Connect()
}

// Disconnect hangs while the channel disconnect is open.
func (s *stubborn) Disconnect() error {
	if s.disconnect != nil {
		<-s.disconnect
	}
	return s.fakeConn.Disconnect()
}

func TestStubbornTransports(t *testing.T) {
	for _, name := range []string{"connect", "disconnect"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vpp := newFakeVPP()
				gate := make(chan struct{})
				l := start(t, Config{transport: func() transport {
					s := &stubborn{fakeConn: vpp.adapter().(*fakeConn)}
					if name == "connect" {
						s.connect = gate
					} else {
						s.disconnect = gate
					}
					return s
				}})
				synctest.Wait()
				if up := l.last().GetUp(); up != (name == "disconnect") {
					t.Errorf("state = %v", l.last())
				}
				began := time.Now()
				l.stop()
				if took := time.Since(began); took > 500*time.Millisecond {
					t.Errorf("Run took %s to end", took)
				}
				close(gate)
				synctest.Wait()
				vpp.mu.Lock()
				defer vpp.mu.Unlock()
				if len(vpp.conns) != 0 {
					t.Errorf("%d connections left open", len(vpp.conns))
				}
			})
		})
	}
}
