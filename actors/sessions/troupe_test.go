package sessions_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestSessionsOfTheWholeTroupe: services are served while the table fills with what others left,
// and failures of the housekeeper cost them nothing.
func TestSessionsOfTheWholeTroupe(t *testing.T) {
	config := actorstest.Config{Deps: func(d *actors.Deps) { d.NAT44.SessionLimit, d.Sessions.Max = 2000, 2000 }}
	actorstest.Simulate(t, 1, config, func(w *actorstest.World) {
		w.Source.Serve("web", "10.96.0.1", "10.1.1.2", "10.1.1.3")
		w.Settled()
		dial := func(port int) bool {
			return w.VPP.Send(simulator.Packet{
				In: "pod4", Proto: simulator.ProtoTCP, Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.4"), uint16(port)),
				Dst: netip.MustParseAddrPort("10.96.0.1:80"),
			}).Action == simulator.Delivered
		}
		for round := range 5 {
			if _, err := w.VPP.FillSessions(1900); err != nil {
				t.Fatal(err)
			}
			w.Kill(address.Sessions)
			w.Run(15 * time.Minute)
			if n := w.VPP.SessionCount(); n > 1200 || !dial(2000+round) {
				t.Fatalf("round %d: %d sessions, or a connection is refused", round, n)
			}
		}
		w.Settled()
	})
}
