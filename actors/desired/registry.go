package desired

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// generationBits separates the generations of incarnations: one that gave out a million specs a
// second would need twelve days to reach the next.
const generationBits = 40

// registry holds the input of every service with a generation, and knows which services exist. It
// does no I/O. A restarted registry gets everything from the source and hands it out again, which
// changes nothing for services that have it already.
type registry struct {
	report.Health
	watch  watch
	config *Config

	// Services: changed by changed and by specs.go.
	entries    map[string]*entry
	members    []string        // keys of entries, ordered; nil = outdated; shared with messages
	budget     *service.Budget // which services their namespaces have room for
	generation uint64          // given out last

	// The source: changed by Receive, serviceChanged, snapshot and mirror.
	complete bool   // a complete snapshot has been taken
	mirrored bool   // before that, a snapshot of the local mirror was taken
	newest   uint64 // highest generation of the source that has been seen

	// The nodes: changed by nodeChanged, interfacesChanged and updateContext.
	node    *messages.NodeInput
	vpp     []string // VPP addresses of this node, "ip/len"
	found   bool     // an interface set has come
	looked  bool     // a complete one has, and so vpp is known
	context *messages.NodeContext

	// Addresses of the nodes themselves: changed by Receive and lookAround; shared with
	// messages.
	peers                  *messages.ClusterState // nil = not known
	addresses, podNetworks []string

	// Local endpoints: changed by endpoints.go.
	hosted    map[string][]string // addresses by service; services without any are left out
	endpoints *messages.LocalEndpoints
	stale     bool // endpoints must be computed again
}

// entry is one service.
type entry struct {
	spec    *messages.ServiceSpec
	started bool // its actor exists, because it has asked for its spec
}

// NewRegistry returns the actor.
func NewRegistry(config *Config) runtime.Behaviour {
	return &registry{
		Health: report.Health{Part: "registry"}, watch: watch{Health: report.Health{Part: "watch"}, source: kube.Health{OK: true}}, config: config, entries: map[string]*entry{},
		hosted: map[string][]string{}, budget: service.NewBudget(config.Serving.Limits),
	}
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, because incarnations do.
func (r *registry) Start(c *runtime.Context) {
	r.generation = (c.Incarnation()-1)<<generationBits + 1 // never 0, which in a Begin means none
	r.report(c)
	r.reportWatch(c)
	r.Health.Start(c)
	r.watch.leave = r.config.Feed.Listen(postSink{c.Post()})
	for _, path := range []string{address.Interfaces, address.Nodes} {
		c.Send(c.PID(path), &messages.Resync{Sibling: "registry", Incarnation: c.Incarnation()})
	}
	c.Ready()
}

func (r *registry) Stop(*runtime.Context) {
	if r.watch.leave != nil {
		r.watch.leave()
	}
}

func (r *registry) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Snapshot:
		r.snapshot(c, m)
		r.reportWatch(c)
	case *messages.Pull:
		r.config.Feed.Refresh()
	case *kube.Health:
		r.watch.source = *m
		r.reportWatch(c)
	case *messages.ServiceChanged:
		r.serviceChanged(c, m.GetInput())
	case *messages.NodeChanged:
		if r.known() && m.GetInput().GetGeneration() > r.newest {
			// nodes have their place in the order of all changes
			r.newest = m.GetInput().GetGeneration()
			r.nodeChanged(c, m.GetInput())
		}
	case *messages.InterfaceSet:
		r.interfacesChanged(c, m)
	case *messages.ClusterState:
		if r.peers = m; r.lookAround() && r.context != nil {
			r.announceAnew(c)
		}
	case *messages.PullSpec:
		r.pulled(c, m.GetKey())
	case *messages.Retired:
		r.retired(c, m)
	case *messages.RenderUp:
		r.announceTo(c, m.GetRenderer())
	case *messages.Resync:
		r.resync(c, m)
	case *endpointsTick:
		r.computeEndpoints(c)
	case *report.Ask:
		r.Repeat(c)
		r.watch.Repeat(c)
	case *report.Beat:
		r.reportWatch(c) // the state becomes too old without a message
		r.watch.Repeat(c)
		r.Beat(c)
	}
}

// known reports whether the list of services is known: from the source, or from the local mirror of
// an earlier process.
func (r *registry) known() bool { return r.complete || r.mirrored }

// serviceChanged takes one change of the source, except changes before the first snapshot and late
// ones.
func (r *registry) serviceChanged(c *runtime.Context, in *messages.ServiceInput) {
	if !r.known() || in.GetGeneration() <= r.newest {
		return
	}
	r.newest = in.GetGeneration()
	what := r.changed(c, in, traced)
	r.record(c, in, what, messages.Method_METHOD_UPDATE)
	if what == created { // otherwise its actor exists, or is being restarted by its supervisor
		c.Send(c.PID(address.Services), &messages.Ensure{Keys: []string{in.GetKey()}})
	}
}

// record writes a change of a service into the journal, under the generation of its new spec.
func (r *registry) record(c *runtime.Context, in *messages.ServiceInput, what change, method messages.Method) {
	if what == unchanged {
		return
	}
	report.Event(c, &messages.Event{
		Kind: "service", Object: in.GetKey(), Cause: r.entries[in.GetKey()].spec.GetGeneration(), Method: method,
		Text: fmt.Sprintf("%s in the source, revision %d there", what, in.GetGeneration()),
	})
}

// snapshot takes a list of everything. A service that is missing in a complete list is gone; a list
// of the local mirror only adds services. A complete list that is older than a change seen before
// is ignored; the registry asks for the first one again.
func (r *registry) snapshot(c *runtime.Context, m *messages.Snapshot) {
	if !m.GetComplete() {
		r.mirror(c, m)
		return
	}
	if m.GetGeneration() < r.newest {
		if !r.complete {
			r.config.Feed.Refresh()
		}
		return
	}
	first := !r.complete
	r.newest = m.GetGeneration()
	// The node comes first: the specs below carry it, and would be made twice otherwise.
	if m.GetNode() != nil && m.GetNode() != r.node {
		r.nodeChanged(c, m.GetNode())
	}
	shown := make(map[string]bool, len(m.GetServices()))
	for _, in := range m.GetServices() {
		shown[in.GetKey()] = true
		if e := r.entries[in.GetKey()]; e == nil || e.spec.GetInput() != in {
			// nearly all are unchanged and have been measured
			r.measure(in)
		}
	}
	for key := range r.entries {
		if !shown[key] {
			r.measure(&messages.ServiceInput{Key: key})
		}
	}
	moved := r.budget.Settle()
	for _, in := range m.GetServices() {
		r.listed(c, in, first)
	}
	for _, key := range r.keys() { // in their order, so that a simulation can be repeated
		if !shown[key] {
			r.listed(c, &messages.ServiceInput{Key: key, Generation: m.GetGeneration()}, first)
		}
	}
	r.moved(c, moved, untraced)
	// only after all services: a Begin with half of them would remove the rows of the others
	r.complete = true
	if first {
		r.mirrored = false
		r.began(c, fmt.Sprintf("snapshot of %d services taken", len(r.entries)), m)
	}
	r.ensure(c)
}

// listed takes the input of one service from a list. Changes in a later list than the first are
// recorded.
func (r *registry) listed(c *runtime.Context, in *messages.ServiceInput, first bool) {
	if first {
		r.changed(c, in, untraced)
	} else {
		r.record(c, in, r.changed(c, in, traced), messages.Method_METHOD_UPSTREAM_RESYNC)
	}
}

// mirror takes the snapshot of the local mirror, unless the source has delivered.
func (r *registry) mirror(c *runtime.Context, m *messages.Snapshot) {
	if r.complete {
		return
	}
	if m.GetNode() != nil {
		r.nodeChanged(c, m.GetNode())
	}
	for _, in := range m.GetServices() {
		r.measure(in)
	}
	moved := r.budget.Settle()
	for _, in := range m.GetServices() {
		r.changed(c, in, untraced)
	}
	r.moved(c, moved, untraced)
	if !r.mirrored {
		r.mirrored = true
		r.began(c, fmt.Sprintf("%d services taken from the local mirror; nothing is removed before the source delivers", len(r.entries)), m)
	}
	r.ensure(c)
}

// began announces the services for the first time.
func (r *registry) began(c *runtime.Context, text string, m *messages.Snapshot) {
	r.report(c)
	r.computeEndpoints(c) // also when there are no endpoints: a predecessor may have announced some
	r.announce(c)
	report.Event(c, &messages.Event{
		Kind: "resync", Text: fmt.Sprintf("%s, revision %d there", text, m.GetGeneration()), Method: messages.Method_METHOD_UPSTREAM_RESYNC,
	})
}

// report reports what the registry lacks. Without a Node object nothing can be served. If
// Kubernetes deletes the object later, its last state stays in use.
func (r *registry) report(c *runtime.Context) {
	ok, reason, missing := true, "", "Kubernetes has no node "+r.config.NodeName
	switch {
	case !r.known():
		ok, reason = false, "no complete snapshot yet"
	case r.node.GetSelf() == nil && r.context == nil:
		ok, reason = false, missing+": --node-name must be the name of the Node object of this node"
	case r.node.GetSelf() == nil:
		reason = missing + " any more"
	case !r.complete:
		reason = report.FromMirror
	}
	if !r.Current(ok, reason) {
		r.Report(c, ok, reason, 0)
	}
}

// change is what a new input means for a service, as the journal says it.
type change string

const (
	unchanged change = ""
	created   change = "new" // the service needs an actor
	updated   change = "changed"
	deleted   change = "gone"
)

// changed takes the latest input of one service. An input that differs gives the service a new
// spec.
func (r *registry) changed(c *runtime.Context, in *messages.ServiceInput, t trace) change {
	key, gone := in.GetKey(), in.GetService() == nil
	e, what := r.entries[key], updated
	switch {
	case e == nil && gone:
		return unchanged // slices of a service that does not exist
	case e == nil:
		e, what = &entry{}, created
		r.entries[key], r.members = e, nil
	case sameInput(e.spec.GetInput(), in):
		return unchanged
	case gone: // slices that outlive their service for a moment serve nothing
		what = deleted
		in = &messages.ServiceInput{Key: key, Generation: in.GetGeneration()}
	}
	r.host(c, in)
	r.measure(in)
	moved := r.budget.Settle()
	r.give(c, e, in, t)
	r.moved(c, moved, t)
	return what
}

// sameInput reports whether two inputs differ in nothing except their generation. The source mostly
// delivers the same state as the local mirror before it, in different messages, and such inputs end
// here.
func sameInput(a, b *messages.ServiceInput) bool {
	if a == b || a.GetService() == nil && b.GetService() == nil {
		return true
	}
	return proto.Equal(a.GetService(), b.GetService()) &&
		slices.EqualFunc(a.GetSlices(), b.GetSlices(), func(x, y *messages.EndpointSlice) bool { return x == y || proto.Equal(x, y) }) &&
		slices.EqualFunc(a.GetErrors(), b.GetErrors(), func(x, y *messages.ObjectError) bool { return proto.Equal(x, y) })
}

// nodeChanged takes the nodes in Kubernetes.
func (r *registry) nodeChanged(c *runtime.Context, in *messages.NodeInput) {
	samePool := func(a, b *messages.AddressPool) bool { return proto.Equal(a, b) }
	moved, before := !slices.Equal(r.node.GetServiceCidrs(), in.GetServiceCidrs()) || !slices.EqualFunc(r.node.GetAddressPools(), in.GetAddressPools(), samePool), r.context
	r.node = in
	r.tellNode(c)
	r.report(c)
	moved = r.lookAround() || moved
	if !r.updateContext(c) && moved && before != nil {
		r.announceAnew(c)
	}
}

// lookAround computes the addresses and networks of the nodes, and reports whether they have
// changed.
func (r *registry) lookAround() bool {
	addresses, pods := r.addresses, r.podNetworks
	r.addresses, r.podNetworks = Used(r.node, r.peers)
	return !slices.Equal(r.addresses, addresses) || !slices.Equal(r.podNetworks, pods)
}

// announceAnew sends every renderer a list with a new generation, because something besides the
// services has changed. A renderer ignores a list that is not newer.
func (r *registry) announceAnew(c *runtime.Context) {
	r.generation++
	r.announce(c)
}

// interfacesChanged takes the VPP addresses of this node. They may be others while the set is not
// complete, because the addresses of this node in Kubernetes decide. The first set is answered with
// the local endpoints.
func (r *registry) interfacesChanged(c *runtime.Context, set *messages.InterfaceSet) {
	if !r.found {
		r.found = true
		r.tellEndpoints(c)
	}
	if !set.GetComplete() {
		return
	}
	first := !r.looked
	r.vpp, r.looked = set.GetNodeAddresses(), true
	if !r.updateContext(c) && first {
		r.announce(c)
	}
}

// updateContext gives every service a new spec if the node has changed in a way that serving
// depends on, and reports whether it has.
func (r *registry) updateContext(c *runtime.Context) bool {
	if r.node.GetSelf() == nil || c.Incarnation() > 1 && !r.looked {
		return false // a restarted registry must not give out fewer addresses than its predecessor
	}
	next := NodeContext(r.node.GetSelf(), r.vpp)
	if r.context != nil && proto.Equal(next.GetNode(), r.context.GetNode()) && slices.Equal(next.GetAddresses(), r.context.GetAddresses()) {
		return false
	}
	r.generation++
	next.Generation = r.generation
	r.context = next
	for _, key := range r.keys() {
		// node ports are frontends at each address of the node
		r.measure(r.entries[key].spec.GetInput())
	}
	r.budget.Settle()
	for _, key := range r.keys() {
		r.give(c, r.entries[key], r.entries[key].spec.GetInput(), untraced)
	}
	r.announce(c)
	return true
}

// keys are the services whose actors must exist, including deleted ones that have not retired yet.
func (r *registry) keys() []string {
	if r.members == nil {
		r.members = slices.Sorted(maps.Keys(r.entries))
	}
	return r.members
}

// resync sends an actor that has just started what it needs of the registry.
func (r *registry) resync(c *runtime.Context, m *messages.Resync) {
	switch m.GetSibling() {
	case "services": // it has no children
		r.ensure(c)
		return
	case "introspect": // introspection knows neither the list of services nor their status
		r.ensure(c)
		for _, key := range r.keys() { // each repeats its status
			c.Send(c.PID(address.Service(key)), m)
		}
	case "interfaces":
		r.tellEndpoints(c)
	}
	if r.node != nil {
		r.tellNode(c)
	}
}

func (r *registry) Inspect() any {
	return map[string]any{
		"services": len(r.entries), "generation": r.generation, "complete": r.complete, "fromTheMirror": r.mirrored && !r.complete,
		"vppAddresses": r.vpp, "addresses": r.addresses, "podNetworks": r.podNetworks,
	}
}
