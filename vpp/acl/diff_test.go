package acl

import (
	"maps"
	"testing"
)

// held makes the state of a VPP with our ACLs: 1 for remote clients with one rule, 2 that permits.
func held(lists map[uint32]Lists) *State {
	s := NewState()
	s.ACLs[DenyTag(Remote)] = ACL{Index: 1, Tag: DenyTag(Remote), Rules: []Rule{denying(Remote, "10.96.0.1:80/TCP", "0.0.0.0/0")}}
	s.ACLs[PermitTag] = ACL{Index: 2, Tag: PermitTag}
	s.Lists = lists
	return s
}

// input makes lists with these ACLs on input and 9 on output.
func input(indices ...uint32) Lists { return Lists{Input: indices, Output: []uint32{9}} }

func TestDiff(t *testing.T) {
	web := denying(Remote, "10.96.0.1:80/TCP", "0.0.0.0/0")
	everywhere := denying(Any, "10.96.0.1:443/TCP", "10.0.0.0/8")
	onUplink := map[uint32]Class{3: Remote, 4: Local}
	settled := map[uint32]Lists{3: input(1, 2)}
	damaged := held(settled)
	damaged.ACLs[PermitTag] = ACL{Index: 2, Tag: PermitTag, odd: true}
	spare := held(map[uint32]Lists{3: input(5, 2)})
	spare.Spare[5] = ACL{Index: 5, Tag: DenyTag(Remote), Rules: []Rule{denying(Remote, "10.96.0.9:80/TCP", "0.0.0.0/0")}}
	spare.Spare[6] = ACL{Index: 6, Tag: "troupe/old"}
	output := held(map[uint32]Lists{3: {Output: []uint32{1}}})

	for _, c := range []struct {
		name        string
		have        *State
		want        *Want
		sweep, wait []string // operations with and without sweep
	}{
		{"nothing and nothing", NewState(), &Want{Interfaces: onUplink}, nil, nil},
		{"no interface for the rules", NewState(), &Want{Rules: []Rule{web}, Interfaces: map[uint32]Class{4: Local}}, nil, nil},
		{"settled", held(settled), &Want{Rules: []Rule{web}, Interfaces: onUplink}, nil, nil},
		{
			"from nothing", NewState(), &Want{Rules: []Rule{web, everywhere}, Interfaces: onUplink},
			[]string{
				"create-acl troupe/deny/local with 1 rules", "create-acl troupe/deny/remote with 2 rules", "create-acl troupe/permit",
				"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]", "set input ACLs of interface 4 to [troupe/deny/local troupe/permit]",
			},
			[]string{
				"create-acl troupe/deny/local with 1 rules", "create-acl troupe/deny/remote with 2 rules", "create-acl troupe/permit",
				"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]", "set input ACLs of interface 4 to [troupe/deny/local troupe/permit]",
			},
		},
		{
			"other rules", held(settled), &Want{Rules: []Rule{everywhere}, Interfaces: map[uint32]Class{3: Remote}},
			[]string{"replace-acl troupe/deny/remote with 1 rules"},
			[]string{"replace-acl troupe/deny/remote with 2 rules"},
		},
		{
			"no rules any more", held(settled), &Want{Interfaces: onUplink},
			[]string{"set input ACLs of interface 3 to []", "delete-acl troupe/deny/remote (index 1)", "delete-acl troupe/permit (index 2)"},
			nil,
		},
		{
			"no interface any more", held(settled), &Want{Rules: []Rule{web}},
			[]string{"set input ACLs of interface 3 to []", "delete-acl troupe/deny/remote (index 1)", "delete-acl troupe/permit (index 2)"},
			nil,
		},
		{
			"others have come", held(map[uint32]Lists{3: input(1, 2, 7)}), &Want{Rules: []Rule{web}, Interfaces: onUplink},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote 7]", "delete-acl troupe/permit (index 2)"},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote 7]"},
		},
		{
			"other interfaces have come, and no service has rendered", held(map[uint32]Lists{3: input(1, 2, 7)}), &Want{},
			[]string{"set input ACLs of interface 3 to [7]", "delete-acl troupe/deny/remote (index 1)", "delete-acl troupe/permit (index 2)"},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote 7]"},
		},
		{
			"others have gone", held(map[uint32]Lists{3: input(1)}), &Want{Rules: []Rule{web}, Interfaces: onUplink},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]"},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]"},
		},
		{
			"ours is behind others", held(map[uint32]Lists{3: input(8, 1, 7)}), &Want{Rules: []Rule{web}, Interfaces: onUplink},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote 8 7]", "delete-acl troupe/permit (index 2)"},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote 8 7]"},
		},
		{
			"permitting alone", held(map[uint32]Lists{3: input(2)}), &Want{Interfaces: onUplink},
			[]string{"set input ACLs of interface 3 to []", "delete-acl troupe/deny/remote (index 1)", "delete-acl troupe/permit (index 2)"},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]"},
		},
		{"damage", damaged, &Want{Rules: []Rule{web}, Interfaces: onUplink}, []string{"replace-acl troupe/permit"}, []string{"replace-acl troupe/permit"}},
		{
			"doubles", spare, &Want{Rules: []Rule{web}, Interfaces: onUplink},
			[]string{
				"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]",
				"delete-acl troupe/deny/remote (index 5)", "delete-acl troupe/old (index 6)",
			},
			[]string{"replace-acl troupe/deny/remote with 2 rules", "set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]"},
		},
		{
			"another client uses ours for output", output, &Want{Interfaces: onUplink},
			[]string{"delete-acl troupe/permit (index 2)"},
			[]string{"set input ACLs of interface 3 to [troupe/deny/remote troupe/permit]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := &State{ACLs: maps.Clone(c.have.ACLs), Spare: maps.Clone(c.have.Spare), Lists: maps.Clone(c.have.Lists)}
			check(t, "with sweep", c.sweep, describe(Diff(c.have, c.want, true)))
			check(t, "without", c.wait, describe(Diff(c.have, c.want, false)))
			check(t, "what VPP holds", before, c.have)
			for _, op := range Diff(c.have, c.want, true) {
				if err := op.Check(); err != nil {
					t.Error(err)
				}
				if op.Verb == SetLists {
					check(t, "lists as they were", c.have.Lists[op.Interface], op.Was)
				}
			}
		})
	}
}

func TestStateNumbers(t *testing.T) {
	s := held(map[uint32]Lists{3: input(1, 2), 4: input(7), 5: input(2)})
	s.Spare[5] = ACL{Index: 5, Tag: "troupe/old"}
	if s.Attached() != 2 {
		t.Errorf("%d interfaces", s.Attached())
	}
	for index, want := range map[uint32]string{1: DenyTag(Remote), 2: PermitTag, 5: "troupe/old", 7: ""} {
		if tag, ours := s.TagOf(index); tag != want || ours != (want != "") {
			t.Errorf("ACL %d is %q", index, tag)
		}
	}
}
