package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	wire "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Return values of the ACL plugin.
const (
	truth            = 1 // an error that became a truth value
	invalidValue2    = -8
	invalidSource    = -57
	invalidDest      = -58
	aclInUseInbound  = -142
	aclInUseOutbound = -143
)

// network parses a prefix for the API, host bits included.
func network(t testing.TB, text string) ip_types.Prefix {
	t.Helper()
	prefix, err := ip_types.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return prefix
}

// denial makes the rule that drops a TCP port, as another client could write it.
func denial(t testing.TB, src, dst string) acl_types.ACLRule {
	t.Helper()
	return acl_types.ACLRule{
		SrcPrefix: network(t, src), DstPrefix: network(t, dst), Proto: ip_types.IP_API_PROTO_TCP,
		SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeFirst: 22, DstportOrIcmpcodeLast: 22,
	}
}

// expectACL adds or replaces an ACL and fails the test unless VPP returns the value, which follows
// the index in this reply.
func (v *rig) expectACL(t testing.TB, want int32, msg *wire.ACLAddReplace) {
	t.Helper()
	results, err := v.link.Do(t.Context(), []api.Message{msg})
	if err != nil {
		t.Fatal(err)
	}
	if reply, ok := results[0].Reply.(*wire.ACLAddReplaceReply); !ok || reply.Retval != want || reply.ACLIndex != msg.ACLIndex && want != 0 {
		t.Errorf("%s%+v was answered by %+v, want %d", msg.GetMessageName(), msg, results[0].Reply, want)
	}
}

// newACL makes an ACL and returns its index.
func newACL(t testing.TB, v *rig, tag string, rules ...acl_types.ACLRule) uint32 {
	t.Helper()
	return ask[*wire.ACLAddReplaceReply](t, v, &wire.ACLAddReplace{ACLIndex: uint32(none), Tag: tag, R: rules}).ACLIndex
}

// setLists makes the message that sets the lists of an interface.
func setLists(index interface_types.InterfaceIndex, input, output []uint32) *wire.ACLInterfaceSetACLList {
	return &wire.ACLInterfaceSetACLList{SwIfIndex: index, NInput: uint8(len(input)), Acls: append(append([]uint32{}, input...), output...)}
}

// listsOf returns the input and the output list of an interface.
func listsOf(t testing.TB, v *rig, index interface_types.InterfaceIndex) (input, output []uint32) {
	t.Helper()
	found := dump[*wire.ACLInterfaceListDetails](t, v, &wire.ACLInterfaceListDump{SwIfIndex: index})
	if len(found) != 1 {
		t.Fatalf("%d details of interface %d", len(found), index)
	}
	n := found[0].NInput
	return found[0].Acls[:n], found[0].Acls[n:]
}

// checkLists compares the lists of an interface.
func checkLists(t testing.TB, v *rig, index interface_types.InterfaceIndex, input, output []uint32) {
	t.Helper()
	in, out := listsOf(t, v, index)
	check(t, "input list", input, in)
	check(t, "output list", output, out)
}

// drops makes rules for all clients, one for every port.
func drops(class acl.Class, ports ...uint16) []acl.Rule {
	var rules []acl.Rule
	for _, port := range ports {
		rules = append(rules, acl.Rule{Class: class, VIP: netip.AddrFrom4(vip), Port: port, Proto: rule.TCP, From: netip.MustParsePrefix("0.0.0.0/0")})
	}
	return rules
}

// aclRules are rules as the package sends them.
func aclRules(tag string, rules []acl.Rule) []acl_types.ACLRule {
	return acl.Message(acl.Op{Verb: acl.Create, Tag: tag, Rules: rules}).(*wire.ACLAddReplace).R
}

// readACLs reads the ACLs.
func (v *rig) readACLs(t testing.TB) *acl.State {
	t.Helper()
	state, err := acl.Read(t.Context(), v.link)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// settleACLs makes VPP drop what is wanted and returns the names of the operations that it took.
// A read has to return the recorded state, and another Diff has to find no operation.
func (v *rig) settleACLs(t testing.TB, want *acl.Want) []string {
	t.Helper()
	have := v.readACLs(t)
	var names []string
	for _, result := range acl.Apply(t.Context(), v.link, acl.Diff(have, want, true)) {
		if result.Err != nil || result.Unknown || result.Messages != 1 {
			t.Errorf("%s: error %v, unknown %v, %d messages", result.Op, result.Err, result.Unknown, result.Messages)
		}
		have.Record(result.Op)
		names = append(names, result.Op.Verb.String())
	}
	again := v.readACLs(t)
	if ops := acl.Diff(again, want, true); len(ops) > 0 {
		t.Errorf("operations %v leave %v", names, ops)
	}
	if ops := acl.Diff(have, want, true); len(ops) > 0 {
		t.Errorf("what was recorded leaves %v", ops)
	}
	check(t, "lists as recorded", again.Lists, have.Lists)
	return names
}

var aclCases = []contractCase{
	{"acl/add, replace and delete", func(t *testing.T, v *rig) {
		first := newACL(t, v, "first", denial(t, "10.0.0.0/8", "0.0.0.0/0"), denial(t, "fd00::/8", "::/0"))
		second := newACL(t, v, strings.Repeat("x", 63))
		check(t, "indices", []uint32{0, 1}, []uint32{first, second})
		replace := &wire.ACLAddReplace{ACLIndex: first, Tag: "1st", R: []acl_types.ACLRule{denial(t, "10.1.0.0/16", "10.2.0.0/16")}}
		check(t, "index", first, ask[*wire.ACLAddReplaceReply](t, v, replace).ACLIndex)
		got := dump[*wire.ACLDetails](t, v, &wire.ACLDump{ACLIndex: uint32(none)})
		check(t, "dump", []*wire.ACLDetails{
			{ACLIndex: first, Tag: "1st", Count: 1, R: replace.R}, {ACLIndex: second, Tag: strings.Repeat("x", 63)},
		}, got)
		check(t, "dump of one", 1, len(dump[*wire.ACLDetails](t, v, &wire.ACLDump{ACLIndex: second})))
		check(t, "dump of none", 0, len(dump[*wire.ACLDetails](t, v, &wire.ACLDump{ACLIndex: 9})))
		v.expect(t, ok, &wire.ACLDel{ACLIndex: first})
		v.expect(t, noSuchEntry, &wire.ACLDel{ACLIndex: first})
		v.expectACL(t, noSuchEntry, replace)
		check(t, "index used again", first, newACL(t, v, "third"))
	}},
	{"acl/rules that are refused", func(t *testing.T, v *rig) {
		good := denial(t, "10.0.0.0/8", "10.96.0.0/12")
		for _, c := range []struct {
			want   int32
			change func(r *acl_types.ACLRule)
		}{
			{invalidSource, func(r *acl_types.ACLRule) { r.SrcPrefix = network(t, "10.0.0.1/8") }},
			{invalidSource, func(r *acl_types.ACLRule) { r.SrcPrefix.Len = 33 }},
			{invalidSource, func(r *acl_types.ACLRule) { r.SrcPrefix.Address.Af = 2 }},
			{invalidSource, func(r *acl_types.ACLRule) { r.SrcPrefix = network(t, "fd00::/8") }},
			{invalidDest, func(r *acl_types.ACLRule) { r.DstPrefix = network(t, "10.96.0.1/12") }},
			{invalidValue2, func(r *acl_types.ACLRule) { r.SrcportOrIcmptypeFirst, r.SrcportOrIcmptypeLast = 2, 1 }},
			{invalidValue2, func(r *acl_types.ACLRule) { r.DstportOrIcmpcodeFirst, r.DstportOrIcmpcodeLast = 2, 1 }},
		} {
			bad := good
			c.change(&bad)
			v.expectACL(t, c.want, &wire.ACLAddReplace{ACLIndex: uint32(none), R: []acl_types.ACLRule{good, bad}})
		}
		v.expectACL(t, invalidValue, &wire.ACLAddReplace{ACLIndex: uint32(none), Tag: strings.Repeat("x", 64)})
		check(t, "ACLs", 0, len(dump[*wire.ACLDetails](t, v, &wire.ACLDump{ACLIndex: uint32(none)})))
	}},
	{"acl/lists of an interface", func(t *testing.T, v *rig) {
		index, other := loopback(t, v), loopback(t, v)
		a, b, c := newACL(t, v, "a"), newACL(t, v, "b"), newACL(t, v, "c")
		v.expect(t, ok, setLists(index, []uint32{b, a}, []uint32{c, a}))
		checkLists(t, v, index, []uint32{b, a}, []uint32{c, a})
		checkLists(t, v, other, nil, nil)
		check(t, "interfaces in the dump", 3, len(dump[*wire.ACLInterfaceListDetails](t, v, &wire.ACLInterfaceListDump{SwIfIndex: none})))
		v.expect(t, aclInUseInbound, &wire.ACLDel{ACLIndex: b})
		v.expect(t, aclInUseOutbound, &wire.ACLDel{ACLIndex: c})
		v.expect(t, ok, setLists(index, []uint32{a, b}, nil))
		checkLists(t, v, index, []uint32{a, b}, nil)
		v.expect(t, ok, &wire.ACLDel{ACLIndex: c})
		v.expect(t, ok, setLists(index, nil, nil))
		checkLists(t, v, index, nil, nil)
		v.expect(t, ok, &wire.ACLDel{ACLIndex: a})
	}},
	{"acl/lists that are refused", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		a, b := newACL(t, v, "a"), newACL(t, v, "b")
		v.expect(t, noInterface, setLists(99, []uint32{a}, nil))
		v.expect(t, ok, setLists(index, []uint32{a}, nil))
		v.expect(t, noSuchEntry, setLists(index, []uint32{a, 9}, []uint32{b}))
		checkLists(t, v, index, []uint32{a}, nil)
		v.expect(t, truth, setLists(index, nil, []uint32{b, b}))
		checkLists(t, v, index, []uint32{a}, nil)
		v.expect(t, truth, setLists(index, []uint32{b, b}, []uint32{b}))
		checkLists(t, v, index, []uint32{a}, []uint32{b}) // the output list was set
	}},
	{"acl/one more or less", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		a, b := newACL(t, v, "a"), newACL(t, v, "b")
		change := func(want int32, add, input bool, number uint32) {
			t.Helper()
			v.expect(t, want, &wire.ACLInterfaceAddDel{IsAdd: add, IsInput: input, SwIfIndex: index, ACLIndex: number})
		}
		v.expect(t, noInterface, &wire.ACLInterfaceAddDel{IsAdd: true, IsInput: true, SwIfIndex: 99, ACLIndex: a})
		change(ok, true, true, b)
		change(ok, true, true, a)
		checkLists(t, v, index, []uint32{b, a}, nil)
		change(aclInUseInbound, true, true, a)
		change(ok, true, false, a)
		change(aclInUseOutbound, true, false, a)
		change(noSuchEntry, true, true, 9)
		change(ok, false, true, b)
		checkLists(t, v, index, []uint32{a}, []uint32{a})
		change(noSuchEntry, false, true, b)
		change(ok, false, true, a)
		change(ok, false, false, a)
		checkLists(t, v, index, nil, nil)
	}},
	{"acl/interface that goes", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		a := newACL(t, v, "a")
		v.expect(t, ok, setLists(index, []uint32{a}, []uint32{a}))
		deleteLoopback(t, v, index)
		check(t, "details", 0, len(dump[*wire.ACLInterfaceListDetails](t, v, &wire.ACLInterfaceListDump{SwIfIndex: index})))
		if again := loopback(t, v); again != index {
			t.Errorf("a new interface has index %d, want %d again", again, index)
		}
		checkLists(t, v, index, nil, nil)
		v.expect(t, ok, &wire.ACLDel{ACLIndex: a})
	}},
	{"acl/nothing to drop, nothing in VPP", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		want := &acl.Want{Interfaces: map[uint32]acl.Class{uint32(index): acl.Remote}}
		check(t, "operations", nil, v.settleACLs(t, want))
		check(t, "state", acl.NewState().Lists, v.readACLs(t).Lists)
	}},
	{"acl/deny lists come, change and go", func(t *testing.T, v *rig) {
		uplink, pod := loopback(t, v), loopback(t, v)
		want := &acl.Want{Rules: drops(acl.Remote, 80, 443), Interfaces: map[uint32]acl.Class{uint32(uplink): acl.Remote, uint32(pod): acl.Local}}
		check(t, "operations", []string{"create-acl", "create-acl", "set-acl-lists"}, v.settleACLs(t, want))
		state := v.readACLs(t)
		deny, permit := state.ACLs[acl.DenyTag(acl.Remote)].Index, state.ACLs[acl.PermitTag].Index
		checkLists(t, v, uplink, []uint32{deny, permit}, nil)
		checkLists(t, v, pod, nil, nil)

		want.Rules = drops(acl.Remote, 80)
		check(t, "operations", []string{"replace-acl"}, v.settleACLs(t, want))
		check(t, "index", deny, v.readACLs(t).ACLs[acl.DenyTag(acl.Remote)].Index)
		checkLists(t, v, uplink, []uint32{deny, permit}, nil)

		want.Rules = append(want.Rules, drops(acl.Any, 443)...)
		check(t, "operations", []string{"create-acl", "replace-acl", "set-acl-lists"}, v.settleACLs(t, want))
		checkLists(t, v, pod, []uint32{v.readACLs(t).ACLs[acl.DenyTag(acl.Local)].Index, permit}, nil)

		want.Rules = drops(acl.Local, 80)
		check(t, "operations", []string{"set-acl-lists", "replace-acl", "delete-acl"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, nil, nil)

		want.Rules = nil
		check(t, "operations", []string{"set-acl-lists", "delete-acl", "delete-acl"}, v.settleACLs(t, want))
		check(t, "ACLs", 0, len(dump[*wire.ACLDetails](t, v, &wire.ACLDump{ACLIndex: uint32(none)})))
	}},
	{"acl/lists of others", func(t *testing.T, v *rig) {
		uplink := loopback(t, v)
		a, b := newACL(t, v, "policy-a", denial(t, "10.0.0.0/8", "0.0.0.0/0")), newACL(t, v, "policy-b")
		v.expect(t, ok, setLists(uplink, []uint32{b, a}, []uint32{a}))
		want := &acl.Want{Rules: drops(acl.Any, 80), Interfaces: map[uint32]acl.Class{uint32(uplink): acl.Remote}}
		check(t, "operations", []string{"create-acl", "set-acl-lists"}, v.settleACLs(t, want))
		deny := v.readACLs(t).ACLs[acl.DenyTag(acl.Remote)].Index
		checkLists(t, v, uplink, []uint32{deny, b, a}, []uint32{a})

		// They take theirs away: what is left alone would drop everything.
		for _, index := range []uint32{a, b} {
			v.expect(t, ok, &wire.ACLInterfaceAddDel{IsInput: true, SwIfIndex: uplink, ACLIndex: index})
		}
		checkLists(t, v, uplink, []uint32{deny}, []uint32{a})
		check(t, "operations", []string{"create-acl", "set-acl-lists"}, v.settleACLs(t, want))
		permit := v.readACLs(t).ACLs[acl.PermitTag].Index
		checkLists(t, v, uplink, []uint32{deny, permit}, []uint32{a})

		// Another client appends an ACL: VPP would never match it.
		v.expect(t, ok, &wire.ACLInterfaceAddDel{IsAdd: true, IsInput: true, SwIfIndex: uplink, ACLIndex: b})
		check(t, "operations", []string{"set-acl-lists", "delete-acl"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, []uint32{deny, b}, []uint32{a})

		want.Rules = nil
		check(t, "operations", []string{"set-acl-lists", "delete-acl"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, []uint32{b}, []uint32{a})
		check(t, "ACLs", 2, len(dump[*wire.ACLDetails](t, v, &wire.ACLDump{ACLIndex: uint32(none)})))
	}},
	{"acl/lists that changed meanwhile", func(t *testing.T, v *rig) {
		uplink := loopback(t, v)
		policy := newACL(t, v, "policy")
		want := &acl.Want{Rules: drops(acl.Any, 80), Interfaces: map[uint32]acl.Class{uint32(uplink): acl.Remote}}
		ops := acl.Diff(v.readACLs(t), want, true)
		v.expect(t, ok, setLists(uplink, []uint32{policy}, []uint32{policy}))
		results := acl.Apply(t.Context(), v.link, ops)
		if last := results[len(results)-1]; !errors.Is(last.Err, acl.ErrChanged) || !last.Unknown || last.Messages != 0 {
			t.Errorf("%s: error %v, unknown %v, %d messages", last.Op, last.Err, last.Unknown, last.Messages)
		}
		checkLists(t, v, uplink, []uint32{policy}, []uint32{policy})
		check(t, "operations", []string{"set-acl-lists", "delete-acl"}, v.settleACLs(t, want))
	}},
	{"acl/before every service has spoken", func(t *testing.T, v *rig) {
		uplink := loopback(t, v)
		want := &acl.Want{Rules: drops(acl.Any, 80, 443), Interfaces: map[uint32]acl.Class{uint32(uplink): acl.Remote}}
		v.settleACLs(t, want)
		for _, part := range []*acl.Want{{}, {Interfaces: want.Interfaces}, {Interfaces: want.Interfaces, Rules: drops(acl.Any, 443)}} {
			check(t, "operations", nil, acl.Diff(v.readACLs(t), part, false))
		}
		more := acl.Diff(v.readACLs(t), &acl.Want{Interfaces: want.Interfaces, Rules: drops(acl.Any, 22)}, false)
		if len(more) != 1 || more[0].Verb != acl.Replace || len(more[0].Rules) != 3 {
			t.Errorf("operations %v", more)
		}
	}},
	{"acl/doubles and damage", func(t *testing.T, v *rig) {
		uplink := loopback(t, v)
		want := &acl.Want{Rules: drops(acl.Any, 80), Interfaces: map[uint32]acl.Class{uint32(uplink): acl.Remote}}
		v.settleACLs(t, want)
		state := v.readACLs(t)
		deny, permit := state.ACLs[acl.DenyTag(acl.Remote)].Index, state.ACLs[acl.PermitTag].Index
		double := newACL(t, v, acl.DenyTag(acl.Remote))
		newACL(t, v, "troupe/of another version")
		v.expect(t, ok, setLists(uplink, []uint32{double, permit}, nil))
		v.expectACL(t, ok, &wire.ACLAddReplace{ACLIndex: permit, Tag: acl.PermitTag})
		v.expectACL(t, ok, &wire.ACLAddReplace{ACLIndex: deny, Tag: acl.DenyTag(acl.Remote), R: []acl_types.ACLRule{denial(t, "10.0.0.0/8", "0.0.0.0/0")}})
		check(t, "operations", []string{"replace-acl", "replace-acl", "set-acl-lists", "delete-acl", "delete-acl"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, []uint32{deny, permit}, nil)
	}},
	{"acl/what was done already", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		used := newACL(t, v, acl.PermitTag)
		v.expect(t, ok, setLists(index, []uint32{used}, nil))
		held := acl.Lists{Input: []uint32{used}}
		for _, c := range []struct {
			op  acl.Op
			err error
		}{
			{acl.Op{Verb: acl.Delete, Tag: acl.PermitTag, Index: 77}, nil},
			{acl.Op{Verb: acl.Delete, Tag: acl.PermitTag, Index: used}, acl.ErrInUse},
			{acl.Op{Verb: acl.Replace, Tag: acl.PermitTag, Index: 77}, acl.ErrVanished},
			{acl.Op{Verb: acl.SetLists, Interface: 99, Input: []acl.Ref{{Tag: acl.PermitTag, Index: used}}}, acl.ErrNoInterface},
			{acl.Op{Verb: acl.SetLists, Interface: 99}, nil},
			{acl.Op{Verb: acl.SetLists, Interface: uint32(index), Was: held, Input: []acl.Ref{{Tag: acl.PermitTag, Index: 77}}}, acl.ErrVanished},
			{acl.Op{Verb: acl.SetLists, Interface: uint32(index), Was: held, Input: []acl.Ref{{Tag: acl.PermitTag, Index: ^uint32(0)}}}, link.ErrSkipped},
			{acl.Op{Verb: acl.SetLists, Interface: uint32(index), Was: held, Input: []acl.Ref{{Tag: acl.DenyTag(acl.Any), Index: used}}}, link.ErrUnsafe},
		} {
			result := acl.Apply(t.Context(), v.link, []acl.Op{c.op})[0]
			if !errors.Is(result.Err, c.err) || (result.Err == nil) != (c.err == nil) {
				t.Errorf("%s: %v, want %v", c.op, result.Err, c.err)
			}
		}
	}},
	{"acl/after a restart", func(t *testing.T, v *rig) {
		want := &acl.Want{Rules: drops(acl.Any, 80), Interfaces: map[uint32]acl.Class{uint32(loopback(t, v)): acl.Remote}}
		v.settleACLs(t, want)
		v.Crash(t)
		v.waitDown(t)
		v.Restart(t)
		v.waitUp(t)
		state := v.readACLs(t)
		check(t, "ACLs and lists", 0, len(state.ACLs)+len(state.Spare)+len(state.Lists))
		want.Interfaces = map[uint32]acl.Class{uint32(loopback(t, v)): acl.Remote}
		check(t, "operations", []string{"create-acl", "create-acl", "set-acl-lists"}, v.settleACLs(t, want))
	}},
	{"acl/as many rules as fit", func(t *testing.T, v *rig) {
		ports := make([]uint16, acl.MaxRules)
		for i := range ports {
			ports[i] = uint16(i + 1)
		}
		want := &acl.Want{Rules: drops(acl.Any, ports...), Interfaces: map[uint32]acl.Class{}}
		for _, class := range []acl.Class{acl.Remote, acl.Local, acl.Local, acl.Any} {
			want.Interfaces[uint32(loopback(t, v))] = class
		}
		v.settleACLs(t, want)
		rules := 0
		for _, a := range v.readACLs(t).ACLs {
			rules += len(a.Rules)
		}
		check(t, "rules", 3*acl.MaxRules+3, rules) // one rule stands in for recent ones
		want.Rules = want.Rules[:len(want.Rules)-1]
		check(t, "operations", []string{"replace-acl", "replace-acl", "replace-acl"}, v.settleACLs(t, want))
	}},
	{"acl/recent rules behind many", func(t *testing.T, v *rig) {
		uplink := loopback(t, v)
		onUplink := map[uint32]acl.Class{uint32(uplink): acl.Remote}
		many := make([]uint16, 1000)
		for i := range many {
			many[i] = uint16(1000 + i)
		}
		want := &acl.Want{Rules: drops(acl.Remote, many...), Interfaces: onUplink}
		check(t, "operations", []string{"create-acl", "create-acl", "create-acl", "set-acl-lists"}, v.settleACLs(t, want))
		state := v.readACLs(t)
		base, recent, permit := state.ACLs[acl.DenyTag(acl.Remote)].Index, state.ACLs[acl.RecentTag(acl.Remote)].Index, state.ACLs[acl.PermitTag].Index
		checkLists(t, v, uplink, []uint32{base, recent, permit}, nil)
		want.Rules = append(want.Rules, drops(acl.Remote, 3000)...)
		ops := acl.Diff(state, want, false)
		if len(ops) != 1 || ops[0].Tag != acl.RecentTag(acl.Remote) || len(ops[0].Rules) != 2 {
			t.Errorf("operations for one more rule: %v", ops)
		}
		check(t, "operations", []string{"replace-acl"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, []uint32{base, recent, permit}, nil)
		want.Rules = want.Rules[1:]
		// the rule that stands in for recent ones has gone too
		check(t, "operations", []string{"replace-acl", "replace-acl"}, v.settleACLs(t, want))
		want.Rules = want.Rules[:100]
		check(t, "operations", []string{"replace-acl", "set-acl-lists", "delete-acl"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, []uint32{base, permit}, nil)
	}},
	{"acl/lists of a former version", func(t *testing.T, v *rig) {
		uplink := loopback(t, v)
		many := make([]uint16, 1000)
		for i := range many {
			many[i] = uint16(1000 + i)
		}
		rules := drops(acl.Remote, many...)
		base, permit := newACL(t, v, acl.DenyTag(acl.Remote), aclRules(acl.DenyTag(acl.Remote), rules)...), newACL(t, v, acl.PermitTag, aclRules(acl.PermitTag, nil)...)
		v.expect(t, ok, setLists(uplink, []uint32{base, permit}, nil))
		want := &acl.Want{Rules: rules, Interfaces: map[uint32]acl.Class{uint32(uplink): acl.Remote}}
		check(t, "operations before every service has rendered", nil, acl.Diff(v.readACLs(t), want, false))
		check(t, "operations", []string{"create-acl", "set-acl-lists"}, v.settleACLs(t, want))
		checkLists(t, v, uplink, []uint32{base, v.readACLs(t).ACLs[acl.RecentTag(acl.Remote)].Index, permit}, nil)
	}},
	{"acl/rules of as many services as have room", func(t *testing.T, v *rig) {
		var plans []*acl.ServicePlan
		ranged := func(key, lb string, ports uint32, sources ...string) {
			view := &messages.ServiceView{Key: key}
			for port := range ports {
				view.Frontends = append(view.Frontends, &messages.Frontend{Address: lb, Port: 1 + port, Protocol: messages.Protocol_TCP, AllowSources: sources})
			}
			plans = append(plans, acl.Plan(view, acl.Config{}))
		}
		for i := range 6 {
			ranged(fmt.Sprint("evil/", i), fmt.Sprint("203.0.113.", 10+i), 120, "192.0.2.7/32")
		}
		ranged("shop/web", "203.0.113.5", 100, "192.0.2.0/24")
		// as the renderer divides the room between namespaces
		fitting := append(plans[:3:3], plans[6])
		v.settleACLs(t, &acl.Want{Rules: acl.Merge(fitting, nil), Interfaces: map[uint32]acl.Class{uint32(loopback(t, v)): acl.Remote}})
		of := map[netip.Addr]int{}
		for _, r := range v.readACLs(t).ACLs[acl.DenyTag(acl.Remote)].Rules {
			of[r.VIP]++
		}
		check(t, "rules of the youngest service", 100*24, of[netip.MustParseAddr("203.0.113.5")])
		check(t, "rules of a service without room", 0, of[netip.MustParseAddr("203.0.113.13")])
	}},
	{"acl/in the order of requests", func(t *testing.T, v *rig) {
		var reqs []api.Message
		for range 100 {
			reqs = append(reqs, &wire.ACLAddReplace{ACLIndex: uint32(none), Tag: "a"}, &wire.ACLDel{})
		}
		results, err := v.link.Do(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if result.Err != nil {
				t.Fatalf("request %d: %v", i, result.Err)
			}
		}
	}},
}
