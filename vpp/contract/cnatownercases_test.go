package contract

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	vppcnat "github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// cnatOwners are cases of a VPP in which another client has set up source NAT of CNAT, as
// Calico-VPP does.
var cnatOwners = []contractCase{
	{"cnat owners/what VPP shows of source NAT", func(t *testing.T, v *rig) {
		o := newOwner(t, v)
		want := []string{"Included v4 interfaces:", "loop0", "Included v6 interfaces:", "k8s pod interfaces:", "loop0", "k8s host interfaces:"}
		check(t, "tables", want, o.tables())
	}},
	{"cnat owners/source NAT of another client stays over start, restart and clean-up", func(t *testing.T, v *rig) {
		if !v.version(t).featureIsEnabled {
			v.lacks(t, &feature.FeatureIsEnabled{}) // CNAT is not served there
			return
		}
		for _, ip4 := range []bool{false, true} {
			o := newOwner(t, v)
			before := o.holds()
			for range 2 { // the second time as a new agent
				o.settle(o.agent(ip4))
				check(t, "source NAT", before, o.holds())
			}
			o.apply(vppcnat.Removal(o.read(true)))
			check(t, "source NAT", before, o.holds())
			check(t, "translations", 1, len(translations(t, v)))
		}
	}},
	{"cnat owners/what another client adds to ours stays", func(t *testing.T, v *rig) {
		if !v.version(t).featureIsEnabled {
			v.lacks(t, &feature.FeatureIsEnabled{})
			return
		}
		o := &owner{T: t, rig: v, index: loopback(t, v)}
		want := o.agent(false)
		want.SNAT, want.Own = vppcnat.SNAT{netip.IPv4Unspecified(), netip.MustParseAddr("fd00:1::fe")}, vppcnat.SNAT{netip.IPv4Unspecified(), netip.MustParseAddr("fd00:1::fe")}
		o.settle(want)
		v.expect(t, ok, exclude(t, 1, "10.1.0.0/16"))
		want.Targets = []netip.Prefix{netip.MustParsePrefix("fd00:2::1/128")}
		o.settle(want)
		check(t, "network of the other client", true, o.read(false).Excluded[netip.MustParsePrefix("10.1.0.0/16")])
		// In 25.10 one message sets both addresses. The agent keeps the other one.
		v.expect(t, ok, &cnat.CnatSetSnatAddresses{SnatIP4: [4]byte{192, 168, 50, 1}, SnatIP6: want.SNAT[1].As16(), SwIfIndex: none})
		want.Targets = nil
		o.settle(want)
		check(t, "addresses", "[192.168.50.1 fd00:1::fe]", fmt.Sprint(o.read(false).SNAT))
	}},
}

// owner is the other client, with an interface of VPP.
type owner struct {
	*testing.T
	*rig
	index interface_types.InterfaceIndex
}

// newOwner sets up the source NAT of another client.
func newOwner(t *testing.T, v *rig) *owner {
	t.Helper()
	o := &owner{T: t, rig: v, index: loopback(t, v)}
	v.expect(t, ok, &cnat.CnatSetSnatAddresses{SnatIP4: [4]byte{192, 168, 50, 1}, SwIfIndex: none})
	v.expect(t, ok, v.version(t).cnat.policy(cnat.CNAT_POLICY_IF_PFX))
	v.expect(t, ok, exclude(t, 1, "10.1.0.0/16"))
	v.expect(t, ok, exclude(t, 1, "192.168.50.1/32"))
	for _, table := range []cnat.CnatSnatPolicyTable{cnat.CNAT_POLICY_INCLUDE_V4, cnat.CNAT_POLICY_POD} {
		v.expect(t, ok, &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: o.index, IsAdd: 1, Table: table})
	}
	update(t, v, translation("10.96.0.99", "10.1.2.2"))
	return o
}

// agent is what an agent wants that serves IPv6, and IPv4 if it is told to.
func (o *owner) agent(ip4 bool) *vppcnat.Want {
	config := vppcnat.Config{Node: "n1", IPv4: ip4, SNAT: []netip.Addr{netip.MustParseAddr("10.1.1.254"), netip.MustParseAddr("fd00:1::fe")}}
	want := config.Want()
	want.Interfaces[uint32(o.index)] = &vppcnat.Tables{Outside: true}
	key := rule.Key{Addr: netip.MustParseAddr("fd00:96::1"), Port: 80, Proto: rule.TCP}
	want.Rows[key] = vppcnat.Row{Key: key, Backends: []netip.AddrPort{netip.MustParseAddrPort("[fd00:1::1]:80")}}
	return want
}

func (o *owner) read(ip4 bool) *vppcnat.State {
	o.Helper()
	state, err := vppcnat.Read(o.Context(), o.link, ip4, []uint32{uint32(o.index)}, nil)
	if err != nil {
		o.Fatal(err)
	}
	return state
}

func (o *owner) apply(ops []vppcnat.Op) {
	o.Helper()
	for _, r := range vppcnat.Apply(o.Context(), o.link, ops) {
		if r.Err != nil {
			o.Error(r.Err)
		}
	}
}

// settle makes VPP hold what an agent wants.
func (o *owner) settle(want *vppcnat.Want) {
	o.Helper()
	state := o.read(false)
	state.Assume(want)
	o.apply(vppcnat.Diff(state, want, true))
}

// shows is what VPP prints of source NAT.
func (o *owner) shows() string {
	o.Helper()
	return ask[*vlib.CliInbandReply](o.T, o.rig, &vlib.CliInband{Cmd: "show cnat snat-policy"}).Reply
}

// tables are the interfaces in tables, a line each, below the names of the tables.
func (o *owner) tables() (lines []string) {
	text := o.shows()
	for line := range strings.Lines(text[strings.Index(text, "Included v4"):]) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// holds are addresses, excluded networks and tables.
func (o *owner) holds() []string {
	state := o.read(false)
	held := append([]string{state.SNAT[0].String(), state.SNAT[1].String()}, o.tables()...)
	order := func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) }
	for _, p := range slices.SortedFunc(maps.Keys(state.Excluded), order) {
		held = append(held, p.String())
	}
	return held
}
