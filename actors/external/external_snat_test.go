package external

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// withSNAT plays in a house with dynamic SNAT; its peer is reached by the default route until an overlay is built.
func withSNAT(t *testing.T, s *pantry, enabled bool, play func(h *house)) {
	t.Helper()
	inHouse(t, 1, func(h *house, _ *runtime.Options) {
		h.deps.External, s.updates = s, make(chan ExternalUpdate, 100)
		h.deps.SNAT = external.SNAT{Enabled: enabled, OverlayPorts: []string{"4789/UDP"}}
		if _, err := h.wire.vpp.AddInterface("host0", []netip.Prefix{netip.MustParsePrefix("169.254.0.1/30")}, true); err != nil {
			t.Fatal(err)
		}
	}, play)
}

// overlay reaches the pods of the peer through a tunnel.
func (h *house) overlay() {
	h.Helper()
	_, err := h.wire.vpp.AddInterface("vxlan_tunnel0", []netip.Prefix{netip.MustParsePrefix("10.200.0.1/24")}, true)
	peer := simulator.Route{Prefix: netip.MustParsePrefix("10.1.2.0/24"), Interface: "vxlan_tunnel0", NextHop: netip.MustParseAddr("10.200.0.2")}
	if err = errors.Join(err, h.wire.vpp.AddRoute(peer)); err != nil {
		h.Fatal(err)
	}
}

// passes sends a packet and says how it left, as "interface source > destination".
func (h *house) passes(in, src, dst string, proto uint8, flags simulator.TCPFlags) string {
	h.Helper()
	v := h.wire.vpp.Send(simulator.Packet{In: in, Src: netip.MustParseAddrPort(src), Dst: netip.MustParseAddrPort(dst), Proto: proto, Flags: flags})
	if v.Action != simulator.Delivered {
		return v.Action.String()
	}
	return v.Out + " " + v.Src.String() + " > " + v.Dst.String()
}

// translation are packets of a node: through a service from outside and from a pod, of the overlay, of and to the node, and out of pods.
func (h *house) translation(port string, snat bool) {
	h.Helper()
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
		if got := h.passes(p.in, p.src, p.dst, p.proto, p.flags); got != p.want {
			h.Errorf("%s: %s > %s left as %s, want %s", p.in, p.src, p.dst, got, p.want)
		}
	}
}

// snatHeld says what VPP holds of SNAT.
func (h *house) snatHeld() string {
	h.Helper()
	state, err := nat44.Read(context.Background(), h.vpp)
	if err != nil {
		h.Fatal(err)
	}
	var texts []string
	for _, a := range state.Pool {
		texts = append(texts, a.String())
	}
	if state.Output[h.wire.vpp.Interfaces()["uplink0"]] {
		texts = append(texts, "output")
	}
	return strings.Join(append(texts, h.outsideRows()), " ")
}

// snatWarning is what readiness says beside "ready" about external configuration.
func (h *house) snatWarning() string {
	report := h.deps.Readiness.Load()
	at := slices.IndexFunc(report.Parts, func(p Part) bool { return p.Name == "external" })
	if at < 0 || !report.Ready {
		return "not ready: " + report.Reasons()
	}
	return report.Parts[at].Reason
}

const (
	snatIdentities = "10.1.1.254:0/0>10.1.1.254 192.168.16.1:0/0>192.168.16.1 192.168.16.1:4789/UDP>192.168.16.1"
	snatOn         = "192.168.16.1 output " + snatIdentities
	snatRefusal    = "snat: refused: packets to pods of other nodes leave through uplink0 without an overlay, and would be translated: 10.1.2.0/24 of n2"
)

// TestSNAT: pods leave with the address of the node and get their answers, and nothing else is translated; whoever dies, nothing is written;
// an overlay that goes takes it away, with a reason, and one that comes brings it.
func TestSNAT(t *testing.T) {
	s := newPantry("file")
	s.first = append(s.first, says("file"))
	withSNAT(t, s, true, func(h *house) {
		h.serve("web", "10.96.0.1", "10.1.1.2")
		h.settle(time.Minute)
		h.expect("refused", snatRefusal, h.snatWarning)
		h.expect("nothing in VPP", "", h.snatHeld)
		h.translation("4000", false)
		h.quiet()
		h.recorded("refused, nothing is translated")
		layers := func() string {
			answer, err := h.sys.Ask(context.Background(), PathExternal, &ExternalQuery{})
			if err != nil {
				h.Fatal(err)
			}
			var texts []string
			for _, l := range answer.(*ExternalPage).Layers {
				texts = append(texts, l.Source+" "+l.Problem)
			}
			return strings.Join(texts, ", ")
		}
		h.expect("it is listed", "snat "+strings.TrimPrefix(snatRefusal, "snat: "), layers)

		h.overlay()
		h.expect("enabled", snatOn, h.snatHeld)
		h.settle(time.Minute)
		h.nothingRefused()
		h.expect("no warning", "", h.snatWarning)
		h.expect("it is listed", "snat ", layers)
		h.recorded("pods leave with an address of the node")
		h.translation("5000", true)
		h.quiet()
		for _, path := range []string{PathExternal, PathInterfaces, PathRenderer(nat), PathExternal} {
			writes, _ := h.wire.counts()
			if err := h.sys.Kill(path); err != nil {
				t.Fatal(err)
			}
			h.run(10 * time.Second)
			if after, _ := h.wire.counts(); after != writes {
				t.Errorf("the death of %s cost %d writes", path, after-writes)
			}
		}
		if err := h.command("snat", mapped("203.0.113.1:80/TCP", "10.1.1.2:80")); !errors.Is(err, errReserved) {
			t.Errorf("its layer was changed: %v", err)
		}

		h.cluster.change(func() { h.cluster.peer = peerNode("192.168.16.2"); h.cluster.peer.PodCidrs = []string{"10.1.9.0/24"} })
		h.expect("a peer without an overlay", strings.Replace(snatRefusal, "10.1.2.0", "10.1.9.0", 1), h.snatWarning)
		h.expect("nothing in VPP", "", h.snatHeld)
		h.settle(time.Minute)
		h.nothingRefused()
		h.translation("6000", false)
		if s.kept["snat"] != nil {
			t.Errorf("still kept: %s", s.kept["snat"])
		}
	})
}

// TestSNATBeneathLayers: other layers come first, and SNAT comes up again when they go; a restart of VPP brings all of it back.
func TestSNATBeneathLayers(t *testing.T) {
	withSNAT(t, newPantry(), true, func(h *house) {
		h.overlay()
		h.expect("enabled", snatOn, h.snatHeld)
		if err := h.command("ops", `"priority": 0, "staticMappings": [{"external": "203.0.113.2", "to": ["192.168.16.1"]}], "interfaces": [{"name": "uplink0", "role": "nat"}]`); err != nil {
			t.Fatal(err)
		}
		h.expect("above it", `10.1.1.254 snat in-sync
192.168.16.1 snat refused ops
192.168.16.1:4789/UDP snat in-sync
203.0.113.2 ops in-sync
address 192.168.16.1 snat in-sync
interface uplink0 ops in-sync
interface uplink0 snat shadowed ops`, h.entries)
		if err := h.command("ops", ""); err != nil {
			t.Fatal(err)
		}
		h.expect("up again", snatOn, h.snatHeld)
		h.settle(time.Minute)
		h.wire.crash()
		h.wire.connect()
		h.expect("a VPP without an overlay", snatRefusal, h.snatWarning)
		h.overlay()
		h.expect("in the new VPP", snatOn, h.snatHeld)
		h.settle(time.Minute)
	})
}

// TestSNATOff: what is off writes nothing, and neither looks for peers nor says anything.
func TestSNATOff(t *testing.T) {
	withSNAT(t, newPantry(), false, func(h *house) {
		h.overlay()
		h.serve("web", "10.96.0.1", "10.1.1.2")
		h.settle(time.Minute)
		h.expect("nothing in VPP", "", h.snatHeld)
		h.expect("no warning", "", h.snatWarning)
		h.translation("4000", false)
	})
}

// recorded fails the test unless the journal has an event about SNAT.
func (h *house) recorded(text string) {
	h.Helper()
	answer, err := h.sys.Ask(context.Background(), PathJournal, &EventsQuery{Limit: 500})
	if err != nil {
		h.Fatal(err)
	}
	if !slices.ContainsFunc(answer.(*EventsPage).Events, func(e *messages.Event) bool { return e.GetObject() == "snat" && e.GetText() == text }) {
		h.Errorf("the journal lacks %q", text)
	}
}

// nothingRefused fails the test if VPP has ever refused an operation on rows or roles: while it is tried again the uplink has no role at all.
func (h *house) nothingRefused() {
	h.Helper()
	answer, err := h.sys.Ask(context.Background(), PathJournal, &EventsQuery{Limit: 500})
	if err != nil {
		h.Fatal(err)
	}
	for _, e := range answer.(*EventsPage).Events {
		if e.GetActor() == PathRenderer(nat) && e.GetError() != "" {
			h.Errorf("%s: %s: %s", e.GetKind(), e.GetText(), e.GetError())
		}
	}
}
