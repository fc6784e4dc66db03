package actorstest

import (
	"net/netip"
	"time"

	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Settle waits until Wrong finds nothing.
func (w *World) Settle(limit time.Duration) {
	w.Helper()
	w.Within(limit, "as it should be", w.Wrong)
}

// Rests checks for a time that nothing writes to VPP, readiness does not change and Wrong finds
// nothing.
func (w *World) Rests(d time.Duration) {
	w.Helper()
	// An endpoint that has left the slices is removed after VPP was asked for its connections, a
	// second later. The sessions actor may have waited for the connection to VPP meanwhile.
	w.Run(10 * time.Second)
	writes, since := w.Writes(), w.Readiness.Load().Since
	w.Run(d)
	if after := w.Writes(); after != writes {
		w.Errorf("%d writes while nothing changed", after-writes)
	}
	if report := w.Readiness.Load(); !report.Ready || !report.Since.Equal(since) {
		w.Errorf("readiness flapped: %+v", report)
	}
	if wrong := w.Wrong(); wrong != "" {
		w.Errorf("while nothing changed:\n%s", wrong)
	}
	if w.Failed() {
		w.LogJournal()
	}
}

// CrashVPP lets VPP die and come back empty, in virtual time. The connection comes back with
// Stream.Connect.
func (w *World) CrashVPP() {
	w.Helper()
	if err := w.Stream.Crash(); err != nil {
		w.Fatal(err)
	}
	clear(w.Foreign)
}

// Occupy lets another client of VPP take a frontend, or give it back.
func (w *World) Occupy(k frontend.Key, take bool) {
	vip := netip.AddrPortFrom(k.Addr, k.Port)
	if !take {
		if _, err := w.VPP.ForeignRemove(vip, k.Proto); err != nil {
			w.Fatal(err)
		}
		delete(w.Foreign, k)
		return
	}
	backend := func(text string) simulator.Backend {
		return simulator.Backend{Addr: netip.MustParseAddrPort(text), Weight: 1}
	}
	retval, err := w.VPP.ForeignAdd(simulator.ForeignRow{
		VIP: vip, Proto: k.Proto, Tag: "theirs", Backends: []simulator.Backend{backend("10.9.9.1:80"), backend("10.9.9.2:80")},
	})
	if err != nil {
		w.Fatal(err)
	}
	if retval == 0 {
		w.Foreign[k] = true
	}
}
