package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// otherProtocols are protocols that NAT44 does not know: SCTP, GRE, ESP and IPIP.
var otherProtocols = []uint8{132, 47, 50, 4}

// waysPast are ways of packets that no service concerns: between pods, from a pod to a host
// outside and back, and between hosts outside.
var waysPast = [][2]string{{"10.1.0.5", "10.1.0.9"}, {"10.1.0.5", "198.18.0.7"}, {"198.18.0.7", "10.1.0.5"}, {"198.18.0.7", "198.18.0.20"}}

// others sends a packet of each of these protocols each way, and returns how the packets left.
func (e *egress) others() (left []string) {
	e.Helper()
	pods, up := e.backends, e.clients
	for _, proto := range otherProtocols {
		for i, way := range waysPast {
			in, out := pods, up
			switch i {
			case 0:
				out = pods
			case 2:
				in, out = up, pods
			case 3:
				in = up
			}
			left = append(left, e.pass(in, out, proto, 0, way[0]+":0", way[1]+":0").String())
		}
	}
	return left
}

// untouched is how packets leave that keep their addresses.
func untouched() (left []string) {
	for _, proto := range otherProtocols {
		for _, way := range waysPast {
			left = append(left, fmt.Sprintf("%s:0 > %s:0/%d flags 0x0", way[0], way[1], proto))
		}
	}
	return left
}

// protocolCases are packets of protocols that NAT44 does not know.
var protocolCases = []contractCase{
	{"protocols/with the outside role alone their packets keep their addresses and make no session", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		check(t, "source of SCTP", e.want.TwiceNAT.String()+":0", e.pass(e.backends, e.backends, 132, 0, "10.1.0.5:0", "10.1.0.9:0").src.String())
		e.use(rule.TCP, "10.1.0.5:40000")
		if left := e.others(); slices.Contains(left, untouched()[0]) {
			t.Errorf("with both roles packets keep their addresses: %v", left)
		}
		e.want.OtherProtocols = map[uint32]bool{uint32(e.backends): true, uint32(e.clients): true}
		check(t, "operations", []string{"delete-roles", "delete-roles"}, verbs(v.settle(t, e.want)))
		check(t, "packets", untouched(), e.others())
		check(t, "sessions", 1, len(e.sessions()))
		got := e.pass(e.backends, e.backends, rule.TCP, ack, backendOf, "10.1.0.5:40000") // held
		check(t, "source of an answer of the service", clashVIP, got.src.String())
		e.want.OtherProtocols = nil
		check(t, "operations", []string{"add-roles", "add-roles"}, verbs(v.settle(t, e.want)))
	}},
	{"protocols/with the outside role alone each flow past services has a session", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		e.want.OtherProtocols = map[uint32]bool{uint32(e.backends): true}
		v.settle(t, e.want)
		e.direct(rule.TCP, "10.1.0.5:39000")
		e.direct(rule.UDP, "10.1.0.5:39000")
		e.direct(rule.UDP, "10.1.0.5:39000")
		check(t, "sessions", 2, len(e.sessions()))
	}},
	{"protocols/with the outside role alone a connection is half-open to VPP", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		established := func(port, want int) {
			t.Helper()
			e.use(rule.TCP, fmt.Sprintf("10.1.0.5:%d", port))
			shown := ask[*vlib.CliInbandReply](t, v, &vlib.CliInband{Cmd: "show nat44 summary"}).Reply
			if !strings.Contains(shown, fmt.Sprintf("established: %d ", want)) {
				t.Errorf("want %d established connections:\n%s", want, shown)
			}
		}
		established(40000, 1)
		e.want.OtherProtocols = map[uint32]bool{uint32(e.backends): true}
		v.settle(t, e.want)
		established(40001, 1)
	}},
	{"protocols/with the outside role alone the service takes the answers of a connection with its addresses and ports", func(t *testing.T, v *rig) {
		e := newClash(t, v, true)
		e.want.OtherProtocols = map[uint32]bool{uint32(e.backends): true}
		v.settle(t, e.want)
		for _, proto := range []uint8{rule.TCP, rule.UDP} {
			e.use(proto, "10.1.0.5:40000")
			e.unchanged(e.backends, e.backends, proto, syn, "10.1.0.5:40000", backendOf)
			got := e.pass(e.backends, e.backends, proto, syn|ack, backendOf, "10.1.0.5:40000")
			check(t, "source of an answer past the service", clashVIP, got.src.String())
		}
	}},
}
