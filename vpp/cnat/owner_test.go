package cnat

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
)

// does has another client of VPP send messages.
func (n *testNode) does(msgs ...api.Message) {
	n.Helper()
	answers, err := n.link.Do(context.Background(), msgs)
	if err != nil {
		n.Fatal(err)
	}
	for i, a := range answers {
		if a.Err != nil {
			n.Fatalf("%s: %v", msgs[i].GetMessageName(), a.Err)
		}
	}
}

// others is what VPP holds of source NAT, without our marks and the networks with a mark.
func (n *testNode) others() string {
	n.Helper()
	state, err := Read(context.Background(), n.link, true, nil, nil)
	if err != nil {
		n.Fatal(err)
	}
	marked, left := state.marked(), []string{state.SNAT[0].String(), state.SNAT[1].String()}
	for _, p := range slices.SortedFunc(maps.Keys(state.Excluded), comparePrefixes) {
		if !marked || !state.ours(p, marked) {
			left = append(left, p.String())
		}
	}
	return strings.Join(left, " ")
}

// The settings of another client of VPP.
var (
	theirAddress  = snatMessage(SNAT{netip.MustParseAddr("192.168.50.1"), netip.IPv6Unspecified()})
	vppAddress    = &interfaces.SwInterfaceAddDelAddress{SwIfIndex: 1, IsAdd: true, Prefix: ip_types.AddressWithPrefix(forwarding.Prefix(netip.MustParsePrefix("192.168.50.1/32")))}
	theirAddress6 = snatMessage(SNAT{netip.IPv4Unspecified(), netip.MustParseAddr("fd00:50::1")})
	theirPolicy   = &cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_IF_PFX}
	theirNetwork  = excludeMessage(netip.MustParsePrefix("10.1.0.0/16"), 1)
	theirTable    = &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: 2, IsAdd: 1, Table: cnat.CNAT_POLICY_INCLUDE_V4}
)

// TestOthers: source NAT that another client of VPP has set up stays as it is, whatever part of it
// there is. A family with its address is not served, unless VPP is the destination of the address.
// The other one is, and the agent has no source replaced.
func TestOthers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		theirs []api.Message
		serves [2]bool // IPv4, IPv6
	}{
		{"all of IPv4", []api.Message{theirAddress, theirPolicy, theirNetwork, theirTable}, [2]bool{false, true}},
		{"an address of IPv4", []api.Message{theirAddress}, [2]bool{false, true}},
		{"an address of VPP itself", []api.Message{vppAddress, theirAddress}, [2]bool{true, true}},
		{"an address of IPv6", []api.Message{theirAddress6}, [2]bool{true, false}},
		{"networks without an address", []api.Message{theirNetwork}, [2]bool{true, true}},
		{"tables without an address", []api.Message{theirTable}, [2]bool{true, true}},
	} {
		for _, ip4 := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				n := newNode(t)
				n.want.IPv4 = ip4
				n.want.SNAT[0], n.want.Own[0] = netip.MustParseAddr("10.1.1.254"), netip.MustParseAddr("10.1.1.254")
				n.does(tt.theirs...)
				before, holds := n.others(), n.snat()
				n.state = nil
				n.read()
				if o := n.state.Others(n.want); !o.Settings || o.Serves(false) != tt.serves[0] || o.Serves(true) != tt.serves[1] {
					t.Errorf("others have %+v", o)
				}
				n.serve(serving("fd00:96::1", 80, messages.Protocol_TCP, "fd00:2::1#80"))
				n.settle()
				for range 2 { // the same agent, and a new one
					if done, sent := n.settle(); sent > 0 {
						t.Errorf("goes on with %d messages: %v", sent, done)
					}
					n.state = nil
					n.read()
				}
				if !n.state.shared(n.want) {
					t.Error("a clean-up would remove the settings")
				}
				if now := n.others(); now != before || n.snat() != holds {
					t.Errorf("%s\n%s\nbecame %s\n%s", before, holds, now, n.snat())
				}
			})
		}
	}
}

// snat is what the simulator holds of source NAT.
func (n *testNode) snat() string {
	var found []string
	for line := range strings.Lines(n.vpp.State()) {
		if strings.HasPrefix(strings.TrimSpace(line), "snat ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n")
}

// TestOthersComeLater: what another client adds to our source NAT stays: over changes of ours, over
// restarts, and when ours is removed.
func TestOthersComeLater(t *testing.T) {
	n := newNode(t)
	n.serve(serving("fd00:96::1", 80, messages.Protocol_TCP, "fd00:2::1#80"))
	n.settle()
	six := excludeMessage(netip.MustParsePrefix("fd00:2::/64"), 1)
	n.does(theirNetwork, six)
	const kept = "0.0.0.0 fd00:1::ffff:ffff:ffff:fffe 10.1.0.0/16 fd00:2::/64"
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"a reading", func() {}},
		{"a new agent", func() { n.state = nil }},
		{"another target", func() { n.serve(serving("fd00:96::1", 80, messages.Protocol_TCP, "fd00:3::1#80")) }},
		{"no target", func() { n.serve() }},
	} {
		step.change()
		n.read()
		n.settle()
		if now := n.others(); now != kept {
			t.Errorf("%s: %s", step.name, now)
		}
		if in := n.state.Excludes(n.want.Targets); in.IsValid() != (len(n.want.Targets) == 1 && n.want.Targets[0].Addr() == netip.MustParseAddr("fd00:2::1")) {
			t.Errorf("%s: targets in %s", step.name, in)
		}
		if n.read(); len(Diff(n.state, n.want, true)) > 0 {
			t.Errorf("%s: not settled", step.name)
		}
	}
	n.does(snatMessage(SNAT{netip.MustParseAddr("192.168.50.1"), n.want.SNAT[1]}))
	n.read()
	if o := n.state.Others(n.want); !o.Settings || o.Serves(false) || !o.Serves(true) {
		t.Errorf("with an address of another client: %+v", o)
	}
	n.want.SNAT[1] = netip.MustParseAddr("fd00:1::77")
	if done, _ := n.settle(); len(done) > 0 {
		t.Errorf("its address does not stay: %v", done)
	}
}

// TestOurs: settings of this agent are recognised by their marks after any restart, also when the
// agent served another family before; those of an earlier version by their address.
func TestOurs(t *testing.T) {
	four := netip.MustParseAddr("10.1.1.254")
	for _, tt := range []struct {
		name   string
		before func(n *testNode)
	}{
		{"served IPv4 too", func(n *testNode) {
			n.want.IPv4, n.want.SNAT[0] = true, four
			n.settle()
			n.want.IPv4, n.want.SNAT[0] = false, netip.IPv4Unspecified()
		}},
		{"had another address", func(n *testNode) {
			n.want.SNAT[1], n.want.Own[1] = netip.MustParseAddr("fd00:9::9"), netip.MustParseAddr("fd00:9::9")
			n.settle()
			n.want.SNAT, n.want.Own = onNode.Want().SNAT, onNode.Want().Own
		}},
		{"an earlier version, without marks", func(n *testNode) {
			n.want.Own[0] = four
			n.does(snatMessage(SNAT{four, n.want.SNAT[1]}), excludeMessage(netip.MustParsePrefix("fd00:2::/64"), 1))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			tt.before(n)
			n.state = nil
			n.read()
			if o := n.state.Others(n.want); o.Settings {
				t.Fatalf("others have %+v", o)
			}
			n.settle()
			n.read()
			if left := Diff(n.state, n.want, true); len(left) > 0 || n.state.SNAT != n.want.SNAT || len(n.state.foreign()) > 0 {
				t.Errorf("left %v, holds %v", left, n.state.SNAT)
			}
		})
	}
}

// TestNothingIsLeft: a clean-up removes marks and tables too, in any part of its operations.
func TestNothingIsLeft(t *testing.T) {
	n := newNode(t)
	empty := n.snat()
	n.settle()
	for range 100 {
		n.state = nil
		n.read()
		ops := Removal(n.state)
		if len(ops) == 0 {
			break
		}
		Apply(t.Context(), n.link, ops[:1])
	}
	if now := n.snat(); strings.ReplaceAll(now, "snat policy 2 addresses 0.0.0.0 ::", "") != empty {
		t.Errorf("left: %s", now)
	}
}
