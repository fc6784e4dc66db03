package acl

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// webRule is the rule of most tests here.
var webRule = denying(Remote, "10.96.0.1:80/TCP", "0.0.0.0/0")

// read reads a model, which cannot fail.
func read(t testing.TB, v *vpp) *State {
	t.Helper()
	s, err := Read(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMeanings is the table of all known answers of VPP, and their meaning for every operation.
func TestMeanings(t *testing.T) {
	type outcome struct {
		err     error
		unknown bool
	}
	special := map[cause]outcome{
		{Replace, -6}:   {ErrVanished, true},
		{SetLists, -6}:  {ErrVanished, true},
		{SetLists, -2}:  {ErrNoInterface, true},
		{SetLists, 1}:   {batch.ErrRejected, true},
		{Delete, -6}:    {nil, false},
		{Delete, -142}:  {ErrInUse, true},
		{Delete, -143}:  {ErrInUse, true},
		{Delete, -149}:  {ErrInUse, true},
		{SetLists, -99}: {batch.ErrRejected, false},
	}
	ops := []Op{
		{Verb: Create, Tag: DenyTag(Remote), Index: none, Rules: []Rule{webRule}},
		{Verb: Replace, Tag: DenyTag(Remote), Index: 1, Rules: []Rule{webRule}},
		{Verb: SetLists, Interface: 3, Input: []Ref{deny, permit}},
		{Verb: Delete, Tag: PermitTag, Index: 2},
	}
	for _, op := range ops {
		for _, retval := range []int32{-1, -2, -6, -7, -8, -57, -58, -99, -116, -142, -143, -149, 1} {
			want, known := special[cause{op.Verb, retval}]
			if !known {
				want = outcome{batch.ErrRejected, false}
			}
			v := newVPP(5)
			v.refuse = func(msg api.Message) error {
				if _, reading := msg.(*acl.ACLInterfaceListDump); reading {
					return nil
				}
				return &link.RetvalError{Message: msg.GetMessageName(), Retval: retval}
			}
			got := Apply(t.Context(), v, []Op{op})[0]
			if !errors.Is(got.Err, want.err) || (got.Err == nil) != (want.err == nil) || got.Unknown != want.unknown || got.Messages != 1 {
				t.Errorf("%s answered %d: %v, unknown %v, %d messages", op, retval, got.Err, got.Unknown, got.Messages)
			}
		}
	}
	v := newVPP(5)
	gone := Apply(t.Context(), v, []Op{{Verb: SetLists, Interface: 77}})[0]
	if gone.Err != nil || !gone.Unknown {
		t.Errorf("detaching from an interface that is gone: %v, unknown %v", gone.Err, gone.Unknown)
	}
}

// TestTransportErrors: errors of the link are passed on.
func TestTransportErrors(t *testing.T) {
	for _, c := range []struct {
		err     error
		unknown bool
		sent    int
	}{
		{link.ErrUnknown, true, 1},
		{link.ErrNotSent, false, 0},
		{link.ErrRefused, false, 0},
		{link.ErrUnsupported, false, 0},
	} {
		v := newVPP(5)
		v.refuse = func(api.Message) error { return fmt.Errorf("test: %w", c.err) }
		got := Apply(t.Context(), v, []Op{{Verb: Create, Tag: PermitTag, Index: none}})[0]
		if !errors.Is(got.Err, c.err) || got.Unknown != c.unknown || got.Messages != c.sent {
			t.Errorf("%v: %+v", c.err, got)
		}
		if _, err := Read(t.Context(), v); !errors.Is(err, c.err) {
			t.Errorf("read: %v", err)
		}
	}
	v := newVPP(5)
	v.down = link.ErrDown
	for _, got := range Apply(t.Context(), v, Diff(NewState(), &Want{Rules: []Rule{webRule}, Interfaces: map[uint32]Class{3: Remote}}, true)) {
		if got.Err == nil || got.Messages != 0 || got.Unknown {
			t.Errorf("%s without VPP: %+v", got.Op, got)
		}
	}
}

// TestCreationUnanswered: lists are not refused for an ACL whose creation got no answer because the
// connection ended.
func TestCreationUnanswered(t *testing.T) {
	v := newVPP(5)
	v.refuse = func(api.Message) error {
		v.down = link.ErrDown
		return link.ErrUnknown
	}
	results := Apply(t.Context(), v, Diff(NewState(), &Want{Rules: []Rule{webRule}, Interfaces: map[uint32]Class{3: Remote}}, true))
	if last := results[len(results)-1]; last.Op.Verb != SetLists || !errors.Is(last.Err, link.ErrNotSent) || errors.Is(last.Err, link.ErrSkipped) {
		t.Errorf("%+v", last)
	}
}

// TestCreationFails: an interface does not get a list of which a part is missing.
func TestCreationFails(t *testing.T) {
	for _, tag := range []string{PermitTag, DenyTag(Remote)} {
		v := newVPP(5)
		v.refuse = func(msg api.Message) error {
			if m, ok := msg.(*acl.ACLAddReplace); ok && m.Tag == tag {
				return &link.RetvalError{Message: msg.GetMessageName(), Retval: -7}
			}
			return nil
		}
		want := &Want{Rules: []Rule{webRule}, Interfaces: map[uint32]Class{3: Remote}}
		results := Apply(t.Context(), v, Diff(read(t, v), want, true))
		if last := results[len(results)-1]; !errors.Is(last.Err, link.ErrSkipped) || last.Messages != 0 {
			t.Errorf("without %s: %+v", tag, last)
		}
		v.refuse = nil
		for _, r := range Apply(t.Context(), v, Diff(read(t, v), want, true)) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
		check(t, "left", nil, describe(Diff(read(t, v), want, true)))
	}
}

// TestWrongReply: an answer of another type is not taken for an index.
func TestWrongReply(t *testing.T) {
	op := Op{Verb: Create, Tag: PermitTag, Index: none}
	got := (&applier{created: map[string]uint32{}})
	r := OpResult{Op: op}
	got.book(&r, link.Result{Reply: &acl.ACLDelReply{}})
	if !errors.Is(r.Err, link.ErrProtocol) || !r.Unknown || len(got.created) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestOthersChangeTheList: the lists in VPP differ from the lists that were read.
func TestOthersChangeTheList(t *testing.T) {
	v := newVPP(5)
	policy := v.add("policy")
	ops := Diff(read(t, v), &Want{Rules: []Rule{webRule}, Interfaces: map[uint32]Class{3: Remote, 4: Remote}}, true)
	v.set(3, []uint32{policy}, nil)
	results := Apply(t.Context(), v, ops)
	for _, r := range results {
		if changed := r.Op.Verb == SetLists && r.Op.Interface == 3; changed != errors.Is(r.Err, ErrChanged) || changed != r.Unknown || !changed && r.Err != nil {
			t.Errorf("%s: %v", r.Op, r.Err)
		}
	}
	check(t, "list", []uint32{policy}, v.interfaces[3].Input)
}

// TestReadTellsOurs: rules of other owners are not read, damage is seen, and written rules are read
// back equal.
func TestReadTellsOurs(t *testing.T) {
	v := newVPP(5)
	rules := Minimal([]Rule{webRule, denying(Remote, "10.96.0.1:443/UDP", "10.0.0.0/8"), denying(Remote, "[fd00::1]:443/TCP", "fd01::/16")})
	for _, tag := range []string{DenyTag(Remote), "policy", PermitTag, DenyTag(Remote), "troupe/old"} {
		v.add(tag, wireRules(tag, rules)...)
	}
	v.set(3, []uint32{0, 2}, []uint32{1})
	want := NewState()
	want.ACLs[DenyTag(Remote)] = ACL{Index: 0, Tag: DenyTag(Remote), Rules: rules}
	want.ACLs[PermitTag] = ACL{Index: 2, Tag: PermitTag}
	want.Spare[3] = ACL{Index: 3, Tag: DenyTag(Remote), Rules: rules}
	want.Spare[4] = ACL{Index: 4, Tag: "troupe/old", odd: true}
	want.Lists[3] = Lists{Input: []uint32{0, 2}, Output: []uint32{1}}
	check(t, "state", want, read(t, v))

	for name, change := range map[string]func(*acl.ACLDetails){
		"permits":          func(d *acl.ACLDetails) { d.R[0].IsPermit = 1 },
		"source port":      func(d *acl.ACLDetails) { d.R[0].SrcportOrIcmptypeFirst = 1 },
		"port range":       func(d *acl.ACLDetails) { d.R[0].DstportOrIcmpcodeLast++ },
		"flags":            func(d *acl.ACLDetails) { d.R[0].TCPFlagsMask = 2 },
		"protocol":         func(d *acl.ACLDetails) { d.R[0].Proto = 47 },
		"destination":      func(d *acl.ACLDetails) { d.R[0].DstPrefix = forwarding.Prefix(netip.MustParsePrefix("10.96.0.0/16")) },
		"family":           func(d *acl.ACLDetails) { d.R[0].SrcPrefix.Address.Af = 3 },
		"length":           func(d *acl.ACLDetails) { d.R[0].SrcPrefix.Len = 200 },
		"order":            func(d *acl.ACLDetails) { d.R[0], d.R[1] = d.R[1], d.R[0] },
		"twice":            func(d *acl.ACLDetails) { d.R = append(d.R, d.R[2]) },
		"permit":           func(d *acl.ACLDetails) { d.Tag = PermitTag },
		"empty permission": func(d *acl.ACLDetails) { d.Tag, d.R = PermitTag, nil },
	} {
		d := &acl.ACLDetails{Tag: DenyTag(Remote), R: wireRules(DenyTag(Remote), rules)}
		if good := aclOf(d); good.odd {
			t.Fatalf("what we write is odd: %+v", good)
		}
		if change(d); !aclOf(d).odd {
			t.Errorf("%s: taken for ours: %+v", name, d)
		}
	}
}
