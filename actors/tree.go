package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/link"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/actors/render/cnat"
	"github.com/troupe-vpp/troupe/actors/render/nat44"
	"github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/sessions"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/messages"
	vpplink "github.com/troupe-vpp/troupe/vpp/link"
)

// renderers are the renderers of the agent, in the order of the tree. A new renderer is an adapter
// and a line here.
func (d *Deps) renderers() []renderer {
	var all []renderer
	if d.usesNAT44() {
		ip4 := d.NAT44
		ip4.IPv6Elsewhere = d.CNAT != nil
		all = append(all, adapted(nat44.New, ip4))
	}
	if d.CNAT != nil {
		config := *d.CNAT
		config.Services = d.Serving.ServiceCIDRs
		all = append(all, adapted(cnat.New, config))
	}
	all = append(all, adapted(routes.New, routes.Config{Plan: d.Routes, Networks: d.Serving.ServiceCIDRs}))
	if d.Addresses != nil {
		all = append(all, adapted(addresses.New, *d.Addresses))
	}
	return all
}

// usesNAT44 reports whether NAT44 serves IPv4.
func (d *Deps) usesNAT44() bool { return d.CNAT == nil || !d.CNAT.IPv4 }

// renderer is one renderer.
type renderer struct {
	name       string
	givesRoles bool
	actor      func(*render.Config) runtime.Behaviour
	dryRun     func(*messages.Begin, []*messages.ServiceView) []*messages.RenderAck
	remove     func(ctx context.Context, vpp vpplink.Caller, r *render.Removal) error
}

// adapted returns the actor of a kind of object.
func adapted[K render.Key, C any](of func(C) render.Renderer[K], config C) renderer {
	return renderer{
		of(config).Name, of(config).Roles,
		func(driver *render.Config) runtime.Behaviour { return render.New(driver, of(config)) },
		func(begin *messages.Begin, views []*messages.ServiceView) []*messages.RenderAck {
			return render.DryRun(of(config), begin, views)
		},
		of(config).Remove,
	}
}

// DryRun returns the acknowledgements of a dry run on a node, in the order of the renderers, then
// of the views. Only the settings of renderers and services in Deps are used.
func DryRun(d *Deps, node *messages.NodeContext, cluster *messages.NodeInput, views []*messages.ServiceView) (acks [][]*messages.RenderAck) {
	begin := &messages.Begin{Node: node}
	begin.NodeAddresses, begin.PodNetworks = desired.Used(cluster, nil)
	for _, r := range d.renderers() {
		acks = append(acks, r.dryRun(begin, views))
	}
	return acks
}

// CleanUp removes everything from VPP that the renderers have put there. It blocks. The agent must
// have ended.
func CleanUp(ctx context.Context, d *Deps, vpp vpplink.Caller, removal *render.Removal) (err error) {
	for _, r := range d.renderers() {
		if r.remove != nil {
			err = errors.Join(err, r.remove(ctx, vpp, removal))
		}
	}
	return err
}

// Renderers are the names of the renderers, in the order of the tree. A service is in sync when it
// is in each of them.
func (d *Deps) Renderers() []string {
	return names(d.renderers(), func(renderer) bool { return true })
}

// RoleGivers are the names of the renderers that give interfaces their roles.
func (d *Deps) RoleGivers() []string {
	return names(d.renderers(), func(r renderer) bool { return r.givesRoles })
}

// names are the names of some renderers.
func names(all []renderer, of func(renderer) bool) (names []string) {
	for _, r := range all {
		if of(r) {
			names = append(names, r.name)
		}
	}
	return names
}

// tree has the configuration of all actors, made from Deps.
type tree struct {
	*Deps
	names      []string // of renderers
	renderer   *render.Config
	link       *link.Config
	interfaces *interfaces.Config
	sessions   *sessions.Config
	desired    *desired.Config
	external   *external.Config
	health     *health.Config
	status     *status.Config
}

// Tree is the whole troupe below the root actor. Deps must not be modified afterwards.
func Tree(d *Deps) runtime.Spec { return treeOf(d, d.renderers()) }

func treeOf(d *Deps, all []renderer) runtime.Spec {
	t := newTree(d, all)
	dataplane := []runtime.Child{
		t.child("link", "link", runtime.ReactRestart, func() runtime.Behaviour { return link.New(t.link) }),
		t.child("interfaces", "interfaces", runtime.ReactResync, func() runtime.Behaviour { return interfaces.New(t.interfaces) }),
	}
	for _, r := range all {
		dataplane = append(dataplane, t.child(r.name, "renderer", runtime.ReactResync, func() runtime.Behaviour { return r.actor(t.renderer) }))
	}
	// nothing depends on it: any number of failures concerns no other actor
	optional := runtime.Policy{Budget: -1, BackoffMin: 100 * time.Millisecond, BackoffMax: 30 * time.Second}
	upkeep := []runtime.Child{
		t.child("sessions", "sessions", runtime.ReactNone, func() runtime.Behaviour { return sessions.New(t.sessions) }),
	}
	dataplane = append(dataplane, runtime.Child{Name: "upkeep", Spec: runtime.Ordered("upkeep", upkeep, optional), Reaction: runtime.ReactNone})
	services := runtime.Dynamic("services", func(name string) runtime.Spec {
		key := runtime.UnescapeName(name)
		return t.spec("service", func() runtime.Behaviour { return desired.NewService(t.desired, key) })
	}, runtime.Policy{}) // ten thousand services may all fail once
	world := []runtime.Child{
		t.child("nodes", "nodes", runtime.ReactNone, func() runtime.Behaviour { return desired.NewNodes(t.desired) }),
		{Name: "services", Spec: services, Reaction: runtime.ReactNone},
		t.child("registry", "registry", runtime.ReactResync, func() runtime.Behaviour { return desired.NewRegistry(t.desired) }),
	}
	if d.usesNAT44() { // last, because its failures concern no other actor
		world = append(world, t.child("external", "external", runtime.ReactNone, func() runtime.Behaviour { return external.New(t.external) }))
	}
	journal := t.child("journal", "journal", runtime.ReactNone, status.NewJournal)
	journal.Spec.Limit = status.JournalRing
	// The first three only listen. They start before the actors that report to them.
	return runtime.Ordered("root", []runtime.Child{
		journal,
		t.child("introspect", "introspect", runtime.ReactNone, func() runtime.Behaviour { return status.NewIntrospect(t.status) }),
		t.child("healer", "healer", runtime.ReactNone, func() runtime.Behaviour { return health.New(t.health) }),
		{Name: "dataplane", Spec: runtime.Ordered("dataplane", dataplane, runtime.Policy{}), Reaction: runtime.ReactNone},
		{Name: "world", Spec: runtime.Ordered("world", world, runtime.Policy{}), Reaction: runtime.ReactNone},
	}, runtime.Policy{Budget: 20, BackoffMax: time.Second}) // then the process ends, and the kubelet starts it again
}

// child returns an actor in its place in the tree.
func (t *tree) child(name, kind string, reaction runtime.Reaction, make func() runtime.Behaviour) runtime.Child {
	return runtime.Child{Name: name, Spec: t.spec(kind, make), Reaction: reaction}
}

// spec makes the Spec of an actor.
func (t *tree) spec(kind string, make func() runtime.Behaviour) runtime.Spec {
	if t.Wrap == nil {
		return runtime.Spec{Kind: kind, New: make}
	}
	return runtime.Spec{Kind: kind, New: func() runtime.Behaviour { return t.Wrap(kind, make()) }}
}

// newTree distributes Deps among the actors and sets defaults.
func newTree(d *Deps, all []renderer) *tree {
	timing := d.Timing.withDefaults()
	observer := d.Observer
	if observer == nil {
		observer = report.None{}
	}
	attachments := d.Attachments
	if attachments == nil {
		attachments = &interfaces.MemoryStore{}
	}
	t := &tree{Deps: d, names: names(all, func(renderer) bool { return true })}
	roleGivers := names(all, func(r renderer) bool { return r.givesRoles })
	t.renderer = &render.Config{
		VPP: d.Link, Observer: observer, Tick: timing.Retry, Backoff: timing.Backoff,
		DriftCheckLeast: timing.DriftCheckLeast, DriftCheckMost: timing.DriftCheck, DriftCheckOverdue: timing.DriftCheck, HeapReserve: d.HeapReserve, Heap: d.Heap,
	}
	t.link = &link.Config{
		Link: d.Link, Runs: runtime.NewExclusive(d.Park), Receivers: t.withRenderers(address.Interfaces, address.Introspect, address.Sessions),
		Renderers: t.names,
	}
	t.interfaces = &interfaces.Config{
		NodeName: d.NodeName, VPP: d.Link, Hints: d.InterfaceEvents, NAT44: d.NAT44, SNAT: d.SNAT, Attachments: attachments,
		Listening: d.Listening, Saves: runtime.NewExclusive(d.Park), RoleGivers: roleGivers,
		Receivers:  t.withRenderers(address.Nodes, address.Registry, address.Introspect),
		Rediscover: timing.Rediscover, RediscoverSoon: timing.RediscoverSoon, Command: timing.Command, OtherProtocols: d.OtherProtocols,
	}
	housekeeping := d.Sessions
	housekeeping.Min = max(housekeeping.Min, d.NAT44.SessionLimit)
	t.sessions = &sessions.Config{
		NAT44: d.usesNAT44(), CNAT: d.CNAT != nil, Settings: housekeeping, Stats: d.SessionStats, Signs: d.SessionSigns, Observer: d.SessionObserver, VPP: d.Link,
	}
	serving := d.Serving
	serving.Costs = Costs(d.CNAT)
	t.desired = &desired.Config{
		NodeName: d.NodeName, Feed: d.Feed, Serving: serving, Renderers: t.names,
		NodeSync: d.NodeSync, NodeSyncRuns: runtime.NewExclusive(d.Park), Observer: observer, Staleness: timing.Staleness,
	}
	t.external = &external.Config{
		Sources: d.External, Runs: runtime.NewExclusive(d.Park), SNAT: d.SNAT, Renderer: address.Renderer(nat44.Name),
	}
	// a node without the addresses of others is ready
	forwarding := slices.DeleteFunc(slices.Clone(t.names), func(name string) bool { return name == addresses.Name })
	t.health = &health.Config{
		Expected: slices.Concat([]string{"link", "interfaces", "watch", "registry"}, forwarding), Advisory: []string{"sessions", "external"},
		Patience: timing.Patience, Readiness: d.Readiness, Observer: observer, Fatal: d.Fatal,
	}
	if d.Addresses != nil {
		t.health.Advisory = append(t.health.Advisory, addresses.Name)
		t.health.Forwarding = slices.Concat([]string{"link", "interfaces"}, forwarding)
		t.health.Followers = []string{address.Renderer(addresses.Name)}
	}
	if d.NodeSync != nil {
		t.health.Expected = append(t.health.Expected, "nodes")
	}
	t.status = &status.Config{
		NodeName: d.NodeName, Pending: d.Pending, Events: d.Events, HealthChecks: d.HealthChecks, Observer: observer,
	}
	return t
}

// withRenderers returns the paths of all renderers, and others.
func (t *tree) withRenderers(others ...string) (paths []string) {
	for _, name := range t.names {
		paths = append(paths, address.Renderer(name))
	}
	return append(paths, others...)
}
