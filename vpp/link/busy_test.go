package link_test

import (
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// TestBusyVPPIsNotLost: a VPP whose main thread is busy for 40 times as long as a connection may stay without an answer gets few connections, and
// holds the rows afterwards. With 16 that wait for it or are closed, it would never answer again.
func TestBusyVPPIsNotLost(t *testing.T) {
	for name, tt := range map[string]struct {
		replaceAfter time.Duration
		connections  int
	}{
		"minutes":                      {0, 2}, // the session and the connection that waits
		"so long that it gets another": {100 * time.Millisecond, 3},
	} {
		t.Run(name, func(t *testing.T) {
			vpp := simulated(t)
			l, states := connected(t, vpp, link.Config{
				ProbeInterval: 10 * time.Millisecond, ReplyTimeout: 50 * time.Millisecond, ConnectTimeout: 50 * time.Millisecond,
				BackoffMax: 20 * time.Millisecond, ReplaceAfter: tt.replaceAfter,
			})
			if _, err := l.Do(t.Context(), services(100, 2)); err != nil {
				t.Fatal(err)
			}
			vpp.Hang()
			next(t, states, false)
			time.Sleep(2 * time.Second)
			if n := vpp.Accepted(); n != tt.connections || vpp.Lost() {
				t.Errorf("%d connections, want %d; lost = %t", n, tt.connections, vpp.Lost())
			}
			vpp.Resume()
			if s := next(t, states, true); s.GetSession() != 2 || vpp.Accepted() != tt.connections {
				t.Errorf("%d connections, state = %v", vpp.Accepted(), s)
			}
			rows := 0
			if err := l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(api.Message) { rows++ }); err != nil || rows != 100 {
				t.Errorf("%d rows, %v", rows, err)
			}
		})
	}
}
