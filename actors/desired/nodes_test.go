package desired

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestNodesFeedsNodeSync(t *testing.T) {
	perform(t, PathNodes, nil, func(s *stage) {
		s.tell(&messages.NodeChanged{Input: testNodeInput(4)})
		if s.sync.nodes.GetGeneration() != 4 {
			t.Errorf("nodes %v", s.sync.nodes)
		}
		for _, address := range []string{"192.168.16.1/24", "192.168.16.1/24", "", "192.168.16.2/24"} {
			set := &messages.InterfaceSet{}
			if address != "" {
				set.NodeAddresses = []string{address}
			}
			s.tell(set)
		}
		want := [][]string{{"192.168.16.1/24"}, {"192.168.16.2/24"}} // an uplink that is gone for a moment withdraws nothing
		if diff := cmp.Diff(want, s.sync.published); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}

func TestNodesIsHealthyWithAnID(t *testing.T) {
	perform(t, PathNodes, nil, func(s *stage) {
		if h := latest[*messages.Health](s, PathHealer); h.GetOk() {
			t.Errorf("healthy without an ID: %v", h)
		}
		for _, step := range []struct {
			state *messages.ClusterState
			ok    bool
			event bool
		}{
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_PENDING, Reason: "no answer"}, false, false},
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 3}, true, true},
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 3, Connected: true}, true, false},
			{&messages.ClusterState{Claim: messages.ClaimState_CLAIM_FENCED, Id: 3, Reason: "held by n9"}, false, true},
		} {
			s.forget()
			s.sync.states <- step.state
			s.run(time.Millisecond)
			h, e := latest[*messages.Health](s, PathHealer), latest[*messages.Event](s, PathJournal)
			if h.GetOk() != step.ok || h.GetReason() != step.state.GetReason() || (e != nil) != step.event {
				t.Errorf("%v: health %v, event %v", step.state, h, e)
			}
		}
		s.forget()
		s.run(healthRepeat + time.Second)
		if latest[*messages.ClusterState](s, PathIntrospect).GetId() != 3 || latest[*messages.Health](s, PathHealer) == nil {
			t.Error("state and health are not repeated")
		}
	})
}

func TestRestartedNodesRunsNodeSyncAgain(t *testing.T) {
	perform(t, PathNodes, nil, func(s *stage) {
		address := &messages.InterfaceSet{NodeAddresses: []string{"192.168.16.1/24"}}
		s.tell(address)
		s.sync.states <- nil
		s.run(100 * time.Millisecond)
		if len(s.faults) != 1 || !strings.Contains(s.faults[0].GetReason(), "gave up") || s.sync.runs != 2 {
			t.Errorf("faults %v, %d runs", s.faults, s.sync.runs)
		}
		if got := latest[*messages.Resync](s, PathInterfaces).GetSibling(); got != "nodes" {
			t.Error("did not ask for the addresses")
		}
		s.tell(address)
		if len(s.sync.published) != 2 {
			t.Errorf("published %v, want that it is said again", s.sync.published)
		}
	})
}

func TestPeersThatComeAndGoAreInTheJournal(t *testing.T) {
	state := func(nodes ...*messages.ClusterNode) *messages.ClusterState {
		s := &messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1, Self: "n1", Nodes: map[string]*messages.ClusterNode{}}
		for _, n := range append(nodes, &messages.ClusterNode{Name: "n1", Id: 1}) {
			s.Nodes[n.GetName()] = n
		}
		return s
	}
	peer := func(id uint32, address string) *messages.ClusterNode {
		return &messages.ClusterNode{Name: fmt.Sprintf("n%d", id), Id: id, VppAddresses: []string{address}}
	}
	var crowd []*messages.ClusterNode
	for id := range uint32(300) {
		crowd = append(crowd, peer(id+4, "192.168.16.9/24"))
	}
	perform(t, PathNodes, nil, func(s *stage) {
		for _, step := range []struct {
			state *messages.ClusterState
			want  []string
		}{
			{state(peer(2, "192.168.16.2/24")), []string{"n1: node ID 1 CLAIM_HELD"}}, // what is there is no news
			{state(peer(2, "192.168.16.2/24"), peer(3, "192.168.16.3/24")), []string{"n3: joined with node ID 3, VPP at 192.168.16.3/24"}},
			{state(peer(3, "192.168.16.33/24")), []string{"n2: left; it had node ID 2", "n3: now has VPP at 192.168.16.33/24"}},
			{state(append(crowd, peer(3, "192.168.16.33/24"))...), []string{"n1: of the other nodes 300 joined, 0 left, 0 changed"}},
			{state(append(crowd, peer(3, "192.168.16.33/24"))...), nil},
		} {
			s.forget()
			s.sync.states <- step.state
			s.run(time.Millisecond)
			var got []string
			for _, e := range all[*messages.Event](s, PathJournal) {
				got = append(got, e.GetObject()+": "+e.GetText())
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	})
}
