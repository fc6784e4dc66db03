package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// StatusQuery asks introspection for services. The answer is a StatusPage.
type StatusQuery struct {
	// Key selects one service, "namespace/name"; "" = all.
	Key string
}

// StatusPage answers a StatusQuery. Its values are shared and must not be modified.
type StatusPage struct {
	// Services are ordered by key.
	Services []*messages.ServiceStatus
}

// WorldQuery asks introspection for everything but the services. The answer is a WorldPage.
type WorldQuery struct{}

// WorldPage answers a WorldQuery. Its values are shared and must not be modified; what is not known yet is nil.
type WorldPage struct {
	// Link is the connection to VPP.
	Link *messages.LinkState
	// Interfaces is the last interface set.
	Interfaces *messages.InterfaceSet
	// Cluster is what the nodes agreed on.
	Cluster *messages.ClusterState
	// Node is what Kubernetes says of the nodes and pods.
	Node *messages.NodeInput
	// Verified is the last result of each renderer's comparison with VPP, ordered by renderer.
	Verified []*messages.Verified
}

// introspect keeps what operators look at, so that looking never enters another actor. It is told by everybody else; a restarted one asks
// for repetition.
type introspect struct {
	deps     *Deps
	services map[string]*messages.ServiceStatus
	world    WorldPage
	verified map[string]*messages.Verified
	problems int // of services
	counted  int // problems that the observer knows of
	herald   *herald
	suspects suspects
	doubt    doubt // whether something was missed
}

// suspectsTick asks those of whom something is missing.
type suspectsTick struct{}

func newIntrospect(d *Deps) runtime.Behaviour {
	return &introspect{deps: d, herald: newHerald(d), services: map[string]*messages.ServiceStatus{}, verified: map[string]*messages.Verified{}, suspects: newSuspects()}
}

// Start satisfies runtime.Behaviour.
func (i *introspect) Start(c *runtime.Context) {
	if c.Incarnation() > 1 { // everybody who speaks seldom is asked to repeat itself
		c.Send(c.PID(PathRegistry), &messages.Resync{Sibling: "introspect", Incarnation: c.Incarnation()})
	}
	c.After(i.deps.Timing.Digest, &suspectsTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour.
func (*introspect) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (i *introspect) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.ServiceStatus:
		i.status(c, m)
	case *messages.Ensure:
		i.drop(c, m)
	case *messages.Digest:
		if i.doubt.persists(difference(i.suspects.digest(), m)) {
			c.Send(c.PID(PathRegistry), &messages.Pull{Incarnation: c.Incarnation()})
		}
	case *suspectsTick:
		c.After(i.deps.Timing.Digest, &suspectsTick{})
		i.interrogate(c)
	case *messages.Fault:
		i.herald.fault(m)
	case *messages.LinkState:
		i.world.Link = m
	case *messages.InterfaceSet:
		i.world.Interfaces = m
	case *messages.ClusterState:
		i.world.Cluster = m
	case *messages.NodeChanged:
		i.world.Node = m.GetInput()
		i.countProblems()
	case *messages.Verified:
		i.verified[m.GetRenderer()] = m
	case *StatusQuery:
		c.Reply(i.page(m))
	case *WorldQuery:
		page := i.world
		for _, name := range slices.Sorted(maps.Keys(i.verified)) {
			page.Verified = append(page.Verified, i.verified[name])
		}
		c.Reply(&page)
	}
}

// interrogate asks some of those of whom something is missing.
func (i *introspect) interrogate(c *runtime.Context) {
	last := func(key string) *messages.ServiceStatus { return i.services[key] }
	for _, key := range i.suspects.next(last, len(i.deps.renderers()), c.Now(), i.deps.Timing.Digest) {
		c.Send(c.PID(PathService(key)), &messages.Resync{Sibling: "introspect", Incarnation: c.Incarnation()})
	}
}

func (i *introspect) status(c *runtime.Context, m *messages.ServiceStatus) {
	if m.GetGeneration() < i.services[m.GetKey()].GetGeneration() || i.suspects.ended(m) {
		return // overtaken
	}
	i.problems -= len(i.services[m.GetKey()].GetErrors())
	if m.GetGone() {
		i.suspects.leave(m.GetKey(), m.GetGeneration())
		delete(i.services, m.GetKey())
	} else {
		i.suspects.note(m.GetKey(), m.GetGeneration())
		i.suspects.watch(m.GetKey())
		i.services[m.GetKey()] = m
		i.problems += len(m.GetErrors())
	}
	i.countProblems()
	if i.deps.Lag != nil {
		i.deps.Lag.set(m.GetKey(), i.waits(m), c.Now())
	}
	i.herald.status(m)
}

// waits reports whether a renderer has not carried out what a service wants now. What VPP refused has been carried out as far as it goes.
func (i *introspect) waits(m *messages.ServiceStatus) bool {
	if m.GetGone() {
		return false
	}
	for _, ack := range m.GetRenders() {
		if ack.GetState() == messages.RenderState_RENDER_PENDING {
			return true
		}
	}
	return len(m.GetRenders()) < len(i.deps.renderers())
}

// drop forgets the services that are not in a complete list: their actors may have ended without a last word.
func (i *introspect) drop(c *runtime.Context, m *messages.Ensure) {
	if !m.GetComplete() {
		return
	}
	exist := make(map[string]bool, len(m.GetKeys()))
	for _, key := range m.GetKeys() {
		exist[key] = true
	}
	for key, s := range i.services {
		if !exist[key] {
			i.problems -= len(s.GetErrors())
			delete(i.services, key)
		}
	}
	i.countProblems()
	if i.deps.Lag != nil {
		i.deps.Lag.keep(exist)
	}
	i.herald.exist(exist, i.services)
	i.suspects.take(m)
}

// countProblems tells the number of problems when it changes: those of services, and those of everything else, files that cannot be read
// included.
func (i *introspect) countProblems() {
	if n := i.problems + len(i.world.Node.GetErrors()); i.deps.Observer != nil && n != i.counted {
		i.counted = n
		i.deps.Observer.InputErrors(n)
	}
}

func (i *introspect) page(q *StatusQuery) *StatusPage {
	if q.Key != "" {
		if s := i.services[q.Key]; s != nil {
			return &StatusPage{Services: []*messages.ServiceStatus{s}}
		}
		return &StatusPage{}
	}
	page := &StatusPage{Services: slices.Collect(maps.Values(i.services))}
	slices.SortFunc(page.Services, func(a, b *messages.ServiceStatus) int { return strings.Compare(a.GetKey(), b.GetKey()) })
	return page
}
