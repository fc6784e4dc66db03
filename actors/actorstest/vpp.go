package actorstest

import (
	"context"
	"net/netip"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// held is the state of the simulated VPP.
func (w *World) held() string {
	if w.VPP == nil {
		return "a real one"
	}
	return w.VPP.State()
}

// Rows lists the agent's rows in VPP, ordered.
func (w *World) Rows() []string { return probe.Rows(w.VPP) }

// Backends counts the backends that the NAT44 row "ip:port/PROTO" has in VPP.
func (w *World) Backends(vip string) int {
	state, err := nat44.Read(context.Background(), w.Reader())
	if err != nil {
		w.Error(err)
		return 0
	}
	for key, row := range state.Rows {
		if key.String() == vip {
			return len(row.Locals)
		}
	}
	return 0
}

// Writes is how many requests changed VPP so far.
func (w *World) Writes() uint64 {
	if w.Sim != nil {
		return uint64(w.Stream.Writes)
	}
	return w.VPP.Counters().Mutating()
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
func (w *World) Occupy(k rule.Key, take bool) {
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
