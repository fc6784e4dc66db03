package link_test

import (
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// TestBusyVPPIsNotLost: a VPP whose main thread is busy for 40 times as long as a connection may
// stay without an answer gets few connections, and holds the rows afterwards. With 16 connections
// that wait or are closed, it would never answer again.
func TestBusyVPPIsNotLost(t *testing.T) {
	for name, tt := range map[string]struct {
		replaceAfter time.Duration
		most         int // connections beside the answered one
	}{
		"minutes":                      {0, 1},
		"so long that it gets another": {300 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			vpp := simulated(t)
			l, states := connected(t, vpp, link.Config{
				ProbeInterval: 10 * time.Millisecond, ReplyTimeout: 500 * time.Millisecond, ConnectTimeout: 50 * time.Millisecond,
				BackoffMax: 20 * time.Millisecond, ReplaceAfter: tt.replaceAfter,
			})
			if _, err := l.Do(t.Context(), services(100, 2)); err != nil {
				t.Fatal(err)
			}
			before := vpp.Accepted()
			vpp.Hang()
			next(t, states, false)
			time.Sleep(2 * time.Second)
			if n := vpp.Accepted() - before; n > tt.most || vpp.Lost() {
				t.Errorf("%d connections, want %d; lost = %t", n, tt.most, vpp.Lost())
			}
			vpp.Resume()
			next(t, states, true)
			if n := vpp.Accepted() - before; n > tt.most {
				t.Errorf("%d connections after it", n)
			}
			rows := 0
			if err := l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(api.Message) { rows++ }); err != nil || rows != 100 {
				t.Errorf("%d rows, %v", rows, err)
			}
		})
	}
}
