package nat44

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
func (r *ranges) settle(owners map[rule.Key]string) []string {
	plans, moved, _ := r.fit()
	r.closed = r.closing
	return append(moved, r.merge(plans, func(k rule.Key) (string, bool) {
		owner, claimed := owners[k]
		return owner, claimed
	})...)
}

// carryOut makes VPP accept operations.
func (r *ranges) carryOut(ops []acl.Op) []string {
	for _, op := range ops {
		r.record(op)
	}
	return r.compare()
}

func interfaces(generation uint64) *messages.InterfaceSet {
	return &messages.InterfaceSet{Generation: generation, Complete: true, Interfaces: []*messages.Interface{
		{SwIfIndex: 1, Name: "uplink0", Frontend: true}, {SwIfIndex: 2, Name: "pod2", Frontend: true, Local: true},
	}}
}

// TestRangesLife goes from nothing to a service with ranges and back.
func TestRangesLife(t *testing.T) {
	r, k, clean := newRanges(acl.Config{}), at(t, "10.0.0.1"), func(rule.Key) bool { return false }
	if r.stale || r.known() || !r.needed() || !r.guarded("a/a") || !r.left("a/a") {
		t.Error("at the start")
	}
	r.interfaces(nil, interfaces(1))
	r.adopt(acl.NewState())
	if r.needed() {
		t.Error("something has to be done for nothing")
	}
	r.plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	if !r.stale {
		t.Error("rules have not changed")
	}
	if got := r.settle(nil); !slices.Contains(got, "a/a") || r.stale || !r.standing.Missing[k] {
		t.Errorf("changed for %q, missing %t", got, r.standing.Missing[k])
	}
	if !r.isNew() || r.isNew() {
		t.Error("news come once")
	}
	ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
	if r.acknowledge(ack, "a/a", nil); ack.GetState() != messages.RenderState_RENDER_PENDING {
		t.Errorf("acknowledged %v", ack)
	}
	if r.acknowledge(ack, "a/a", errors.New("no")); ack.GetState() != messages.RenderState_RENDER_FAILED || ack.GetError() != "no" {
		t.Errorf("acknowledged %v", ack)
	}
	if got := r.carryOut(r.additions(false)); !slices.Contains(got, "a/a") || r.standing.Missing[k] || len(r.additions(false)) != 0 || len(r.removals(clean, false)) != 0 {
		t.Errorf("changed for %q, missing %t", got, r.standing.Missing[k])
	}
	ack = &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
	if r.acknowledge(ack, "a/a", nil); ack.GetState() != messages.RenderState_RENDER_IN_SYNC {
		t.Errorf("acknowledged %v", ack)
	}
	r.plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	if r.stale {
		t.Error("the same again is a change")
	}
	r.plan("a/a", nil)
	r.settle(nil)
	if !slices.Equal(r.concerned(), []string{"a/a"}) || r.left("a/a") {
		t.Errorf("left although VPP still drops, concerned %q", r.concerned())
	}
	if kept := r.removals(func(rule.Key) bool { return true }, false); len(kept) != 0 || r.waiting(func(rule.Key) bool { return true }) || !r.waiting(clean) {
		t.Errorf("rules that a dirty row relies on go: %v", kept)
	}
	r.carryOut(r.removals(clean, false))
	if !r.left("a/a") || r.needed() || len(r.concerned()) != 0 {
		t.Errorf("left %t, needed %t, concerned %q", r.left("a/a"), r.needed(), r.concerned())
	}
}

// TestDropsOfTheOwnerCount: what other services drop that want the frontend does not; source ranges
// do.
func TestDropsOfTheOwnerCount(t *testing.T) {
	r, k := newRanges(acl.Config{}), at(t, "10.0.0.1")
	r.interfaces(nil, interfaces(1))
	r.adopt(acl.NewState())
	drops := ranged("a/a", 1, nil, "10.0.0.1")
	drops.Frontends[0].Action = messages.Action_ACTION_DROP
	r.plan("a/a", drops)
	if r.settle(map[rule.Key]string{k: "b/b"}); r.standing.Missing[k] {
		t.Error("drops count although another service owns the frontend")
	}
	r.ownerChanged(at(t, "10.0.0.2"))
	if r.stale {
		t.Error("a frontend without rules matters")
	}
	if r.ownerChanged(k); !r.stale {
		t.Error("another owner does not matter")
	}
	if r.settle(map[rule.Key]string{k: "a/a"}); !r.standing.Missing[k] {
		t.Error("the drops of the owner do not count")
	}
	r.plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	if r.settle(map[rule.Key]string{k: "b/b"}); !r.standing.Missing[k] {
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
	r, k := newRanges(acl.Config{}), at(t, "10.0.0.1")
	r.interfaces(nil, interfaces(1))
	r.adopt(acl.NewState())
	r.plan("b/b", ranged("b/b", 1, []string{"192.0.2.0/24"}, "10.0.0.1", "10.0.0.2"))
	r.plan("a/a", ranged("a/a", 1, many, "10.0.0.1"))
	if moved := r.settle(nil); !slices.Contains(moved, "a/a") || r.guarded("a/a") || !r.guarded("b/b") || !r.closed[k] || r.closed[at(t, "10.0.0.2")] || len(r.closed) == 0 {
		t.Errorf("closed %t, moved %q", r.closed[k], moved)
	}
	ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC, Error: "another one"}
	r.acknowledge(ack, "a/a", nil)
	if ack.GetState() != messages.RenderState_RENDER_FAILED || !strings.HasPrefix(ack.GetError(), "not served: spec.loadBalancerSourceRanges: more than 4096 rules") {
		t.Errorf("acknowledged %v", ack)
	}
	r.plan("a/a", ranged("a/a", 1, many[:10], "10.0.0.1"))
	if moved := r.settle(nil); !slices.Contains(moved, "a/a") || !r.guarded("a/a") || len(r.closed) > 0 || !r.standing.Missing[k] {
		t.Errorf("closed %t, moved %q", r.closed[k], moved)
	}
}

// TestTheRefusedListIsTriedAlone: until VPP takes it.
func TestTheRefusedListIsTriedAlone(t *testing.T) {
	r := newRanges(acl.Config{})
	r.interfaces(nil, interfaces(1))
	r.adopt(acl.NewState())
	r.plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	r.settle(nil)
	all := r.additions(false)
	r.blamed = &all[1]
	if again := r.additions(true); len(again) != 1 || again[0].Tag != all[1].Tag || len(r.additions(false)) != len(all) {
		t.Errorf("tried again %v of %v", again, all)
	}
	r.carryOut(all[1:2])
	if left := r.additions(true); len(left) != len(all)-1 {
		t.Errorf("when VPP has taken it: %v", left)
	}
}

// TestWithoutAccessLists: nothing is dropped, what has source ranges is not served, and services
// know it.
func TestWithoutAccessLists(t *testing.T) {
	r, k := newRanges(acl.Config{}), at(t, "10.0.0.1")
	r.interfaces(nil, interfaces(1))
	r.plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
	availability, drifted := r.adopt(nil)
	if !availability || drifted || r.guarded("a/a") || !r.stale || !r.known() || r.needed() {
		t.Errorf("availability %t, drifted %t, guarded %t", availability, drifted, r.guarded("a/a"))
	}
	r.settle(nil)
	r.compare()
	ack := &messages.RenderAck{State: messages.RenderState_RENDER_IN_SYNC}
	r.acknowledge(ack, "a/a", nil)
	if len(ack.GetApproximations()) != 1 || ack.GetState() != messages.RenderState_RENDER_FAILED || !r.closed[k] || r.standing.Missing[k] || r.diff(acl.NewState(), true) != nil {
		t.Errorf("acknowledged %v, closed %t", ack, r.closed[k])
	}
	availability, _ = r.adopt(acl.NewState())
	if r.settle(nil); !availability || !r.guarded("a/a") || r.closed[k] {
		t.Error("a VPP with access lists is no change")
	}
	if len(r.diff(acl.NewState(), true)) == 0 {
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
		r, before, now := newRanges(acl.Config{}), interfaces(1), interfaces(2)
		r.interfaces(nil, before)
		r.adopt(acl.NewState())
		r.plan("a/a", ranged("a/a", 1, []string{"192.0.2.0/24"}, "10.0.0.1"))
		r.settle(nil)
		r.carryOut(r.additions(false))
		tc.change(now)
		if r.interfaces(before, now); r.known() != tc.known {
			t.Errorf("%s: known %t", name, r.known())
		}
		if r.forget(); r.known() {
			t.Errorf("%s: known although it is forgotten", name)
		}
	}
}

// TestClosedByFragments: UDP with source ranges at an address of a node is not served by any
// service, and the addresses of nodes may change.
func TestClosedByFragments(t *testing.T) {
	r := newRanges(acl.Config{})
	view := ranged("default/dns", 1, []string{"10.0.0.0/8"}, "192.168.16.1")
	view.Frontends[0].Protocol, view.Frontends[0].Kind = messages.Protocol_UDP, messages.FrontendKind_KIND_LOAD_BALANCER_IP
	k := at(t, "192.168.16.1")
	k.Proto = rule.UDP
	for _, hosts := range []map[netip.Addr]bool{nil, {k.Addr: true}, nil} {
		r.config.Ground = rule.Ground{Hosts: hosts}
		r.plan("default/dns", view)
		r.settle(nil)
		if closed := len(hosts) > 0; r.closed[k] != closed || (len(r.want.Rules) == 0) != closed {
			t.Errorf("hosts %v: closed %t, %d rules", hosts, r.closed[k], len(r.want.Rules))
		}
	}
}
