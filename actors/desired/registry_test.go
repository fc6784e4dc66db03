package desired

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
)

// withRegistry plays with a registry that knows two services, "default/web" and "default/db", whose
// actors have acknowledged their specs.
func withRegistry(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, address.Registry, []string{webKey, dbKey}, func(s *stage) {
		s.Tell(snapshotOf(9, testInput("db", "10.96.0.11", 2), testInput("web", "10.96.0.10", 1, "10.1.1.2")), interfacesWith("192.168.16.1/24"))
		s.Tell(&messages.PullSpec{Key: webKey}, &messages.PullSpec{Key: dbKey})
		s.Run(2 * endpointsDelay)
		s.Forget()
		play(s)
	})
}

// endpointsOf are the addresses in the last spec of a service.
func (s *stage) endpointsOf(key string) (found []string) {
	for _, slice := range s.spec(key).GetInput().GetSlices() {
		for _, e := range slice.GetEndpoints() {
			found = append(found, e.GetAddress())
		}
	}
	return found
}

func TestRegistryAsksOnceWhenItStarts(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Forget()
		s.Kill()
		s.Run(5 * time.Second)
		if s.feed.listened != 2 || s.feed.refresh != 0 {
			t.Errorf("listened %d times, asked %d times", s.feed.listened, s.feed.refresh)
		}
		if got := probe.All[*messages.Resync](s.Stage, address.Interfaces); len(got) != 1 || got[0].GetSibling() != "registry" || got[0].GetIncarnation() != 2 {
			t.Errorf("the interfaces were asked with %v", got)
		}
		if h := s.health("registry"); h.GetOk() || h.GetReason() != "no complete snapshot yet" {
			t.Errorf("health %v", h)
		}
		s.Tell(snapshotOf(1), interfacesWith("192.168.16.1/24"))
		if h := s.health("registry"); !h.GetOk() || h.GetReason() != "" {
			t.Errorf("health %v", h)
		}
	})
}

// TestRegistryWithoutANode: nothing can be served for a node that Kubernetes does not have; one
// that was known is served further on.
func TestRegistryWithoutANode(t *testing.T) {
	perform(t, address.Registry, []string{webKey}, func(s *stage) {
		empty := snapshotOf(1, testInput("web", "10.96.0.10", 1))
		empty.Node = &messages.NodeInput{Generation: 1}
		s.Tell(empty, interfacesWith("192.168.16.1/24"), &messages.PullSpec{Key: webKey})
		if h := s.health("registry"); h.GetOk() || !strings.HasPrefix(h.GetReason(), "Kubernetes has no node n1: --node-name must be") || s.begin() != nil || s.spec(webKey) != nil {
			t.Errorf("health %v, begin %v, spec %v", h, s.begin(), s.spec(webKey))
		}
		s.Tell(&messages.NodeChanged{Input: testNodeInput(2)})
		if h := s.health("registry"); !h.GetOk() || s.begin() == nil || s.spec(webKey) == nil {
			t.Errorf("health %v, begin %v, spec %v", h, s.begin(), s.spec(webKey))
		}
		s.Forget()
		s.Tell(&messages.NodeChanged{Input: &messages.NodeInput{Generation: 3}})
		if h := s.health("registry"); !h.GetOk() || h.GetReason() != "Kubernetes has no node n1 any more" || s.spec(webKey) != nil {
			t.Errorf("health %v, spec %v", h, s.spec(webKey))
		}
	})
}

// TestRegistryIgnoresWhatComesLate: what is not newer than all that was seen changes nothing,
// neither the same again nor what a list has overtaken.
func TestRegistryIgnoresWhatComesLate(t *testing.T) {
	old, current := testInput("web", "10.96.0.10", 5, "10.1.1.2"), testInput("web", "10.96.0.10", 12, "10.1.1.3")
	for name, tc := range map[string]struct {
		messages []any
		want     []string // endpoints of web; nil = it is gone
	}{
		"a list after a change":         {[]any{changedTo(current), snapshotOf(9, old)}, []string{"10.1.1.3"}},
		"a list after a removal":        {[]any{changedTo(goneSince(webKey, 12)), snapshotOf(9, old)}, nil},
		"a list after a newer list":     {[]any{snapshotOf(12, current), snapshotOf(9, old)}, []string{"10.1.1.3"}},
		"a change after a change":       {[]any{changedTo(current), changedTo(old)}, []string{"10.1.1.3"}},
		"a change after a list":         {[]any{snapshotOf(12, current), changedTo(old)}, []string{"10.1.1.3"}},
		"the same change again":         {[]any{changedTo(current), changedTo(testInput("web", "10.96.0.10", 12, "10.1.1.9"))}, []string{"10.1.1.3"}},
		"a removal after a change":      {[]any{changedTo(current), changedTo(goneSince(webKey, 5))}, []string{"10.1.1.3"}},
		"a change after the removal":    {[]any{snapshotOf(12), changedTo(old)}, nil},
		"an incomplete list, of old":    {[]any{changedTo(current), &messages.Snapshot{Services: []*messages.ServiceInput{old}}}, []string{"10.1.1.3"}},
		"a node does not stop a change": {[]any{&messages.NodeChanged{Input: testNodeInput(4)}, changedTo(old)}, []string{"10.1.1.2"}},
		"a list of now":                 {[]any{changedTo(current), snapshotOf(12, current)}, []string{"10.1.1.3"}},
		"a list that is newer":          {[]any{changedTo(current), snapshotOf(13, testInput("web", "10.96.0.10", 13, "10.1.1.4"))}, []string{"10.1.1.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, address.Registry, []string{webKey}, func(s *stage) {
				s.Tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)), interfacesWith("192.168.16.1/24"), &messages.PullSpec{Key: webKey})
				for _, msg := range tc.messages {
					// one by one: of two that wait, a mailbox keeps the last
					s.Tell(msg)
				}
				if gone := s.spec(webKey).GetInput().GetService() == nil; gone != (tc.want == nil) || !slices.Equal(s.endpointsOf(webKey), tc.want) {
					t.Errorf("spec %v", s.spec(webKey))
				}
			})
		})
	}
}

// TestRegistryIgnoresALateNode: the nodes have their place in the order of all changes.
func TestRegistryIgnoresALateNode(t *testing.T) {
	withRegistry(t, func(s *stage) {
		at := func(generation uint64, address string) *messages.NodeChanged {
			in := testNodeInput(generation)
			in.Self.Addresses = []string{address}
			return &messages.NodeChanged{Input: in}
		}
		for _, msg := range []any{at(11, "192.168.16.11"), at(10, "192.168.16.10"), at(11, "192.168.16.99")} {
			s.Tell(msg)
		}
		if got := s.spec(webKey).GetNode().GetAddresses(); !slices.Equal(got, []string{"192.168.16.11", "192.168.16.1"}) {
			t.Errorf("the services know the addresses %v", got)
		}
	})
}

// TestBlankRegistryIgnoresChanges: a change alone says nothing of the other services, so nothing
// begins with it.
func TestBlankRegistryIgnoresChanges(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Forget()
		s.Tell(
			interfacesWith("192.168.16.1/24"), &messages.RenderUp{Renderer: "nat44"}, changedTo(testInput("web", "10.96.0.10", 7, "10.1.1.9")),
			&messages.NodeChanged{Input: testNodeInput(8)}, &messages.PullSpec{Key: webKey}, &messages.Retired{Key: webKey, Generation: 9},
		)
		s.Run(time.Second)
		for _, path := range []string{address.Renderer("nat44"), address.Services, address.Introspect, address.Journal, address.Interfaces} {
			if got := s.Heard(path); len(got) > 0 {
				t.Errorf("%s was told %v", path, got)
			}
		}
		s.Tell(snapshotOf(3, testInput("db", "10.96.0.11", 3)))
		if all := probe.Latest[*messages.Ensure](s.Stage, address.Services); !slices.Equal(all.GetKeys(), []string{dbKey}) || !slices.Equal(s.begin().GetKeys(), []string{dbKey}) {
			t.Errorf("the first list is not taken: %v, %v", all, s.begin())
		}
	})
}

// TestRegistryTakesTheMirrorUntilTheSourceSpeaks: what the mirror says is announced, nothing is
// removed for it, and a late one changes nothing. Nor does a list of the source that is older than
// a change.
func TestRegistryTakesTheMirrorUntilTheSourceSpeaks(t *testing.T) {
	perform(t, address.Registry, []string{webKey}, func(s *stage) {
		mirror := &messages.Snapshot{Services: []*messages.ServiceInput{testInput("web", "10.96.0.10", 0, "10.1.1.2")}, Node: testNodeInput(0)}
		s.Tell(interfacesWith("192.168.16.1/24"), mirror, &messages.PullSpec{Key: webKey}, &messages.PullSpec{Key: dbKey}, &messages.Retired{Key: dbKey})
		h := s.health("registry")
		if b := s.begin(); !b.GetProvisional() || !slices.Equal(b.GetKeys(), []string{webKey}) || !h.GetOk() || h.GetReason() == "" {
			t.Errorf("begin %v, health %v", b, h)
		}
		if got := probe.All[*messages.Release](s.Stage, address.Services); len(got) > 0 || !slices.Equal(s.endpointsOf(webKey), []string{"10.1.1.2"}) {
			t.Errorf("released %v, endpoints %v", got, s.endpointsOf(webKey))
		}
		s.Tell(changedTo(testInput("web", "10.96.0.10", 3, "10.1.1.4")), snapshotOf(2, testInput("web", "10.96.0.10", 2, "10.1.1.3")))
		if !s.begin().GetProvisional() || !slices.Equal(s.endpointsOf(webKey), []string{"10.1.1.4"}) {
			t.Errorf("a list older than a change was taken: %v", s.endpointsOf(webKey))
		}
		if s.feed.refresh != 1 {
			t.Errorf("asked %d times for the list, want once", s.feed.refresh)
		}
		s.Tell(snapshotOf(4, testInput("web", "10.96.0.10", 4, "10.1.1.3")))
		h = s.health("registry")
		if b := s.begin(); b.GetProvisional() || h.GetReason() != "" {
			t.Errorf("begin %v, health %v", b, h)
		}
		mirror.Services[0] = testInput("web", "10.96.0.10", 0, "10.1.1.9")
		s.Tell(mirror)
		if !slices.Equal(s.endpointsOf(webKey), []string{"10.1.1.3"}) {
			t.Errorf("endpoints %v", s.endpointsOf(webKey))
		}
	})
}

// TestRegistryBeginsOnlyWithAllServices: a list without a service that exists would cost it its
// rows.
func TestRegistryBeginsOnlyWithAllServices(t *testing.T) {
	up := &messages.RenderUp{Renderer: "nat44"}
	web, node := testInput("web", "10.96.0.10", 1), &messages.NodeChanged{Input: testNodeInput(1)}
	for name, order := range map[string][]any{
		"renderer first":   {up, interfacesWith("192.168.16.1/24"), snapshotOf(1, web)},
		"interfaces last":  {up, snapshotOf(1, web), interfacesWith("192.168.16.1/24")},
		"renderer last":    {interfacesWith("192.168.16.1/24"), snapshotOf(1, web), up},
		"node by itself":   {up, interfacesWith("192.168.16.1/24"), node, snapshotOf(1, web)},
		"change comes too": {up, interfacesWith("192.168.16.1/24"), changedTo(web), node, snapshotOf(1, web)},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, address.Registry, nil, func(s *stage) {
				known := 0
				for _, msg := range order {
					s.Tell(msg)
					switch msg.(type) {
					case *messages.Snapshot, *messages.InterfaceSet:
						known++
					}
					begins := probe.All[*messages.Begin](s.Stage, address.Renderer("nat44"))
					if known < 2 && len(begins) > 0 {
						t.Fatalf("begun after %T: %v", msg, begins)
					}
					for _, b := range begins {
						if diff := cmp.Diff([]string{webKey}, b.GetKeys()); diff != "" {
							t.Errorf("begun without all services:\n%s", diff)
						}
					}
				}
				b := s.begin()
				if b.GetGeneration() == 0 || b.GetNode() == nil || b.GetProvisional() || !slices.Equal(b.GetNodeAddresses(), []string{"192.168.16.1"}) {
					t.Errorf("begin %v", b)
				}
			})
		})
	}
}

// TestRegistryAnswersARenderer: one that has started gets the list with the generation of each
// service, and no service is bothered.
func TestRegistryAnswersARenderer(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")))
		given := s.spec(webKey).GetGeneration()
		s.Forget()
		s.Tell(&messages.RenderUp{Renderer: "nat44"})
		b := s.begin()
		if !slices.Equal(b.GetKeys(), []string{dbKey, webKey}) || len(b.GetGenerations()) != 2 || b.GetGenerations()[1] != given || b.GetGenerations()[0] >= given || b.GetGeneration() < given {
			t.Errorf("begin %v, the last spec is %d", b, given)
		}
		if n := len(s.Heard(address.Renderer("routes"))) + len(s.Heard(address.Service(webKey))); n != 0 {
			t.Errorf("%d messages to others", n)
		}
	})
}

func TestRegistryRenewsTheListWhenTheNodeChanges(t *testing.T) {
	withRegistry(t, func(s *stage) {
		early := interfacesWith("10.9.1.3/31") // the addresses of this node in Kubernetes decide which ones it has
		early.Complete = false
		s.Tell(early)
		if got := s.begin().GetNode().GetAddresses(); slices.Contains(got, "10.9.1.3") {
			t.Errorf("addresses of an incomplete set are used: %v", got)
		}
		s.Tell(interfacesWith("192.168.16.77/24"))
		for _, renderer := range probe.Renderers {
			got := probe.Latest[*messages.Begin](s.Stage, address.Renderer(renderer)).GetNode().GetAddresses()
			if !slices.Contains(got, "192.168.16.77") {
				t.Errorf("%s knows the addresses %v", renderer, got)
			}
		}
		if got := s.spec(webKey).GetNode().GetAddresses(); !slices.Contains(got, "192.168.16.77") {
			t.Errorf("the services know the addresses %v", got)
		}
		s.Forget()
		s.Tell(interfacesWith("192.168.16.77/24"))
		if n := len(s.Heard(address.Service(webKey))) + len(s.Heard(address.Renderer("nat44"))); n != 0 {
			t.Errorf("%d messages about an unchanged node", n)
		}
		in := testNodeInput(12)
		in.Nodes["n2"] = &messages.Node{Name: "n2", Addresses: []string{"192.168.16.2"}}
		s.Tell(&messages.NodeChanged{Input: in})
		if got := s.begin().GetNodeAddresses(); !slices.Equal(got, []string{"192.168.16.1", "192.168.16.2"}) || s.spec(webKey) != nil {
			t.Errorf("renderers know the nodes %v, spec %v", got, s.spec(webKey))
		}
	})
}

func TestRegistryReleasesOnlyTheRetired(t *testing.T) {
	perform(t, address.Registry, nil, func(s *stage) {
		s.Tell(snapshotOf(1, testInput("web", "10.96.0.10", 1)))
		s.Tell(&messages.Retired{Key: webKey, Generation: ^uint64(0)})
		if probe.Latest[*messages.Release](s.Stage, address.Services) != nil {
			t.Error("released although it exists")
		}
		s.Tell(changedTo(goneSince(webKey, 2)), &messages.Retired{Key: webKey, Generation: 1})
		if probe.Latest[*messages.Release](s.Stage, address.Services) != nil {
			t.Error("released for what an earlier generation has said")
		}
		s.Tell(&messages.Retired{Key: webKey, Generation: ^uint64(0)})
		if got := probe.Latest[*messages.Release](s.Stage, address.Services); got.GetKey() != webKey {
			t.Errorf("released %v", got)
		}
		s.Forget()
		s.Tell(&messages.Retired{Key: webKey, Generation: 1}, &messages.PullSpec{Key: "default/other"})
		if got := len(probe.All[*messages.Release](s.Stage, address.Services)); got != 2 || s.spec(webKey) != nil {
			t.Errorf("%d releases of actors without a service, want 2", got)
		}
	})
}

// TestRestartedRegistryGivesNoLess: a restarted registry gives out nothing before it knows what its
// predecessor knew, and then only higher generations.
func TestRestartedRegistryGivesNoLess(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(&messages.PullSpec{Key: webKey}, &messages.RenderUp{Renderer: "nat44"})
		before, begun := s.spec(webKey), s.begin()
		s.Forget()
		s.Kill()
		if s.feed.listened != 2 || probe.Latest[*messages.Resync](s.Stage, address.Interfaces) == nil {
			t.Error("did not ask")
		}
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.9")), &messages.NodeChanged{Input: testNodeInput(11)}, &messages.RenderUp{Renderer: "nat44"})
		s.Tell(snapshotOf(11, testInput("web", "10.96.0.10", 10, "10.1.1.2")))
		if s.spec(webKey) != nil || s.begin() != nil {
			t.Errorf("without VPP's addresses, which the predecessor knew: %v, %v", s.spec(webKey), s.begin())
		}
		s.Tell(interfacesWith("192.168.16.1/24"))
		after := s.spec(webKey)
		if after.GetGeneration() <= before.GetGeneration() || !slices.Equal(after.GetNode().GetAddresses(), before.GetNode().GetAddresses()) {
			t.Errorf("before %v\nafter %v", before, after)
		}
		if got := s.begin(); got.GetGeneration() <= begun.GetGeneration() || !slices.Equal(got.GetKeys(), []string{webKey}) {
			t.Errorf("the renderer was told of %v", got)
		}
		if got := probe.Latest[*messages.Ensure](s.Stage, address.Introspect); !got.GetComplete() || !slices.Equal(got.GetKeys(), []string{webKey}) {
			t.Errorf("introspection was told of %v, want that db went meanwhile", got)
		}
		if got := probe.Latest[*messages.LocalEndpoints](s.Stage, address.Interfaces); !slices.Equal(got.GetAddresses(), []string{"10.1.1.2"}) {
			t.Errorf("local endpoints %v", got)
		}
	})
}

func TestRegistryTellsLocalEndpoints(t *testing.T) {
	withRegistry(t, func(s *stage) {
		for _, step := range []struct {
			name string
			msg  any
			want []string
		}{
			{"an interface set that is known", interfacesWith("192.168.16.1/24"), nil},
			{"a new interfaces actor", &messages.Resync{Sibling: "interfaces"}, []string{"10.1.1.2"}},
			{"a second service has it", changedTo(testInput("db", "10.96.0.11", 10, "10.1.1.2", "10.1.1.3")), []string{"10.1.1.2", "10.1.1.3"}},
			{"the first one drops it", changedTo(testInput("web", "10.96.0.10", 11, "10.1.2.9")), []string{"10.1.1.2", "10.1.1.3"}},
			{"so does the second", changedTo(testInput("db", "10.96.0.11", 12)), []string{}},
			{"an endpoint of another node", changedTo(testInput("db", "10.96.0.11", 13, "10.1.2.7")), nil},
		} {
			s.Forget()
			s.Tell(step.msg)
			s.Run(2 * endpointsDelay)
			got := probe.Latest[*messages.LocalEndpoints](s.Stage, address.Interfaces)
			if (got == nil) != (step.want == nil) || step.want != nil && !slices.Equal(got.GetAddresses(), step.want) {
				t.Errorf("%s: told %v, want %v", step.name, got, step.want)
			}
		}
	})
}

func TestRegistryIgnoresSameContent(t *testing.T) {
	withRegistry(t, func(s *stage) {
		s.Tell(changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.2")))
		if s.spec(webKey) != nil {
			t.Error("the same content is given again because the source counts on")
		}
	})
}

// TestRegistryRecordsChanges: each change of the source has an id in the journal, and its spec says
// so.
func TestRegistryRecordsChanges(t *testing.T) {
	withRegistry(t, func(s *stage) {
		for _, step := range []struct {
			msg  any
			want string
		}{
			{changedTo(testInput("web", "10.96.0.10", 10, "10.1.1.3")), "default/web changed in the source, revision 10 there"},
			{snapshotOf(12, testInput("web", "10.96.0.10", 12, "10.1.1.4")), "default/web changed in the source, revision 12 there"},
			{changedTo(testInput("young", "10.96.0.12", 13)), "default/young new in the source, revision 13 there"},
			{changedTo(goneSince(webKey, 14)), "default/web gone in the source, revision 14 there"},
		} {
			s.Forget()
			s.Tell(step.msg)
			events := probe.All[*messages.Event](s.Stage, address.Journal)
			texts := make([]string, 0, len(events))
			for _, e := range events {
				texts = append(texts, e.GetObject()+" "+e.GetText())
			}
			if !slices.Contains(texts, step.want) {
				t.Errorf("recorded %q, want %q", texts, step.want)
			}
			if spec := s.spec(webKey); spec != nil && (!spec.GetTraced() || events[0].GetCause() != spec.GetGeneration()) {
				t.Errorf("spec %v is not that of %v", spec, events[0])
			}
		}
	})
}

func TestRegistryWithTenThousandServicesSendsOnceToEach(t *testing.T) {
	const n = 10_000
	perform(t, address.Registry, nil, func(s *stage) {
		list := snapshotOf(n)
		for i := range n {
			list.Services = append(list.Services, testInput(fmt.Sprintf("s%05d", i), fmt.Sprintf("10.97.%d.%d", i/250, i%250+1), uint64(i+1)))
		}
		s.Tell(list)
		if got := len(s.Heard(address.Services)); got != 1 {
			t.Errorf("the spawner got %d messages, want one list", got)
		}
		s.Forget()
		for _, in := range list.Services {
			s.System.Send(s.System.PID(address.Registry), &messages.PullSpec{Key: in.GetKey()})
		}
		s.Run(time.Millisecond)
		if n := len(s.Heard(address.Services)); n != 0 {
			t.Errorf("the spawner got %d messages more", n)
		}
	})
}
