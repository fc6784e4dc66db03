package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// peer makes a node: "name id vpp management cidr uid", "-" for nothing.
func peer(text string) *messages.ClusterNode {
	f := strings.Fields(text)
	list := func(s string) []string {
		if s == "-" {
			return nil
		}
		return strings.Split(s, ",")
	}
	n := &messages.ClusterNode{Name: f[0], VppAddresses: list(f[2]), ManagementAddresses: list(f[3]), PodCidrs: list(f[4])}
	n.Id = uint32(f[1][0] - '0')
	if f[5] != "-" {
		n.Uid = f[5]
	}
	return n
}

func stateOf(peers ...string) *messages.ClusterState {
	s := &messages.ClusterState{Self: "me", Nodes: map[string]*messages.ClusterNode{}}
	for _, p := range peers {
		n := peer(p)
		s.Nodes[n.GetName()] = n
	}
	return s
}

// saying returns updates as text: "+name" joined, "-name" left, "~name" changed.
func saying(updates []*messages.NodeUpdate) string {
	var words []string
	for _, u := range updates {
		switch {
		case u.Previous == nil:
			words = append(words, "+"+u.GetName())
		case u.Current == nil:
			words = append(words, "-"+u.GetName())
		default:
			words = append(words, "~"+u.GetName())
		}
	}
	return strings.Join(words, " ")
}

func TestUpdates(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *messages.ClusterState
		want          string
	}{
		"nothing":                           {nil, nil, ""},
		"first state":                       {nil, stateOf("a 1 - - - -", "b 0 - 1.1.1.1 - -"), "+a"},
		"the same":                          {stateOf("a 1 v m c u"), stateOf("a 1 v m c u"), ""},
		"in Kubernetes only, never joined":  {stateOf(), stateOf("a 0 - m c u"), ""},
		"management changes without ID":     {stateOf("a 0 - m c u"), stateOf("a 0 - m2 c u"), ""},
		"gets an ID":                        {stateOf("a 0 - m c u"), stateOf("a 1 - m c u"), "+a"},
		"joins with its addresses":          {stateOf(), stateOf("a 1 v m c u"), "+a"},
		"loses its ID, stays in Kubernetes": {stateOf("a 1 v m c u"), stateOf("a 0 - m c u"), "-a"},
		"gone altogether":                   {stateOf("a 1 v m c u"), stateOf(), "-a"},
		"another ID":                        {stateOf("a 1 v m c u"), stateOf("a 2 v m c u"), "~a"},
		"VPP address":                       {stateOf("a 1 v m c u"), stateOf("a 1 v2 m c u"), "~a"},
		"VPP addresses vanish":              {stateOf("a 1 v m c u"), stateOf("a 1 - m c u"), "~a"},
		"management address":                {stateOf("a 1 v m c u"), stateOf("a 1 v m2 c u"), "~a"},
		"management addresses in new order": {stateOf("a 1 v m,n c u"), stateOf("a 1 v n,m c u"), ""},
		"Kubernetes lost it, ID stays":      {stateOf("a 1 v m c u"), stateOf("a 1 v - - u"), "~a"},
		"pod CIDR only":                     {stateOf("a 1 v m c u"), stateOf("a 1 v m c2 u"), "~a"},
		"pod CIDRs in new order":            {stateOf("a 1 v m c,d u"), stateOf("a 1 v m d,c u"), "~a"},
		"created anew":                      {stateOf("a 1 v m c u"), stateOf("a 1 v m c u2"), "~a"},
		"an ID moves: left before joined":   {stateOf("b 1 v m c u"), stateOf("a 1 v m c u", "b 0 - m c u"), "-b +a"},
		"order": {
			stateOf("z 1 v m c u", "y 2 v m c u", "d 3 v m c u", "c 4 v m c u"),
			stateOf("d 3 v2 m c u", "c 4 v2 m c u", "b 1 v m c u", "a 2 v m c u"), "-y -z ~c ~d +a +b",
		},
		"self: gets its ID":             {stateOf("me 0 - m c u"), stateOf("me 1 - m c u"), ""},
		"self: publishes":               {stateOf("me 1 - m c u"), stateOf("me 1 v m c u"), ""},
		"self: loses its ID":            {stateOf("me 1 v m c u"), stateOf("me 0 - m c u"), ""},
		"self: created anew":            {stateOf("me 1 v m c u"), stateOf("me 1 v m c u2"), ""},
		"self: management address":      {stateOf("me 1 v m c u"), stateOf("me 1 v m2 c u"), "~me"},
		"self: pod CIDR":                {stateOf("me 1 v m c u"), stateOf("me 1 v m c2 u"), "~me"},
		"self: without an ID too":       {stateOf("me 0 - m c u"), stateOf("me 0 - m2 c u"), "~me"},
		"self: Kubernetes speaks first": {stateOf(), stateOf("me 0 - m c u"), "~me"},
		"self: vanishes":                {stateOf("me 1 v m c u"), stateOf(), "~me"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Updates(c.before, c.after)
			if diff := cmp.Diff(c.want, saying(got)); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
			for _, u := range got {
				if u.GetPrevious() == nil && u.GetCurrent() == nil {
					t.Errorf("%s: neither before nor after", u.GetName())
				}
			}
		})
	}
}

// TestUpdatesStory: a node is in Kubernetes, joins, loses its records and joins again; its
// management address is there all along.
func TestUpdatesStory(t *testing.T) {
	m, v := newModel(), view{}.next(nodesOf("me", node("me", "u"), node("a", "ua", "192.0.2.1")))
	var k *keyspace
	r := roster{nodes: map[string]*messages.ClusterNode{}}
	last := &messages.ClusterState{Self: "me"}
	step := func(want string) {
		t.Helper()
		k = m.keyspace(testLayout, k)
		r.refreshAll(k, v)
		next := &messages.ClusterState{Self: "me", Nodes: r.snapshot()}
		if got := saying(Updates(last, next)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := next.Nodes["a"].GetManagementAddresses(); !cmp.Equal(got, []string{"192.0.2.1"}) {
			t.Errorf("management addresses %v", got)
		}
		last = next
	}
	step("")
	m.record(testLayout, 2, "a", "ua")
	step("+a")
	m.set(testLayout.addresses("a"), `{"name":"a","vppAddresses":["10.0.0.2/24"]}`)
	step("~a")
	m.drop(testLayout.id(2), testLayout.name("a"))
	step("-a")
	m.record(testLayout, 2, "a", "ua")
	step("+a")
}

// TestUpdatesCompose applies the updates of a random walk to a set of members: the result always
// equals the last state.
func TestUpdatesCompose(t *testing.T) {
	word := rapid.SampledFrom([]string{"-", "x", "y"})
	drawState := func(t *rapid.T) *messages.ClusterState {
		s := &messages.ClusterState{Self: "me", Nodes: map[string]*messages.ClusterNode{}}
		for _, name := range []string{"a", "b", "me"} {
			if rapid.Bool().Draw(t, "has "+name) {
				id := rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "id")
				rest := []string{word.Draw(t, "vpp"), word.Draw(t, "mgmt"), word.Draw(t, "cidr"), word.Draw(t, "uid")}
				s.Nodes[name] = peer(name + " " + id + " " + strings.Join(rest, " "))
			}
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		members := map[string]*messages.ClusterNode{}
		var last *messages.ClusterState
		for range rapid.IntRange(1, 6).Draw(t, "states") {
			next := drawState(t)
			for _, u := range Updates(last, next) {
				if u.GetName() == "me" {
					continue
				}
				if !proto.Equal(members[u.GetName()], u.GetPrevious()) {
					t.Fatalf("%s: previous is %v, it was %v", u.GetName(), u.GetPrevious(), members[u.GetName()])
				}
				if delete(members, u.GetName()); u.GetCurrent() != nil {
					members[u.GetName()] = u.GetCurrent()
				}
			}
			want := map[string]*messages.ClusterNode{}
			for name, n := range next.GetNodes() {
				if name != "me" && n.GetId() != 0 {
					want[name] = n
				}
			}
			if diff := cmp.Diff(want, members, protocmp.Transform()); diff != "" {
				t.Fatalf("members (-want +got):\n%s", diff)
			}
			if again := Updates(next, next); len(again) != 0 {
				t.Fatalf("equal states differ: %s", saying(again))
			}
			last = next
		}
	})
}
