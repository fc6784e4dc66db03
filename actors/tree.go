package actors

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// Renderers are the names of the renderers, in the order of the tree. A service is in sync when it is in each of them.
func Renderers() []string { return []string{"nat44", "routes"} }

// renderers are those of this agent.
func (*Deps) renderers() []string { return Renderers() }

// tellRenderers sends the same to every renderer.
func (d *Deps) tellRenderers(c *runtime.Context, msg any) {
	for _, name := range d.renderers() {
		c.Send(c.PID(PathRenderer(name)), msg)
	}
}

// roleGivers are the renderers that give interfaces their roles.
func (*Deps) roleGivers() []string { return []string{"nat44"} }

// Tree is the whole troupe below the root actor. Deps must not be modified afterwards.
func Tree(d *Deps) runtime.Spec {
	d.prepare()
	dataplane := runtime.Ordered("dataplane", []runtime.Child{
		{Name: "link", Spec: d.actor("link", func() runtime.Behaviour { return newLink(d) }), Reaction: runtime.ReactRestart},
		{Name: "interfaces", Spec: d.actor("interfaces", func() runtime.Behaviour { return newInterfaces(d) }), Reaction: runtime.ReactResync},
		{Name: "nat44", Spec: d.actor("renderer", func() runtime.Behaviour { return newRenderer(d) }), Reaction: runtime.ReactResync},
		{Name: "routes", Spec: d.actor("routes", func() runtime.Behaviour { return newRefuser(d) }), Reaction: runtime.ReactResync},
		{Name: "audit", Spec: d.actor("audit", func() runtime.Behaviour { return newAudit(d) }), Reaction: runtime.ReactNone},
		{Name: "upkeep", Spec: runtime.Ordered("upkeep", []runtime.Child{
			{Name: "sessions", Spec: d.actor("sessions", func() runtime.Behaviour { return newSessionKeeper(d) }), Reaction: runtime.ReactNone},
		}, patient()), Reaction: runtime.ReactNone},
	}, workers())
	services := runtime.Dynamic("services", func(name string) runtime.Spec {
		key := runtime.UnescapeName(name)
		return d.actor("service", func() runtime.Behaviour { return newService(d, key) })
	}, servicePolicy())
	world := runtime.Ordered("world", []runtime.Child{
		{Name: "registry", Spec: d.actor("registry", func() runtime.Behaviour { return newRegistry(d) }), Reaction: runtime.ReactRestart},
		{Name: "nodes", Spec: d.actor("nodes", func() runtime.Behaviour { return newNodes(d) }), Reaction: runtime.ReactNone},
		{Name: "services", Spec: services, Reaction: runtime.ReactNone},
		{Name: "watch", Spec: d.actor("watch", func() runtime.Behaviour { return newWatch(d) }), Reaction: runtime.ReactResync},
		// Nobody comes behind it, because its failures concern nobody.
		{Name: "external", Spec: d.actor("external", func() runtime.Behaviour { return newExternal(d) }), Reaction: runtime.ReactNone},
	}, workers())
	// The first three only listen; they come up before anybody has something to tell them.
	return runtime.Ordered("root", []runtime.Child{
		{Name: "journal", Spec: limited(d.actor("journal", newJournal), journalRing), Reaction: runtime.ReactNone},
		{Name: "introspect", Spec: d.actor("introspect", func() runtime.Behaviour { return newIntrospect(d) }), Reaction: runtime.ReactNone},
		{Name: "healer", Spec: d.actor("healer", func() runtime.Behaviour { return &healer{deps: d} }), Reaction: runtime.ReactNone},
		{Name: "dataplane", Spec: dataplane, Reaction: runtime.ReactNone},
		{Name: "world", Spec: world, Reaction: runtime.ReactNone},
	}, rootPolicy())
}

// prepare completes what the bootstrap has left out.
func (d *Deps) prepare() {
	d.Timing = d.Timing.withDefaults()
	if d.Attachments == nil {
		d.Attachments = &memoryStore{}
	}
	for _, l := range []*lane{&d.lanes.source, &d.lanes.nodes, &d.lanes.link, &d.lanes.attachments, &d.lanes.external} {
		*l = newLane(d.Park)
	}
}

// limited lets so many messages wait for an actor at most.
func limited(s runtime.Spec, most int) runtime.Spec {
	s.Limit = most
	return s
}

// actor makes the Spec of one of ours.
func (d *Deps) actor(kind string, make func() runtime.Behaviour) runtime.Spec {
	if d.wrap == nil {
		return runtime.Spec{Kind: kind, New: make}
	}
	return runtime.Spec{Kind: kind, New: func() runtime.Behaviour { return d.wrap(kind, make()) }}
}

// workers is the policy of the two ordered groups: fast restarts, then patience.
func workers() runtime.Policy {
	return runtime.Policy{
		Budget: 10, Window: 10 * time.Second, BackoffMin: time.Millisecond, BackoffMax: 500 * time.Millisecond, Jitter: 0.2,
		HealthyAfter: time.Minute,
	}
}

// patient is the policy of those whom nobody needs: their failures concern nobody else, however many there are.
func patient() runtime.Policy {
	return runtime.Policy{
		Budget: -1, Window: 10 * time.Second, BackoffMin: 100 * time.Millisecond, BackoffMax: 30 * time.Second, Jitter: 0.2, HealthyAfter: time.Minute,
	}
}

// rootPolicy gives up after 20 failures in 10 s: the process ends, the kubelet starts it again, VPP goes on forwarding meanwhile.
func rootPolicy() runtime.Policy {
	return runtime.Policy{
		Budget: 20, Window: 10 * time.Second, BackoffMin: time.Millisecond, BackoffMax: time.Second, Jitter: 0.2, HealthyAfter: time.Minute,
	}
}

// servicePolicy puts a service aside that crashes three times in five seconds; its rows stay in VPP, the others feel nothing. The budget is
// no limit in practice: ten thousand services may all fail once.
func servicePolicy() runtime.Policy {
	return runtime.Policy{
		Budget: 1 << 20, Window: 10 * time.Second, BackoffMin: time.Millisecond, BackoffMax: 30 * time.Second, Jitter: 0.2,
		HealthyAfter: time.Minute, QuarantineAfter: 3, QuarantineWindow: 5 * time.Second, QuarantineFor: 30 * time.Second,
	}
}
