package external_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// withSNAT plays with dynamic SNAT; the peer is reached by the default route until an overlay is
// built.
func withSNAT(t *testing.T, s *sources, enabled bool, play func(w *world)) {
	t.Helper()
	withExternal(t, s, func(w *world) {
		w.peer("10.1.2.0/24")
		if _, err := w.VPP.AddInterface("host0", []netip.Prefix{netip.MustParsePrefix("169.254.0.1/30")}, true); err != nil {
			t.Fatal(err)
		}
		play(w)
	}, func(d *actors.Deps) {
		d.SNAT = layers.SNAT{Enabled: enabled, OverlayPorts: []string{"4789/UDP"}}
		d.Timing.Rediscover = 5 * time.Second
	})
}

// peer gives the other node a network of pods.
func (w *world) peer(network string) {
	node := probe.Peer("192.168.16.2")
	node.PodCidrs = []string{network}
	w.Source.Change(func(s *kube.Store) { s.Set(node, nil) })
}

// overlay reaches the pods of the peer through a tunnel.
func (w *world) overlay() {
	w.Helper()
	_, err := w.VPP.AddInterface("vxlan_tunnel0", []netip.Prefix{netip.MustParsePrefix("10.200.0.1/24")}, true)
	peer := simulator.Route{Prefix: netip.MustParsePrefix("10.1.2.0/24"), Interface: "vxlan_tunnel0", NextHop: netip.MustParseAddr("10.200.0.2")}
	if err = errors.Join(err, w.VPP.AddRoute(peer)); err != nil {
		w.Fatal(err)
	}
}

// passes sends a packet and says how it left, as "interface source > destination".
func (w *world) passes(in, src, dst string, proto uint8, flags simulator.TCPFlags) string {
	w.Helper()
	v := w.VPP.Send(simulator.Packet{In: in, Src: netip.MustParseAddrPort(src), Dst: netip.MustParseAddrPort(dst), Proto: proto, Flags: flags})
	if v.Action != simulator.Delivered {
		return v.Action.String()
	}
	return v.Out + " " + v.Src.String() + " > " + v.Dst.String()
}

// translation are packets of a node: through a service from outside and from a pod, of the overlay,
// from and to the node, and out of pods.
func (w *world) translation(port string, snat bool) {
	w.Helper()
	tcp, udp, answer := simulator.ProtoTCP, simulator.ProtoUDP, simulator.SYN|simulator.ACK
	leaves := "10.1.1.5:" + port
	if snat {
		leaves = "192.168.16.1:" + port
	}
	for _, p := range []struct {
		in, src, dst string
		proto        uint8
		flags        simulator.TCPFlags
		want         string
	}{
		{"pod5", "10.1.1.5:" + port, "198.51.100.7:443", tcp, 0, "uplink0 " + leaves + " > 198.51.100.7:443"},
		{"uplink0", "198.51.100.7:443", leaves, tcp, answer, "pod5 198.51.100.7:443 > 10.1.1.5:" + port},
		{"pod5", "10.1.1.5:1" + port, "10.96.0.1:80", tcp, 0, "pod2 10.1.1.5:1" + port + " > 10.1.1.2:8080"},
		{"pod2", "10.1.1.2:8080", "10.1.1.5:1" + port, tcp, answer, "pod5 10.96.0.1:80 > 10.1.1.5:1" + port},
		{"uplink0", "198.51.100.8:1" + port, "10.96.0.1:80", tcp, 0, "pod2 198.51.100.8:1" + port + " > 10.1.1.2:8080"},
		{"pod2", "10.1.1.2:8080", "198.51.100.8:1" + port, tcp, answer, "uplink0 10.96.0.1:80 > 198.51.100.8:1" + port},
		{"host0", "192.168.16.1:5" + port, "192.168.16.2:4789", udp, 0, "uplink0 192.168.16.1:5" + port + " > 192.168.16.2:4789"},
		{"uplink0", "192.168.16.2:5" + port, "192.168.16.1:4789", udp, 0, "local"},
		{"host0", "192.168.16.1:2" + port, "198.51.100.7:443", tcp, 0, "uplink0 192.168.16.1:2" + port + " > 198.51.100.7:443"},
		{"uplink0", "198.51.100.9:2" + port, "192.168.16.1:22", tcp, 0, "local"},
		{"pod5", "10.1.1.5:3" + port, "192.168.16.1:22", tcp, 0, "local"},
	} {
		if got := w.passes(p.in, p.src, p.dst, p.proto, p.flags); got != p.want {
			w.Errorf("%s: %s > %s left as %s, want %s", p.in, p.src, p.dst, got, p.want)
		}
	}
}

// snatHeld says what VPP holds of SNAT.
func (w *world) snatHeld() string {
	w.Helper()
	state := w.read()
	var texts []string
	for _, a := range state.Pool {
		texts = append(texts, a.String())
	}
	if state.Output[w.VPP.Interfaces()["uplink0"]] {
		texts = append(texts, "output")
	}
	return strings.Join(append(texts, w.rows()), " ")
}

// snatWarning is what readiness says beside "ready" about external configuration.
func (w *world) snatWarning() string {
	part, ready := w.part()
	if !ready {
		return "not ready: " + w.Readiness.Load().Reasons()
	}
	return part.Reason
}

const (
	snatIdentities = "10.1.1.254:0/0>10.1.1.254 192.168.16.1:0/0>192.168.16.1 192.168.16.1:4789/UDP>192.168.16.1"
	snatOn         = "192.168.16.1 output " + snatIdentities
	snatRefusal    = "snat: refused: packets to pods of other nodes leave through uplink0 without an overlay, and would be translated: 10.1.2.0/24 of n2"
)

// TestSNAT: pods leave with the address of the node and get their answers, and no other packets are
// translated. Failures of actors cost no write. SNAT ends with the overlay, for a reported reason,
// and begins again with it.
func TestSNAT(t *testing.T) {
	s := newSources("file")
	s.say(update("file"))
	withSNAT(t, s, true, func(w *world) {
		w.Source.Serve("web", "10.96.0.1", "10.1.1.2")
		w.Settled()
		w.expect("refused", snatRefusal, w.snatWarning)
		w.expect("nothing in VPP", "", w.snatHeld)
		w.translation("4000", false)
		w.Rests(3 * time.Minute)
		w.recorded("refused, nothing is translated")
		listed := func() string {
			var texts []string
			for _, l := range actorstest.Ask[*external.Page](w.World, address.External, &external.Query{}).Layers {
				texts = append(texts, l.Source+" "+l.Problem)
			}
			return strings.Join(texts, ", ")
		}
		w.expect("it is listed", "snat "+strings.TrimPrefix(snatRefusal, "snat: "), listed)

		w.overlay()
		w.expect("enabled", snatOn, w.snatHeld)
		w.Settled()
		w.nothingRefused()
		w.expect("no warning", "", w.snatWarning)
		w.expect("it is listed", "snat ", listed)
		w.recorded("pods leave with an address of the node")
		w.translation("5000", true)
		w.Rests(3 * time.Minute)
		w.failuresCostNothing(address.External, address.Interfaces, address.Renderer("nat44"), address.External)
		if err := w.command("snat", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")); !errors.Is(err, command.ErrState) {
			t.Errorf("its layer was changed: %v", err)
		}

		w.peer("10.1.9.0/24")
		w.expect("a peer without an overlay", strings.Replace(snatRefusal, "10.1.2.0", "10.1.9.0", 1), w.snatWarning)
		w.expect("nothing in VPP", "", w.snatHeld)
		w.Settled()
		w.nothingRefused()
		w.translation("6000", false)
		if s.saved["snat"] != nil {
			t.Errorf("still saved: %s", s.saved["snat"])
		}
	})
}

// TestSNATBeneathLayers: other layers come first, and SNAT comes up again when they go; a restart
// of VPP brings all of it back.
func TestSNATBeneathLayers(t *testing.T) {
	withSNAT(t, newSources(), true, func(w *world) {
		w.overlay()
		w.expect("enabled", snatOn, w.snatHeld)
		if err := w.command("ops", `"priority": 0, "staticMappings": [{"external": "203.0.113.2", "to": ["192.168.16.1"]}], "interfaces": [{"name": "uplink0", "role": "nat"}]`); err != nil {
			t.Fatal(err)
		}
		w.expect("above it", `10.1.1.254 snat in-sync
192.168.16.1 snat refused ops
192.168.16.1:4789/UDP snat in-sync
203.0.113.2 ops in-sync
address 192.168.16.1 snat in-sync
interface uplink0 ops in-sync
interface uplink0 snat shadowed ops`, w.entries)
		if err := w.command("ops", ""); err != nil {
			t.Fatal(err)
		}
		w.expect("up again", snatOn, w.snatHeld)
		w.Settled()
		w.CrashVPP()
		w.Stream.Connect()
		w.expect("a VPP without an overlay", snatRefusal, w.snatWarning)
		w.overlay()
		w.expect("in the new VPP", snatOn, w.snatHeld)
		w.Settled()
	})
}

// TestSNATOff: what is off writes nothing, and neither looks for peers nor says anything.
func TestSNATOff(t *testing.T) {
	withSNAT(t, newSources(), false, func(w *world) {
		w.overlay()
		w.Source.Serve("web", "10.96.0.1", "10.1.1.2")
		w.Settled()
		w.expect("nothing in VPP", "", w.snatHeld)
		w.expect("no warning", "", w.snatWarning)
		w.translation("4000", false)
	})
}

// recorded fails the test unless the journal has an event about SNAT.
func (w *world) recorded(text string) {
	w.Helper()
	events := w.Events(&status.EventsQuery{Limit: 500})
	if !slices.ContainsFunc(events, func(e *messages.Event) bool { return e.GetObject() == "snat" && e.GetText() == text }) {
		w.Errorf("the journal lacks %q", text)
	}
}

// nothingRefused fails the test if VPP has ever refused an operation on rows or roles. Until the
// next try the uplink would have no role.
func (w *world) nothingRefused() {
	w.Helper()
	events := w.Events(&status.EventsQuery{Limit: 500})
	for _, e := range events {
		if e.GetActor() == address.Renderer("nat44") && e.GetError() != "" {
			w.Errorf("%s: %s: %s", e.GetKind(), e.GetText(), e.GetError())
		}
	}
}
