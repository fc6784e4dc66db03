package link

import (
	"errors"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"
)

// mapping is an LB mapping with these weights.
func mapping(isAdd bool, weights ...uint8) *nat44_ed.Nat44AddDelLbStaticMapping {
	m := &nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: isAdd, ExternalPort: 80, Protocol: 6}
	for i, w := range weights {
		m.Locals = append(m.Locals, nat44_ed.Nat44LbAddrPort{Port: uint16(i + 1), Probability: w})
	}
	return m
}

// repeat is n times the same weight.
func repeat(n int, weight uint8) []uint8 {
	all := make([]uint8, n)
	for i := range all {
		all[i] = weight
	}
	return all
}

// translation is a CNAT translation whose endpoints all have these interface indices.
func translation(paths int, vip, dst, src interface_types.InterfaceIndex) *cnat.CnatTranslationUpdate {
	m := &cnat.CnatTranslationUpdate{}
	m.Translation.Vip.SwIfIndex = vip
	for range paths {
		m.Translation.Paths = append(m.Translation.Paths, cnat.CnatEndpointTuple{
			DstEp: cnat.CnatEndpoint{SwIfIndex: dst, Addr: ip_types.Address{}}, SrcEp: cnat.CnatEndpoint{SwIfIndex: src},
		})
	}
	return m
}

func TestCheck(t *testing.T) {
	const absent = ^interface_types.InterfaceIndex(0)
	vrf := mapping(true, 7, 7)
	vrf.Locals[1].VrfID = none
	tag := func(n int) *nat44_ed.Nat44AddDelLbStaticMapping {
		m := mapping(true, 7, 7)
		m.Tag = strings.Repeat("x", n)
		return m
	}
	tests := []struct {
		name string
		msg  api.Message
		// why is a part of the reason; "" means that the message passes.
		why string
	}{
		{"LB with 2 locals", mapping(true, 7, 7), ""},
		{"LB with 255 locals", mapping(true, repeat(255, 1)...), ""},
		{"LB with 255 locals, most of them pads", mapping(true, append(repeat(254, 0), 255)...), ""},
		{"LB without locals", mapping(true), "locals: 0"},
		{"LB with 1 local", mapping(true, 255), "locals: 1"},
		{"LB with 256 locals", mapping(true, append(repeat(255, 0), 1)...), "locals: 256"},
		{"LB with pads only", mapping(true, 0, 0), "probability is 0 modulo 256"},
		{"LB with sum 255", mapping(true, 128, 127), ""},
		{"LB with sum 256", mapping(true, 128, 128), "probability is 0 modulo 256"},
		{"LB with sum 512", mapping(true, 255, 255, 2), "probability is 0 modulo 256"},
		{"LB with sum 257, of which the second entry takes 128 back", mapping(true, 129, 128), ""},
		{"LB with a draining backend", mapping(true, 7, 249, 7, 0), ""},
		{"LB with draining backends only", mapping(true, 7, 249, 7, 249), "probability is 0 modulo 256"},
		{"LB removed without locals", mapping(false), ""},
		{"LB removed with 255 locals", mapping(false, repeat(255, 255)...), ""},
		{"LB removed with 256 locals", mapping(false, repeat(256, 1)...), "locals: 256"},
		{"LB with VRF ~0", vrf, "locals[1].vrf_id"},
		{"LB with a tag of 63 bytes", tag(63), ""},
		{"LB with a tag of 64 bytes", tag(64), "tag has 64 bytes"},
		{"local", &nat44_ed.Nat44LbStaticMappingAddDelLocal{IsAdd: true, Local: nat44_ed.Nat44LbAddrPort{Probability: 7}}, ""},
		{"pad", &nat44_ed.Nat44LbStaticMappingAddDelLocal{IsAdd: true}, ""},
		{"local with VRF ~0", &nat44_ed.Nat44LbStaticMappingAddDelLocal{Local: nat44_ed.Nat44LbAddrPort{VrfID: none}}, "vrf_id is ~0"},
		{"static mapping", &nat44_ed.Nat44AddDelStaticMappingV2{ExternalSwIfIndex: absent}, ""},
		{"static mapping of an interface", &nat44_ed.Nat44AddDelStaticMappingV2{ExternalSwIfIndex: 3}, ""},
		{"static mapping of local0", &nat44_ed.Nat44AddDelStaticMappingV2{}, "external_sw_if_index is 0"},
		{"static mapping v1 of local0", &nat44_ed.Nat44AddDelStaticMapping{}, "external_sw_if_index is 0"},
		{"static mapping with a long tag", &nat44_ed.Nat44AddDelStaticMappingV2{ExternalSwIfIndex: absent, Tag: strings.Repeat("x", 64)}, "tag"},
		{"identity mapping", &nat44_ed.Nat44AddDelIdentityMapping{SwIfIndex: absent}, ""},
		{"identity mapping of local0", &nat44_ed.Nat44AddDelIdentityMapping{}, "sw_if_index is 0"},
		{"disabling NAT44", &nat44_ed.Nat44EdPluginEnableDisable{Enable: false}, ""},
		{"session", &nat44_ed.Nat44DelSession{Address: [4]byte{10, 1, 1, 1}, Port: 80, ExtHostAddress: [4]byte{10, 1, 1, 2}}, ""},
		{"session that looks like a mapping", &nat44_ed.Nat44DelSession{Address: [4]byte{10, 1, 1, 1}, Port: 80}, "key of a mapping"},
		{"CNAT", translation(1, absent, absent, absent), ""},
		{"CNAT to interfaces", translation(3, 2, 3, 4), ""},
		{"CNAT without paths", translation(0, absent, absent, absent), "paths: none"},
		{"CNAT with VIP on local0", translation(1, 0, absent, absent), "vip.sw_if_index is 0"},
		{"CNAT with backend on local0", translation(2, absent, 0, absent), "paths[0]"},
		{"CNAT with source on local0", translation(2, absent, absent, 0), "paths[0]"},
		{"CNAT SNAT address", &cnat.CnatSetSnatAddresses{SwIfIndex: absent}, ""},
		{"CNAT SNAT address of local0", &cnat.CnatSetSnatAddresses{}, "sw_if_index is 0"},
		{"CNAT purge", &cnat.CnatSessionPurge{}, "translations"},
		{"CNAT removal", &cnat.CnatTranslationDel{ID: 0}, ""},
		{"dump of all interfaces", &interfaces.SwInterfaceDump{}, ""},
		{"cli", &vlib.Cli{}, "shared memory"},
		{"cli: show", &vlib.CliInband{Cmd: " show cnat snat-policy"}, ""},
		{"cli: trace", &vlib.CliInband{Cmd: "trace add af-packet-input 20"}, ""},
		{"cli: clear trace", &vlib.CliInband{Cmd: "clear trace"}, ""},
		{"cli: sessions", &vlib.CliInband{Cmd: "clear nat44 ed sessions"}, "only reads"},
		{"cli: sessions, abbreviated", &vlib.CliInband{Cmd: "cle nat44 ed ses"}, "only reads"},
		{"cli: limit", &vlib.CliInband{Cmd: "set nat44 session limit 1000"}, "only reads"},
		{"cli: purge of CNAT", &vlib.CliInband{Cmd: "cnat purge"}, "only reads"}, // of 26.10
		{"cli: purge of CNAT, abbreviated", &vlib.CliInband{Cmd: " cnat  pur"}, "only reads"},
		{"cli: purge of CNAT in a second line", &vlib.CliInband{Cmd: "show cnat timestamp\ncnat purge"}, "only reads"},
		{"cli: timestamps of CNAT", &vlib.CliInband{Cmd: "show cnat timestamp"}, ""},
		{"cli: second line", &vlib.CliInband{Cmd: "show version\nclear nat44 ed sessions"}, "only reads"},
		{"cli: word that begins like show", &vlib.CliInband{Cmd: "showdown"}, "only reads"},
		{"cli: half of two words", &vlib.CliInband{Cmd: "clear"}, "only reads"},
		{"cli: empty", &vlib.CliInband{}, "only reads"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Check(tt.msg)
			switch {
			case tt.why == "" && err != nil:
				t.Errorf("Check = %v", err)
			case tt.why != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.why) || !strings.Contains(err.Error(), tt.msg.GetMessageName())):
				t.Errorf("Check = %v, want a refusal that names %s and says %q", err, tt.msg.GetMessageName(), tt.why)
			}
		})
	}
}
