package acl

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// deny, permit and theirs are ACLs in lists.
var (
	deny   = Ref{Tag: DenyTag(Remote), Index: 1}
	recent = Ref{Tag: RecentTag(Remote), Index: 3}
	permit = Ref{Tag: PermitTag, Index: 2}
	theirs = Ref{Index: 7}
)

// TestCheck: an operation that could cut off an interface, or change an ACL of another owner, is
// never sent.
func TestCheck(t *testing.T) {
	was := Lists{Input: []uint32{7, 8}, Output: []uint32{9}}
	many := make([]Ref, MaxLists)
	full := Lists{Input: make([]uint32, MaxLists)}
	for i := range many {
		many[i] = Ref{Index: uint32(i)}
		full.Input[i] = uint32(i)
	}
	rules := []Rule{denying(Remote, "10.96.0.1:80/TCP", "0.0.0.0/0")}
	for _, c := range []struct {
		name string
		op   Op
		why  string
	}{
		{"deny and permit", Op{Verb: SetLists, Was: was, Input: []Ref{deny, permit}}, ""},
		{"deny and others", Op{Verb: SetLists, Was: was, Input: []Ref{deny, theirs}}, ""},
		{"others", Op{Verb: SetLists, Was: was, Input: []Ref{theirs}}, ""},
		{"nothing", Op{Verb: SetLists, Was: was}, ""},
		{"permit alone", Op{Verb: SetLists, Was: was, Input: []Ref{permit}}, ""},
		{"deny alone", Op{Verb: SetLists, Was: was, Input: []Ref{deny}}, "drop everything"},
		{"two deny ACLs", Op{Verb: SetLists, Was: was, Input: []Ref{deny, recent, permit}}, ""},
		{"deny behind others", Op{Verb: SetLists, Was: was, Input: []Ref{theirs, deny}}, "behind others"},
		{"deny on both sides of others", Op{Verb: SetLists, Was: was, Input: []Ref{deny, theirs, recent}}, "behind others"},
		{"permit before others", Op{Verb: SetLists, Was: was, Input: []Ref{deny, permit, theirs}}, "not the last one"},
		{"permit behind others", Op{Verb: SetLists, Was: was, Input: []Ref{deny, theirs, permit}}, "would permit"},
		{"a new one of others", Op{Verb: SetLists, Was: was, Input: []Ref{deny, {Index: 5}}}, "an ACL of others"},
		{"a full list", Op{Verb: SetLists, Was: full, Input: many}, ""},
		{"more than full", Op{Verb: SetLists, Was: full, Input: append([]Ref{deny}, many...)}, "more than 255 ACLs"},
		{"create", Op{Verb: Create, Tag: DenyTag(Remote), Rules: rules}, ""},
		{"create permit", Op{Verb: Create, Tag: PermitTag}, ""},
		{"replace", Op{Verb: Replace, Tag: DenyTag(Any), Rules: rules}, ""},
		{"empty", Op{Verb: Replace, Tag: DenyTag(Any)}, "no rules"},
		{"rules that permit", Op{Verb: Create, Tag: PermitTag, Rules: rules}, "rules in the permitting ACL"},
		{"foreign tag", Op{Verb: Create, Tag: "other client", Rules: rules}, "unknown tag"},
		{"too many", Op{Verb: Create, Tag: DenyTag(Any), Rules: make([]Rule, mostRules+1)}, "more than 32768 rules"},
		{"bad rule", Op{Verb: Create, Tag: DenyTag(Any), Rules: make([]Rule, 1)}, "bad rule"},
		{"delete", Op{Verb: Delete, Tag: "troupe/old"}, ""},
		{"delete what is not ours", Op{Verb: Delete, Tag: "policy"}, "not ours"},
		{"unknown", Op{Verb: 99}, "unknown operation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.op.Check()
			switch {
			case c.why == "" && err != nil:
				t.Error(err)
			case c.why != "" && (!errors.Is(err, link.ErrUnsafe) || !strings.Contains(err.Error(), c.why)):
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
	if Message(Op{Verb: 99}) != nil {
		t.Error("an unknown operation has a message")
	}
}

func TestOpText(t *testing.T) {
	rules := []Rule{denying(Remote, "10.96.0.1:80/TCP", "0.0.0.0/0")}
	check(t, "texts", []string{
		"create-acl troupe/deny/remote with 1 rules",
		"create-acl troupe/permit",
		"replace-acl troupe/deny/remote with 1 rules",
		"set input ACLs of interface 3 to [troupe/deny/remote 7]",
		"set input ACLs of interface 3 to []",
		"delete-acl troupe/permit (index 2)",
		"verb-99",
	}, describe([]Op{
		{Verb: Create, Tag: DenyTag(Remote), Rules: rules},
		{Verb: Create, Tag: PermitTag},
		{Verb: Replace, Tag: DenyTag(Remote), Rules: rules},
		{Verb: SetLists, Interface: 3, Input: []Ref{deny, theirs}},
		{Verb: SetLists, Interface: 3},
		{Verb: Delete, Tag: PermitTag, Index: 2},
		{Verb: 99},
	}))
	check(t, "text", Op{Verb: SetLists}.Describe(), Op{Verb: SetLists}.String())
}
