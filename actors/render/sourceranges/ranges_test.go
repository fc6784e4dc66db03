package sourceranges

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// ranged is a service that lets in clients from some networks only.
func ranged(key string, created int64, sources []string, addresses ...string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: created}
	for _, a := range addresses {
		v.Frontends = append(v.Frontends, &messages.Frontend{
			Address: a, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_FORWARD, AllowSources: sources,
			Backends: []*messages.Backend{{Address: "10.1.1.2", Port: 8080, Local: true}},
		})
	}
	return v
}

// at is the frontend at port 80 of an address.
func at(t *testing.T, address string) rule.Key {
	t.Helper()
	k, err := rule.ParseKey(address + ":80/TCP")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// settle puts the rules together; all frontends belong to the service that is given for them, or to
// the service that wants them.
func (r *Ranges) settle(owners map[rule.Key]string) []string {
	plans, moved, _ := r.Fit()
	r.Close()
	return append(moved, r.Merge(plans, func(k rule.Key) (string, bool) {
		owner, claimed := owners[k]
		return owner, claimed
	})...)
}

// carryOut makes VPP accept operations.
func (r *Ranges) carryOut(ops []acl.Op) []string {
	for _, op := range ops {
		r.Record(op)
	}
	return r.Compare()
}

func interfaces(generation uint64) *messages.InterfaceSet {
	return &messages.InterfaceSet{Generation: generation, Complete: true, Interfaces: []*messages.Interface{
		{SwIfIndex: 1, Name: "uplink0", Frontend: true}, {SwIfIndex: 2, Name: "pod2", Frontend: true, Local: true},
	}}
}

// TestRangesLife goes from nothing to a service with ranges and back.
func TestRangesLife(t *testing.T) {
	r, k, clean := New(acl.Config{}), at(t, "10.0.0.1"), func(rule.Key) bool { return false }
	if r.Stale() || r.Known() || !r.Needed() || !r.Guarded("a/a") || !r.Left("a/a") {
		t.Error("at the start")
	}
	r.Interfaces(nil, interfaces(1))
	r.Adopt(acl.NewState())
	if r.Needed() {
		t.Error("something has to be done for nothing")
	}
	r.Plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	if !r.Stale() {
		t.Error("rules have not changed")
	}
	if got := r.settle(nil); !slices.Contains(got, "a/a") || r.Stale() || !r.Missing(k) {
		t.Errorf("changed for %q, missing %t", got, r.Missing(k))
	}
	if !r.News() || r.News() {
		t.Error("news come once")
	}
	ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
	if r.Acknowledge(ack, "a/a", nil); ack.GetState() != messages.RenderState_RENDER_PENDING {
		t.Errorf("acknowledged %v", ack)
	}
	if r.Acknowledge(ack, "a/a", errors.New("no")); ack.GetState() != messages.RenderState_RENDER_FAILED || ack.GetError() != "no" {
		t.Errorf("acknowledged %v", ack)
	}
	if got := r.carryOut(r.Additions(false)); !slices.Contains(got, "a/a") || r.Missing(k) || len(r.Additions(false)) != 0 || len(r.Removals(clean, false)) != 0 {
		t.Errorf("changed for %q, missing %t", got, r.Missing(k))
	}
	ack = &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
	if r.Acknowledge(ack, "a/a", nil); ack.GetState() != messages.RenderState_RENDER_IN_SYNC {
		t.Errorf("acknowledged %v", ack)
	}
	r.Plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	if r.Stale() {
		t.Error("the same again is a change")
	}
	r.Plan("a/a", nil)
	r.settle(nil)
	if !slices.Equal(r.Concerned(), []string{"a/a"}) || r.Left("a/a") {
		t.Errorf("left although VPP still drops, concerned %q", r.Concerned())
	}
	if kept := r.Removals(func(rule.Key) bool { return true }, false); len(kept) != 0 || r.Waiting(func(rule.Key) bool { return true }) || !r.Waiting(clean) {
		t.Errorf("rules that a dirty row relies on go: %v", kept)
	}
	r.carryOut(r.Removals(clean, false))
	if !r.Left("a/a") || r.Needed() || len(r.Concerned()) != 0 {
		t.Errorf("left %t, needed %t, concerned %q", r.Left("a/a"), r.Needed(), r.Concerned())
	}
}

// TestDropsOfTheOwnerCount: what other services drop that want the frontend does not; source ranges
// do.
func TestDropsOfTheOwnerCount(t *testing.T) {
	r, k := New(acl.Config{}), at(t, "10.0.0.1")
	r.Interfaces(nil, interfaces(1))
	r.Adopt(acl.NewState())
	drops := ranged("a/a", 1, nil, "10.0.0.1")
	drops.Frontends[0].Action = messages.Action_ACTION_DROP
	r.Plan("a/a", drops)
	if r.settle(map[rule.Key]string{k: "b/b"}); r.Missing(k) {
		t.Error("drops count although another service owns the frontend")
	}
	r.OwnerChanged(at(t, "10.0.0.2"))
	if r.Stale() {
		t.Error("a frontend without rules matters")
	}
	if r.OwnerChanged(k); !r.Stale() {
		t.Error("another owner does not matter")
	}
	if r.settle(map[rule.Key]string{k: "a/a"}); !r.Missing(k) {
		t.Error("the drops of the owner do not count")
	}
	r.Plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	if r.settle(map[rule.Key]string{k: "b/b"}); !r.Missing(k) {
		t.Error("source ranges do not count because another service owns the frontend")
	}
}

// TestWithoutRoom: a service that needs too many rules is not served at its frontends with source
// ranges, nor is another service there. It reports this, and has room again when it needs fewer
// rules.
func TestWithoutRoom(t *testing.T) {
	many := make([]string, acl.MaxServiceRules)
	for i := range many {
		many[i] = fmt.Sprintf("10.%d.%d.0/24", i/128, 2*(i%128))
	}
	r, k := New(acl.Config{}), at(t, "10.0.0.1")
	r.Interfaces(nil, interfaces(1))
	r.Adopt(acl.NewState())
	r.Plan("b/b", ranged("b/b", 1, []string{"192.0.2.0/24"}, "10.0.0.1", "10.0.0.2"))
	r.Plan("a/a", ranged("a/a", 1, many, "10.0.0.1"))
	if moved := r.settle(nil); !slices.Contains(moved, "a/a") || r.Guarded("a/a") || !r.Guarded("b/b") || !r.Closed(k) || r.Closed(at(t, "10.0.0.2")) || !r.AnyClosed() {
		t.Errorf("closed %t, moved %q", r.Closed(k), moved)
	}
	ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC, Error: "another one"}
	r.Acknowledge(ack, "a/a", nil)
	if ack.GetState() != messages.RenderState_RENDER_FAILED || !strings.HasPrefix(ack.GetError(), "not served: spec.loadBalancerSourceRanges: more than 4096 rules") {
		t.Errorf("acknowledged %v", ack)
	}
	r.Plan("a/a", ranged("a/a", 1, many[:10], "10.0.0.1"))
	if moved := r.settle(nil); !slices.Contains(moved, "a/a") || !r.Guarded("a/a") || r.AnyClosed() || !r.Missing(k) {
		t.Errorf("closed %t, moved %q", r.Closed(k), moved)
	}
}

// TestTheRefusedListIsTriedAlone: until VPP takes it.
func TestTheRefusedListIsTriedAlone(t *testing.T) {
	r := New(acl.Config{})
	r.Interfaces(nil, interfaces(1))
	r.Adopt(acl.NewState())
	r.Plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	r.settle(nil)
	all := r.Additions(false)
	r.Refused(&all[1])
	if again := r.Additions(true); len(again) != 1 || again[0].Tag != all[1].Tag || len(r.Additions(false)) != len(all) {
		t.Errorf("tried again %v of %v", again, all)
	}
	r.carryOut(all[1:2])
	if left := r.Additions(true); len(left) != len(all)-1 {
		t.Errorf("when VPP has taken it: %v", left)
	}
}

// TestWithoutAccessLists: nothing is dropped, what has source ranges is not served, and services
// know it.
func TestWithoutAccessLists(t *testing.T) {
	r, k := New(acl.Config{}), at(t, "10.0.0.1")
	r.Interfaces(nil, interfaces(1))
	r.Plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	availability, drifted := r.Adopt(nil)
	if !availability || drifted || r.Guarded("a/a") || !r.Stale() || !r.Known() || r.Needed() {
		t.Errorf("availability %t, drifted %t, guarded %t", availability, drifted, r.Guarded("a/a"))
	}
	r.settle(nil)
	r.Compare()
	ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
	r.Acknowledge(ack, "a/a", nil)
	if len(ack.GetApproximations()) != 1 || ack.GetState() != messages.RenderState_RENDER_FAILED || !r.Closed(k) || r.Missing(k) || r.Diff(acl.NewState(), true) != nil {
		t.Errorf("acknowledged %v, closed %t", ack, r.Closed(k))
	}
	availability, _ = r.Adopt(acl.NewState())
	if r.settle(nil); !availability || !r.Guarded("a/a") || r.Closed(k) {
		t.Error("a VPP with access lists is no change")
	}
	if len(r.Diff(acl.NewState(), true)) == 0 {
		t.Error("no difference to an empty VPP")
	}
}

// TestAnInterfaceWithAList: where it is another one, what VPP holds is not known.
func TestAnInterfaceWithAList(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*messages.InterfaceSet)
		known  bool
	}{
		"the same": {func(*messages.InterfaceSet) {}, true},
		"one more": {func(s *messages.InterfaceSet) {
			s.Interfaces = append(s.Interfaces, &messages.Interface{SwIfIndex: 9, Name: "new"})
		}, true},
		"another one": {func(s *messages.InterfaceSet) { s.Interfaces[1].Name = "new" }, false},
		"one is gone": {func(s *messages.InterfaceSet) { s.Interfaces = s.Interfaces[:1] }, false},
	} {
		r, before, now := New(acl.Config{}), interfaces(1), interfaces(2)
		r.Interfaces(nil, before)
		r.Adopt(acl.NewState())
		r.Plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
		r.settle(nil)
		r.carryOut(r.Additions(false))
		tc.change(now)
		if r.Interfaces(before, now); r.Known() != tc.known {
			t.Errorf("%s: known %t", name, r.Known())
		}
		if r.Forget(); r.Known() {
			t.Errorf("%s: known although it is forgotten", name)
		}
	}
}

// TestClosedByFragments: UDP with source ranges at an address of a node is not served by any
// service, and the addresses of nodes may change.
func TestClosedByFragments(t *testing.T) {
	r := New(acl.Config{})
	view := ranged("default/dns", 1, []string{"10.0.0.0/8"}, "192.168.16.1")
	view.Frontends[0].Protocol, view.Frontends[0].Kind = messages.Protocol_UDP, messages.FrontendKind_KIND_LOAD_BALANCER_IP
	k := at(t, "192.168.16.1")
	k.Proto = rule.UDP
	for _, hosts := range []map[netip.Addr]bool{nil, {k.Addr: true}, nil} {
		r.SetGround(rule.Ground{Hosts: hosts})
		r.Plan("default/dns", view)
		r.settle(nil)
		if closed := len(hosts) > 0; r.Closed(k) != closed || (len(r.want.Rules) == 0) != closed {
			t.Errorf("hosts %v: closed %t, %d rules", hosts, r.Closed(k), len(r.want.Rules))
		}
	}
}
