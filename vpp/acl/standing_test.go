package acl

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// keys turns texts into the frontends that they name.
func keys(texts ...string) map[rule.Key]bool {
	all := map[rule.Key]bool{}
	for _, text := range texts {
		all[denying(Any, text, "0.0.0.0/0").Key()] = true
	}
	return all
}

func TestCompare(t *testing.T) {
	const web, dns, db = "10.96.0.1:80/TCP", "10.96.0.2:53/UDP", "10.96.0.3:5432/TCP"
	remote := denying(Remote, web, "0.0.0.0/0")
	any := denying(Any, dns, "10.0.0.0/8")
	both := map[uint32]Class{1: Remote, 2: Local}
	held := func() *State {
		s := NewState()
		s.ACLs[DenyTag(Remote)] = ACL{Index: 5, Tag: DenyTag(Remote), Rules: forInterface([]Rule{remote, any}, Remote)}
		s.ACLs[DenyTag(Local)] = ACL{Index: 6, Tag: DenyTag(Local), Rules: forInterface([]Rule{remote, any}, Local)}
		s.Lists = map[uint32]Lists{1: {Input: []uint32{5, 9}}, 2: {Input: []uint32{6, 9}}}
		return s
	}
	for _, c := range []struct {
		name             string
		have             *State
		rules            []Rule
		interfaces       map[uint32]Class
		missing, surplus map[rule.Key]bool
	}{
		{"nothing is known", nil, []Rule{remote, any}, both, keys(web, dns), nil},
		{"nothing is there", NewState(), []Rule{remote, any}, both, keys(web, dns), nil},
		{"nothing is wanted", held(), nil, both, nil, keys(web, dns)},
		{"as wanted", held(), []Rule{remote, any}, both, nil, nil},
		{"one more", held(), []Rule{remote, any, denying(Local, db, "0.0.0.0/0")}, both, keys(db), nil},
		{"more of one", held(), []Rule{remote, denying(Any, dns, "8.0.0.0/6")}, both, keys(dns), nil},
		{"less of one", held(), []Rule{remote, denying(Any, dns, "10.1.0.0/16")}, both, nil, keys(dns)},
		{"for other clients", held(), []Rule{denying(Local, web, "0.0.0.0/0"), any}, both, keys(web), keys(web)},
		{"no interface for it", held(), []Rule{remote, any, denying(Local, db, "0.0.0.0/0")}, map[uint32]Class{1: Remote}, nil, nil},
		{"another interface", held(), []Rule{remote, any}, map[uint32]Class{1: Remote, 2: Local, 3: Remote}, keys(web, dns), nil},
		{"on a wrong interface", held(), nil, map[uint32]Class{1: Local, 2: Local}, nil, keys(web, dns)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(c.have, &Want{Rules: Minimal(c.rules), Interfaces: c.interfaces})
			check(t, "missing", c.missing, got.Missing)
			check(t, "surplus", c.surplus, got.Surplus)
		})
	}
}

// TestCompareAgreesWithDiff: after the operations of Diff nothing is missing, and with sweep there
// is no surplus.
func TestCompareAgreesWithDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVPP(ifaces)
		genForeign(t, v)
		few := genFew(t)
		for range 2 {
			want := genWant(t)
			for _, sweep := range []bool{false, true} {
				state := mustRead(t, v)
				before := Compare(state, want)
				ops := diff(state, want, sweep, few)
				if len(before.Missing) > 0 && len(ops) == 0 {
					t.Fatalf("nothing to do, but missing %v", before.Missing)
				}
				Apply(context.Background(), v, ops)
				after := Compare(mustRead(t, v), want)
				if len(after.Missing) > 0 || sweep && len(after.Surplus) > 0 {
					t.Fatalf("sweep %v: missing %v, surplus %v", sweep, after.Missing, after.Surplus)
				}
			}
			disturb(t, v)
		}
	})
}
