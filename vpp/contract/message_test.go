package contract

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Return values of VPP 25.10 (vnet/error.h) that the agent relies on.
const (
	ok              = 0
	unspecified     = -1
	noInterface     = -2
	noSuchEntry     = -6
	invalidValue    = -7
	featureDisabled = -30
	valueExist      = -81
	unsupported     = -126
	invalidProtocol = -153
	alreadyDisabled = -169
	alreadyEnabled  = -170
)

// enable is what enables the plugin.
var enable = &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 1024}

// vip is the external address of most cases.
var vip = [4]byte{10, 96, 0, 1}

// out2in are the flags of most rows.
const out2in = nat_types.NAT_IS_OUT2IN_ONLY

// local makes a backend of weight 7.
func local(host byte) nat44_ed.Nat44LbAddrPort {
	return nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, host}, Port: 8080, Probability: 7}
}

// row makes the message that adds a TCP row on port 80 of the VIP.
func row(locals ...nat44_ed.Nat44LbAddrPort) *nat44_ed.Nat44AddDelLbStaticMapping {
	return &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: out2in, ExternalAddr: vip, ExternalPort: 80, Protocol: rule.TCP, Tag: "other client",
		LocalNum: uint32(len(locals)), Locals: locals,
	}
}

// noRow makes the message that deletes the row.
func noRow() *nat44_ed.Nat44AddDelLbStaticMapping {
	return &nat44_ed.Nat44AddDelLbStaticMapping{Flags: out2in, ExternalAddr: vip, ExternalPort: 80, Protocol: rule.TCP}
}

// addLocal and delLocal make the messages that change the row.
func addLocal(l nat44_ed.Nat44LbAddrPort) *nat44_ed.Nat44LbStaticMappingAddDelLocal {
	return &nat44_ed.Nat44LbStaticMappingAddDelLocal{IsAdd: true, ExternalAddr: vip, ExternalPort: 80, Protocol: rule.TCP, Local: l}
}

func delLocal(l nat44_ed.Nat44LbAddrPort) *nat44_ed.Nat44LbStaticMappingAddDelLocal {
	msg := addLocal(l)
	msg.IsAdd = false
	return msg
}

// static makes the message that adds a simple mapping on port 80 of the VIP.
func static() *nat44_ed.Nat44AddDelStaticMappingV2 {
	return &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, Flags: out2in, LocalIPAddress: [4]byte{10, 1, 1, 1}, LocalPort: 8080, ExternalIPAddress: vip, ExternalPort: 80,
		Protocol: rule.TCP, ExternalSwIfIndex: none, Tag: "simple",
	}
}

// noStatic makes the message that deletes it.
func noStatic() *nat44_ed.Nat44AddDelStaticMappingV2 {
	msg := static()
	msg.IsAdd = false
	return msg
}

// identity makes the message that exempts port 80 of the VIP.
func identity() *nat44_ed.Nat44AddDelIdentityMapping {
	return &nat44_ed.Nat44AddDelIdentityMapping{IsAdd: true, IPAddress: vip, Port: 80, Protocol: rule.TCP, SwIfIndex: none, Tag: "exempt"}
}

// none is "no interface".
const none = ^interface_types.InterfaceIndex(0)

// twiceNAT makes the message that adds addresses to the twice-NAT pool.
func twiceNAT(first, last [4]byte) *nat44_ed.Nat44AddDelAddressRange {
	return &nat44_ed.Nat44AddDelAddressRange{
		FirstIPAddress: first, LastIPAddress: last, VrfID: ^uint32(0), IsAdd: true, Flags: nat_types.NAT_IS_TWICE_NAT,
	}
}

// role makes the message that gives or takes a role.
func role(isAdd bool, index interface_types.InterfaceIndex, flags nat_types.NatConfigFlags) *nat44_ed.Nat44InterfaceAddDelFeature {
	return &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: isAdd, SwIfIndex: index, Flags: flags}
}

// Roles of interfaces.
const (
	inside  = nat_types.NAT_IS_INSIDE
	outside = nat_types.NAT_IS_OUTSIDE
)

// output makes the message that makes an interface an output interface.
func output(isAdd bool, index interface_types.InterfaceIndex) *nat44_ed.Nat44EdAddDelOutputInterface {
	return &nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: isAdd, SwIfIndex: index}
}

// key parses a key.
func key(t testing.TB, text string) rule.Key {
	t.Helper()
	k, err := rule.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rows returns the LB mappings of VPP.
func rows(t testing.TB, v *rig) []*nat44_ed.Nat44LbStaticMappingDetails {
	t.Helper()
	return dump[*nat44_ed.Nat44LbStaticMappingDetails](t, v, &nat44_ed.Nat44LbStaticMappingDump{})
}

// onlyRow returns the only LB mapping of VPP.
func onlyRow(t testing.TB, v *rig) *nat44_ed.Nat44LbStaticMappingDetails {
	t.Helper()
	all := rows(t, v)
	if len(all) != 1 {
		t.Fatalf("%d rows, want one", len(all))
	}
	return all[0]
}

// hosts returns the last byte of every local, in VPP's order.
func hosts(d *nat44_ed.Nat44LbStaticMappingDetails) []byte {
	var all []byte
	for _, l := range d.Locals {
		all = append(all, l.Addr[3])
	}
	return all
}

// wanted makes a row of the agent, with pads.
func wanted(t testing.TB, text string, backends int) nat44.Row {
	t.Helper()
	r := nat44.Row{Key: key(t, text), Flags: nat44.Out2InOnly | nat44.SelfTwiceNAT, Pads: true}
	for i := range backends {
		r.Locals = append(r.Locals, nat44.Local{
			Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Port: 8080, Weight: nat44.Weight(backends),
		})
	}
	r.Tag = nat44.Tag{Hash: nat44.ServiceHash("default/" + text)}.String()
	return r
}

// add makes the operation that adds a row of the agent.
func add(r nat44.Row) api.Message {
	return nat44.Messages(nat44.Op{Verb: nat44.AddRow, Key: r.Key, Row: &r})[0]
}
