package acl

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/acl_types"
	"pgregory.net/rapid"
)

// ifaces is the number of interfaces of the model in property tests.
const ifaces = 4

// genForeign puts ACLs of others on the interfaces.
func genForeign(t *rapid.T, v *vpp) {
	var all []uint32
	for range rapid.IntRange(0, 3).Draw(t, "policies") {
		var rules []acl_types.ACLRule
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			from := rapid.SampledFrom([]string{"0.0.0.0/0", "10.0.0.0/29", "10.0.0.8/29", "10.0.0.4/32", "192.168.0.0/16"}).Draw(t, "from")
			rules = append(rules, foreignRule(acl_types.ACLAction(rapid.IntRange(0, 2).Draw(t, "action")), from))
		}
		all = append(all, v.add("policy", rules...))
	}
	for i := range uint32(ifaces) {
		v.set(i+1, genList(t, all), genList(t, all))
	}
}

// genList draws a list out of the ACLs.
func genList(t *rapid.T, all []uint32) []uint32 {
	list := rapid.Permutation(all).Draw(t, "list")
	return list[:rapid.IntRange(0, len(list)).Draw(t, "length")]
}

// genWant draws what VPP should drop.
func genWant(t *rapid.T) *Want {
	want := &Want{Interfaces: map[uint32]Class{}}
	if rapid.IntRange(0, 4).Draw(t, "any rules") > 0 {
		want.Rules = Minimal(genRules(6).Draw(t, "wanted"))
	}
	for i := range uint32(ifaces) {
		if class := Class(rapid.IntRange(0, 3).Draw(t, "class")); class != 0 {
			want.Interfaces[i+1] = class
		}
	}
	return want
}

// genFew draws how many rules are changed without regard to their number.
func genFew(t *rapid.T) int { return rapid.SampledFrom([]int{1, 2, 3, fewRules}).Draw(t, "few") }

// disturb lets other clients change their lists as VPP's messages allow it, with our ACLs in them.
// It reports whether they left VPP as we would: nothing of theirs behind our permitting ACL, ours
// not alone.
func disturb(t *rapid.T, v *vpp) (sane bool) {
	var theirs []uint32
	for index, a := range v.acls {
		if !Ours(a.Tag) {
			theirs = append(theirs, index)
		}
	}
	slices.Sort(theirs)
	for i := range uint32(ifaces) {
		lists := v.interfaces[i+1]
		switch rapid.IntRange(0, 5).Draw(t, "disturbance") {
		case 0: // one of theirs goes (acl_interface_add_del)
			for _, index := range v.others(i + 1) {
				lists.Input = slices.DeleteFunc(slices.Clone(lists.Input), func(number uint32) bool { return number == index })
				break
			}
		case 1: // one more of theirs comes
			for _, index := range theirs {
				if !slices.Contains(lists.Input, index) {
					lists.Input = append(slices.Clone(lists.Input), index)
					break
				}
			}
		case 2: // they set the whole list and forget ours
			lists.Input = v.others(i + 1)
		}
		v.set(i+1, lists.Input, lists.Output)
	}
	return v.sane()
}

// sane reports whether no list has our deny ACLs alone, or an ACL behind our permitting one.
func (v *vpp) sane() bool {
	for _, lists := range v.interfaces {
		deny := false
		for i, index := range lists.Input {
			if v.acls[index].Tag == PermitTag && i != len(lists.Input)-1 {
				return false
			}
			_, ours := classOfTag(v.acls[index].Tag)
			deny = deny || ours
		}
		if deny && len(lists.Input) == 1 {
			return false
		}
	}
	return true
}

// fates says for every packet on every interface whether it passes.
func (v *vpp) fates() (passes []bool) {
	for i := range uint32(ifaces) {
		eachPacket(func(p packet) { passes = append(passes, v.passes(i+1, p)) })
	}
	return passes
}

// reference is fates computed from the wanted rules: our rules drop, and the ACLs of other owners
// decide about the remaining packets.
func (v *vpp) reference(want *Want) (passes []bool) {
	for i := range uint32(ifaces) {
		eachPacket(func(p packet) {
			passes = append(passes, !dropped(want.Rules, want.Interfaces[i+1], p) && v.ask(v.others(i+1), p))
		})
	}
	return passes
}

// TestEveryPacket: whatever VPP holds, after Diff and Apply every packet on every interface has the
// fate that Kubernetes and the ACLs of other owners give it. In between no interface is cut off, no
// packet gets a fate that it has neither before nor after, and the ACLs of other owners stay as
// they are. Then nothing is left to do, by the record as by a new read.
func TestEveryPacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVPP(ifaces)
		genForeign(t, v)
		few := genFew(t)
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			want, sane := genWant(t), v.sane()
			run(t, v, want, few, sane)
			if sane = disturb(t, v); !sane {
				run(t, v, want, few, false)
			}
			if rapid.IntRange(0, 5).Draw(t, "doubles") == 0 {
				v.add(rapid.SampledFrom([]string{DenyTag(Local), RecentTag(Remote), PermitTag, "troupe/old"}).Draw(t, "tag"))
			}
		}
		run(t, v, &Want{}, few, true)
		for _, a := range v.acls {
			if Ours(a.Tag) {
				t.Fatalf("%s is left", a.Tag)
			}
		}
	})
}

// run carries out the operations for what is wanted one after the other, and checks every packet in
// between.
func run(t *rapid.T, v *vpp, want *Want, few int, sane bool) {
	have := mustRead(t, v)
	outputs, others := v.outputs(), v.foreign()
	before, after := v.fates(), v.reference(want)
	moved := movedInterfaces(v, want)
	created := map[string]uint32{}
	for _, op := range diff(have, want, true, few) {
		for i, ref := range op.Input {
			if ref.Index == none {
				op.Input[i].Index = created[ref.Tag]
			}
		}
		result := Apply(context.Background(), v, []Op{op})[0]
		if result.Err != nil || result.Unknown {
			t.Fatalf("%s: %v", op, result.Err)
		}
		created[result.Op.Tag] = result.Op.Index
		have.Record(result.Op)
		for i, passes := range v.fates() {
			if sane && !moved[i/packets] && passes != before[i] && passes != after[i] {
				t.Fatalf("after %s packet %d passes: %v; before %v, in the end %v", op, i, passes, before[i], after[i])
			}
		}
		if sane && !v.sane() {
			t.Fatalf("after %s an interface is cut off: %v", op, v.interfaces)
		}
	}
	if !slices.Equal(v.fates(), after) {
		t.Fatalf("packets are not treated as wanted: %v", v.interfaces)
	}
	if !v.sane() || !equalLists(outputs, v.outputs()) || !equalLists(others, v.foreign()) {
		t.Fatalf("others suffer: %v", v.interfaces)
	}
	for _, state := range []*State{have, mustRead(t, v)} {
		if ops := diff(state, want, true, few); len(ops) > 0 {
			t.Fatalf("left to do: %v", ops)
		}
		if ops := diff(state, want, false, few); len(ops) > 0 {
			t.Fatalf("left to do without sweep: %v", ops)
		}
	}
}

// packets is the number of packets for one interface.
var packets = func() (n int) {
	eachPacket(func(packet) { n++ })
	return n
}()

// movedInterfaces reports for every interface whether it has a deny ACL and is wanted for another
// class of clients.
func movedInterfaces(v *vpp, want *Want) (moved []bool) {
	for i := range uint32(ifaces) {
		class := want.Interfaces[i+1]
		moved = append(moved, slices.ContainsFunc(v.interfaces[i+1].Input, func(index uint32) bool {
			was, deny := classOfTag(v.acls[index].Tag)
			return deny && class != 0 && class != was
		}))
	}
	return moved
}

// TestNothingIsOpened: without sweep no packet that our rules drop gets through, whatever is
// wanted; with sweep, after it, VPP is as if there had been no step in between.
func TestNothingIsOpened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVPP(ifaces)
		genForeign(t, v)
		first, second, few := genWant(t), genWant(t), genFew(t)
		second.Interfaces = first.Interfaces
		run(t, v, first, few, true)
		before := v.fates()
		have := mustRead(t, v)
		for _, result := range Apply(context.Background(), v, diff(have, second, false, few)) {
			if result.Err != nil || result.Op.Verb == Delete {
				t.Fatalf("%s: %v", result.Op, result.Err)
			}
			have.Record(result.Op)
		}
		both := v.reference(&Want{Rules: slices.Concat(first.Rules, second.Rules), Interfaces: first.Interfaces})
		// rules for both classes may become one for all there
		mixed := slices.Contains(slices.Collect(valuesOf(first.Interfaces)), Any)
		for i, passes := range v.fates() {
			if passes && !before[i] {
				t.Fatalf("packet %d gets through", i)
			}
			if passes != both[i] && !mixed {
				t.Fatalf("packet %d passes: %v", i, passes)
			}
		}
		if ops := diff(have, second, false, few); len(ops) > 0 {
			t.Fatalf("left to do: %v", ops)
		}
		run(t, v, second, few, true)
	})
}

func valuesOf(m map[uint32]Class) func(func(Class) bool) {
	return func(yield func(Class) bool) {
		for _, c := range m {
			if !yield(c) {
				return
			}
		}
	}
}

// mustRead reads a model.
func mustRead(t *rapid.T, v *vpp) *State {
	state, err := Read(context.Background(), v)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// outputs and foreign are what must not change: the output lists, and the ACLs of other owners in
// the input lists.
func (v *vpp) outputs() (all [][]uint32) {
	for i := range uint32(ifaces) {
		all = append(all, v.interfaces[i+1].Output)
	}
	return all
}

func (v *vpp) foreign() (all [][]uint32) {
	for i := range uint32(ifaces) {
		all = append(all, v.others(i+1))
	}
	return all
}

func equalLists(a, b [][]uint32) bool { return slices.EqualFunc(a, b, slices.Equal[[]uint32]) }

// TestSameInputTwice: the plan of a service is the same every time, and after Plan, Merge and Diff
// nothing more is needed.
func TestSameInputTwice(t *testing.T) {
	plans := []*ServicePlan{
		Plan(view("a/web", serving("203.0.113.10", 80, tcp, ranges(40)...)), Config{}),
		Plan(view("b/dns", dropping("10.96.0.10", 53, udpIP, remote)), Config{}),
	}
	again := Plan(view("a/web", serving("203.0.113.10", 80, tcp, ranges(40)...)), Config{})
	check(t, "plan", plans[0], again)
	v := newVPP(ifaces)
	want := &Want{Rules: Merge(plans, nil), Interfaces: map[uint32]Class{1: Remote, 2: Local}}
	have := read(t, v)
	for _, result := range Apply(t.Context(), v, Diff(have, want, true)) {
		have.Record(result.Op)
	}
	sent := len(v.sent)
	want = &Want{Rules: Merge([]*ServicePlan{again, plans[1]}, nil), Interfaces: want.Interfaces}
	check(t, "operations", nil, Diff(have, want, true))
	check(t, "operations after a read", nil, Diff(read(t, v), want, true))
	if len(v.sent) != sent {
		t.Errorf("messages %v", v.sent[sent:])
	}
	if v.passes(1, packet{src: netip.MustParseAddr("192.0.2.1"), to: denying(0, "203.0.113.10:80/TCP", "0.0.0.0/0")}) {
		t.Error("a client from outside the ranges gets through")
	}
}
