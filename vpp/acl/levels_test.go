package acl

import (
	"fmt"
	"testing"
)

// numbered makes n rules, beginning with a port.
func numbered(from, n int) (rules []Rule) {
	for i := range n {
		rules = append(rules, denying(Remote, fmt.Sprintf("10.96.0.1:%d/TCP", from+i), "0.0.0.0/0"))
	}
	return rules
}

// TestLevels: with at most 3 rules that are changed without regard to their number, an operation
// costs only the rules that it changes.
func TestLevels(t *testing.T) {
	const few = 3
	uplink := map[uint32]Class{5: Remote}
	holding := func(base, recent []Rule) *State {
		s := NewState()
		s.ACLs[DenyTag(Remote)] = ACL{Index: 1, Tag: DenyTag(Remote), Rules: base}
		s.ACLs[PermitTag] = ACL{Index: 2, Tag: PermitTag}
		s.Lists[5] = Lists{Input: []uint32{1, 2}}
		if recent != nil {
			s.ACLs[RecentTag(Remote)] = ACL{Index: 3, Tag: RecentTag(Remote), Rules: recent}
			s.Lists[5] = Lists{Input: []uint32{1, 3, 2}}
		}
		return s
	}
	const attach = "set input ACLs of interface 5 to [troupe/deny/remote troupe/deny/remote/recent troupe/permit]"
	for _, c := range []struct {
		name string
		have *State
		want []Rule
		// operations without sweep, and with it when they have been carried out
		missing, afterwards []string
	}{
		{
			"a few rules", NewState(), numbered(1, 3),
			[]string{"create-acl troupe/deny/remote with 3 rules", "create-acl troupe/permit", "set input ACLs of interface 5 to [troupe/deny/remote troupe/permit]"},
			nil,
		},
		{
			"many rules", NewState(), numbered(1, 100),
			[]string{
				"create-acl troupe/deny/remote/recent with 1 rules", "create-acl troupe/deny/remote with 100 rules", "create-acl troupe/permit", attach,
			},
			nil,
		},
		{"many more", holding(numbered(1, 3), nil), numbered(1, 100), []string{"replace-acl troupe/deny/remote with 100 rules"}, []string{
			"create-acl troupe/deny/remote/recent with 1 rules", attach,
		}},
		{"of a former version, as wanted", holding(numbered(1, 100), nil), numbered(1, 100), nil, []string{"create-acl troupe/deny/remote/recent with 1 rules", attach}},
		{"of a former version, one more", holding(numbered(1, 100), nil), numbered(1, 101), []string{
			"create-acl troupe/deny/remote/recent with 1 rules", attach,
		}, nil},
		{"one more", holding(numbered(1, 100), numbered(1, 1)), numbered(1, 101), []string{"replace-acl troupe/deny/remote/recent with 2 rules"}, nil},
		{"a recent one less", holding(numbered(1, 100), numbered(101, 2)), numbered(1, 101), nil, []string{"replace-acl troupe/deny/remote/recent with 1 rules"}},
		{"the last recent one less", holding(numbered(1, 100), numbered(101, 1)), numbered(1, 100), nil, []string{"replace-acl troupe/deny/remote/recent with 1 rules"}},
		{"an old one less", holding(numbered(1, 100), numbered(101, 2)), numbered(2, 101), nil, []string{"replace-acl troupe/deny/remote with 99 rules"}},
		{"an old one comes back", holding(numbered(2, 99), numbered(101, 1)), numbered(1, 101), []string{"replace-acl troupe/deny/remote/recent with 2 rules"}, nil},
		{"many recent ones", holding(numbered(1, 100), numbered(101, 3)), numbered(1, 104), []string{"replace-acl troupe/deny/remote/recent with 4 rules"}, []string{
			"replace-acl troupe/deny/remote with 104 rules", "replace-acl troupe/deny/remote/recent with 1 rules",
		}},
		{"a few are left", holding(numbered(1, 100), numbered(101, 2)), numbered(99, 3), nil, []string{
			"replace-acl troupe/deny/remote with 3 rules", "set input ACLs of interface 5 to [troupe/deny/remote troupe/permit]",
			"delete-acl troupe/deny/remote/recent (index 3)",
		}},
		{"none is left", holding(numbered(1, 100), numbered(101, 2)), nil, nil, []string{
			"set input ACLs of interface 5 to []", "delete-acl troupe/deny/remote (index 1)", "delete-acl troupe/deny/remote/recent (index 3)",
			"delete-acl troupe/permit (index 2)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := &Want{Rules: c.want, Interfaces: uplink}
			ops := diff(c.have, want, false, few)
			check(t, "missing", c.missing, describe(ops))
			for i, op := range ops {
				if op.Verb == Create {
					op.Index = uint32(10 + i)
				}
				for j, ref := range op.Input {
					op.Input[j].Index = c.have.ACLs[ref.Tag].Index
				}
				c.have.Record(op)
			}
			check(t, "afterwards", c.afterwards, describe(diff(c.have, want, true, few)))
		})
	}
}
