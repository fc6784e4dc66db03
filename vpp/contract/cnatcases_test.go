package contract

import (
	"net"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

// cnatEndpoint makes an endpoint of CNAT that names an address.
func cnatEndpoint(addr string, port uint16) cnat.CnatEndpoint {
	a := ip_types.NewAddress(net.ParseIP(addr))
	return cnat.CnatEndpoint{Addr: a, SwIfIndex: none, IfAf: a.Af, Port: port}
}

// translation makes the message that adds or changes a TCP translation of a VIP's port 80.
func translation(vip string, backends ...string) *cnat.CnatTranslationUpdate {
	t := cnat.CnatTranslation{Vip: cnatEndpoint(vip, 80), IPProto: ip_types.IP_API_PROTO_TCP, NPaths: uint32(len(backends))}
	for _, b := range backends {
		t.Paths = append(t.Paths, cnat.CnatEndpointTuple{DstEp: cnatEndpoint(b, 8080), SrcEp: cnat.CnatEndpoint{SwIfIndex: none}})
	}
	return &cnat.CnatTranslationUpdate{Translation: t}
}

// update sends a translation and returns its id.
func update(t testing.TB, v *rig, msg *cnat.CnatTranslationUpdate) uint32 {
	t.Helper()
	return ask[*cnat.CnatTranslationUpdateReply](t, v, msg).ID
}

// translations returns the translations of VPP in the order of their ids.
func translations(t testing.TB, v *rig) []cnat.CnatTranslation {
	t.Helper()
	var all []cnat.CnatTranslation
	for _, d := range dump[*cnat.CnatTranslationDetails](t, v, &cnat.CnatTranslationDump{}) {
		all = append(all, d.Translation)
	}
	return all
}

// readBack is what a dump returns of a translation: without what VPP keeps to itself, and with what
// it adds.
func readBack(t testing.TB, v *rig, id uint32, sent *cnat.CnatTranslationUpdate) cnat.CnatTranslation {
	want := sent.Translation
	want.ID, want.IsRealIP, want.Flags, want.FlowHashConfig = id, 0, 0, 0
	want.Paths = slices.Clone(want.Paths)
	active := v.version(t).cnat.active
	for i := range want.Paths {
		want.Paths[i].Flags |= active
	}
	return want
}

// exclude makes the message that adds or removes an excluded prefix.
func exclude(t testing.TB, isAdd uint8, prefix string) *cnat.CnatSnatPolicyAddDelExcludePfx {
	t.Helper()
	p, err := ip_types.ParsePrefix(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return &cnat.CnatSnatPolicyAddDelExcludePfx{IsAdd: isAdd, Prefix: p}
}

// cnatNodes are the nodes of CNAT with their arcs.
var cnatNodes = [][2]string{
	{"ip6-unicast", "cnat-input-ip6"},
	{"ip6-output", "cnat-output-ip6"},
	{"ip4-unicast", "cnat-input-ip4"},
	{"ip4-output", "cnat-output-ip4"},
}

var cnatCases = []contractCase{
	{"cnat/an update adds or replaces", func(t *testing.T, v *rig) {
		first := translation("fd00:96::1", "fd00:1::1", "fd00:1::2")
		check(t, "id", 0, update(t, v, first))
		second := translation("10.96.0.1", "10.1.1.1")
		check(t, "id", 1, update(t, v, second))
		udp := translation("fd00:96::1", "fd00:1::1")
		udp.Translation.IPProto = ip_types.IP_API_PROTO_UDP
		check(t, "id", 2, update(t, v, udp))
		first = translation("fd00:96::1", "fd00:1::3")
		check(t, "id", 0, update(t, v, first))
		check(t, "translations", []cnat.CnatTranslation{readBack(t, v, 0, first), readBack(t, v, 1, second), readBack(t, v, 2, udp)}, translations(t, v))
	}},
	{"cnat/what a dump returns", func(t *testing.T, v *rig) {
		msg := translation("fd00:96::1", "fd00:1::1", "fd00:1::1")
		tr := &msg.Translation
		tr.LbType, tr.FlowHashConfig, tr.IsRealIP, tr.Flags = cnat.CNAT_LB_TYPE_MAGLEV, 1, 1, 1
		tr.Paths[0].Flags, tr.Paths[0].SrcEp = 2, cnatEndpoint("fd00:1::9", 0)
		tr.Paths[1].Flags = 0x70 // VPP ignores these
		check(t, "translations", []cnat.CnatTranslation{readBack(t, v, update(t, v, msg), msg)}, translations(t, v))
		// The kind of load balancing stays what it was when the translation was added.
		tr.LbType = cnat.CNAT_LB_TYPE_DEFAULT
		update(t, v, msg)
		tr.LbType = cnat.CNAT_LB_TYPE_MAGLEV
		check(t, "translations", []cnat.CnatTranslation{readBack(t, v, 0, msg)}, translations(t, v))
		v.expect(t, ok, &cnat.CnatTranslationDel{ID: 0})
		tr.LbType = cnat.CNAT_LB_TYPE_DEFAULT
		check(t, "translations", []cnat.CnatTranslation{readBack(t, v, update(t, v, msg), msg)}, translations(t, v))
	}},
	{"cnat/a deletion frees the id", func(t *testing.T, v *rig) {
		for i, vip := range []string{"fd00:96::1", "fd00:96::2", "fd00:96::3"} {
			check(t, "id", uint32(i), update(t, v, translation(vip, "fd00:1::1")))
		}
		v.expect(t, ok, &cnat.CnatTranslationDel{ID: 0})
		v.expect(t, noSuchEntry, &cnat.CnatTranslationDel{ID: 0})
		v.expect(t, noSuchEntry, &cnat.CnatTranslationDel{ID: 77})
		v.expect(t, noSuchEntry, &cnat.CnatTranslationDel{ID: ^uint32(0)})
		v.expect(t, ok, &cnat.CnatTranslationDel{ID: 2})
		check(t, "id", 2, update(t, v, translation("fd00:96::4", "fd00:1::1")))
		check(t, "id", 0, update(t, v, translation("fd00:96::5", "fd00:1::1")))
	}},
	{"cnat/an unknown protocol", func(t *testing.T, v *rig) {
		msg := translation("fd00:96::1", "fd00:1::1")
		for _, proto := range []ip_types.IPProto{61, 63, 68, 99, 114, 144, 200, 252} {
			msg.Translation.IPProto = proto
			v.expect(t, invalidProtocol, msg)
		}
		check(t, "translations", nil, translations(t, v))
		for _, proto := range []ip_types.IPProto{0, 1, 3, 143, 253, 255} {
			msg.Translation.IPProto = proto
			v.expect(t, ok, msg)
		}
	}},
	{"cnat/a VIP with a backend of the other family", func(t *testing.T, v *rig) {
		msg := translation("fd00:96::1", "10.1.1.1")
		check(t, "translations", []cnat.CnatTranslation{readBack(t, v, update(t, v, msg), msg)}, translations(t, v))
	}},
	{"cnat/1,000 paths", func(t *testing.T, v *rig) {
		msg := translation("fd00:96::1", slices.Repeat([]string{"fd00:1::1"}, 1000)...)
		for i := range msg.Translation.Paths {
			msg.Translation.Paths[i].DstEp.Port = uint16(i + 1)
		}
		check(t, "translations", []cnat.CnatTranslation{readBack(t, v, update(t, v, msg), msg)}, translations(t, v))
	}},
	{"cnat/a purge deletes the translations", func(t *testing.T, v *rig) {
		update(t, v, translation("fd00:96::1", "fd00:1::1"))
		update(t, v, translation("fd00:96::2", "fd00:1::1"))
		realvpp.NewRaw(t, v.Socket()).Send(t, &cnat.CnatSessionPurge{})
		waitFor(t, "the translations to go", func() bool { return len(translations(t, v)) == 0 })
	}},
	{"cnat/removing the last path crashes VPP", func(t *testing.T, v *rig) {
		update(t, v, translation("fd00:96::1", "fd00:1::1"))
		last := translation("fd00:96::1")
		v.refused(t, last)
		realvpp.NewRaw(t, v.Socket()).Send(t, last)
		v.WaitDead(t)
		v.waitDown(t)
		v.Restart(t)
		v.waitUp(t)
		check(t, "translations", nil, translations(t, v))
	}},
	{"cnat/a restart forgets", func(t *testing.T, v *rig) {
		update(t, v, translation("fd00:96::1", "fd00:1::1"))
		v.Crash(t)
		v.waitDown(t)
		v.Restart(t)
		v.waitUp(t)
		check(t, "translations", nil, translations(t, v))
	}},
	{"cnat/SNAT addresses", func(t *testing.T, v *rig) {
		// The id of the reply has no meaning.
		get := func() *cnat.CnatGetSnatAddressesReply {
			reply := ask[*cnat.CnatGetSnatAddressesReply](t, v, &cnat.CnatGetSnatAddresses{})
			reply.ID = 0
			return reply
		}
		if v.version(t).cnat.addressFirst {
			v.expect(t, featureDisabled, &cnat.CnatGetSnatAddresses{})
		} else {
			check(t, "addresses", &cnat.CnatGetSnatAddressesReply{}, get())
		}
		ip4, ip6 := [4]byte{10, 1, 1, 254}, [16]byte{0xfd, 15: 1}
		v.expect(t, ok, &cnat.CnatSetSnatAddresses{SnatIP4: ip4, SnatIP6: ip6, SwIfIndex: none})
		check(t, "addresses", &cnat.CnatGetSnatAddressesReply{SnatIP4: ip4, SnatIP6: ip6, SwIfIndex: none}, get())
	}},
	{"cnat/SNAT policy", func(t *testing.T, v *rig) {
		says, index := v.version(t).cnat, loopback(t, v)
		if says.addressFirst {
			v.expect(t, featureDisabled, &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: index, IsAdd: 1, Table: cnat.CNAT_POLICY_POD})
			v.expect(t, ok, &cnat.CnatSetSnatAddresses{SnatIP4: vip, SwIfIndex: none})
		}
		for policy, want := range says.policies {
			v.expect(t, want, says.policy(cnat.CnatSnatPolicies(policy)))
		}
		for table, want := range []int32{ok, ok, ok, ok, invalidValue} {
			for _, isAdd := range []uint8{0, 1, 1, 0, 0} {
				v.expect(t, want, &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: index, IsAdd: isAdd, Table: cnat.CnatSnatPolicyTable(table)})
			}
		}
		for isAdd := range uint8(2) {
			v.expect(t, noInterface, &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: 55, IsAdd: isAdd, Table: cnat.CNAT_POLICY_POD})
		}
	}},
	{"cnat/excluded prefixes", func(t *testing.T, v *rig) {
		says := v.version(t).cnat
		if says.addressFirst {
			v.expect(t, ok, &cnat.CnatSetSnatAddresses{SnatIP4: vip, SwIfIndex: none})
		}
		for _, prefix := range []string{"fd00:96::/112", "10.96.0.0/12"} {
			v.expect(t, says.noPrefix, exclude(t, 0, prefix))
			v.expect(t, ok, exclude(t, 1, prefix))
			v.expect(t, ok, exclude(t, 1, prefix))
			v.expect(t, ok, exclude(t, 0, prefix))
			v.expect(t, says.noPrefix, exclude(t, 0, prefix))
		}
	}},
	{"cnat/policy and prefixes without an SNAT address", func(t *testing.T, v *rig) {
		for _, msg := range []api.Message{v.version(t).cnat.policy(cnat.CNAT_POLICY_K8S), exclude(t, 1, "fd00:96::/112")} {
			if !v.version(t).cnat.addressFirst {
				v.expect(t, ok, msg)
				continue
			}
			realvpp.NewRaw(t, v.Socket()).Send(t, msg)
			v.WaitDead(t)
			v.waitDown(t)
			v.Restart(t)
			v.waitUp(t)
		}
	}},
	{"cnat/is a feature enabled? yes, until the arc has room for the interface", func(t *testing.T, v *rig) {
		if !v.version(t).featureIsEnabled {
			v.lacks(t, &feature.FeatureIsEnabled{})
			return
		}
		first, second, third := loopback(t, v), loopback(t, v), loopback(t, v)
		for _, n := range cnatNodes {
			last := map[string]string{"ip4-unicast": "ip4-lookup", "ip6-unicast": "ip6-lookup"}[n[0]]
			beyond := last == "" // the input arcs have room for every interface
			if beyond {
				last = "interface-output"
			}
			enabled := func(index interface_types.InterfaceIndex, node string) bool {
				return ask[*feature.FeatureIsEnabledReply](t, v, &feature.FeatureIsEnabled{SwIfIndex: index, ArcName: n[0], FeatureName: node}).IsEnabled
			}
			for _, on := range []bool{true, false} {
				if on {
					check(t, n[1]+" at first", beyond, enabled(second, n[1]))
				}
				v.expect(t, ok, &feature.FeatureEnableDisable{SwIfIndex: second, Enable: on, ArcName: n[0], FeatureName: n[1]})
				check(t, n[1]+" of an earlier one", false, enabled(first, n[1]))
				check(t, n[1], on, enabled(second, n[1]))
				check(t, last, false, enabled(second, last))
				check(t, n[1]+" of a later one", beyond, enabled(third, n[1]))
				check(t, last+" of a later one", beyond, enabled(third, last))
				check(t, "a node that does not exist", true, enabled(second, "nonsense"))
			}
		}
	}},
	{"cnat/features count, and end with their interface", func(t *testing.T, v *rig) {
		if !v.version(t).featureIsEnabled {
			v.lacks(t, &feature.FeatureIsEnabled{})
			return
		}
		index := loopback(t, v)
		for _, n := range cnatNodes {
			change := func(enable bool) *feature.FeatureEnableDisable {
				return &feature.FeatureEnableDisable{SwIfIndex: index, Enable: enable, ArcName: n[0], FeatureName: n[1]}
			}
			enabled := func() bool {
				return ask[*feature.FeatureIsEnabledReply](t, v, &feature.FeatureIsEnabled{SwIfIndex: index, ArcName: n[0], FeatureName: n[1]}).IsEnabled
			}
			for _, step := range []struct{ enable, want bool }{{true, true}, {true, true}, {false, true}, {false, false}, {false, false}, {true, true}} {
				v.expect(t, ok, change(step.enable))
				check(t, n[1], step.want, enabled())
			}
			v.expect(t, ok, &interfaces.DeleteLoopback{SwIfIndex: index})
			check(t, "index", index, loopback(t, v))
			check(t, n[1], false, enabled())
		}
	}},
}
