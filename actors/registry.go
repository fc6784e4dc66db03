package actors

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// registry holds what the node should serve: the input of every service with a generation, and which services exist at all. It does no
// I/O; a restarted registry pulls everything from the watch and hands it out again, which changes nothing for who already has it.
type registry struct {
	reporter
	deps       *Deps
	complete   bool // a complete snapshot has been taken
	generation uint64
	entries    map[string]*entry
	sources    map[string]uint64 // generations of the source, for the comparison with its digest
	node       *messages.NodeInput
	vpp        []string // VPP addresses of this node, "ip/len"
	looked     bool     // VPP's interfaces are known, so vpp is what it is
	context    *messages.NodeContext
	epochs     map[string]uint64 // of renderers that are up
	doubts     int               // digests in a row that differed
	endpoints  *messages.LocalEndpoints
	stale      bool // endpoints must be computed again
}

// entry is one service.
type entry struct {
	spec   *messages.ServiceSpec
	pulled bool // its actor exists: it has asked
	acked  bool
	sent   time.Time
}

// registryTick repeats what was not acknowledged.
type registryTick struct{}

// endpointsTick computes the local endpoints, a little after the first change of several.
type endpointsTick struct{}

// registryName is how the registry introduces itself in a Resync.
const registryName = "registry"

// endpointsDelay gathers changes of local endpoints: they only matter for the backend set.
const endpointsDelay = 50 * time.Millisecond

func newRegistry(d *Deps) runtime.Behaviour {
	return &registry{
		reporter: reporter{part: "registry"}, deps: d,
		entries: map[string]*entry{}, sources: map[string]uint64{}, epochs: map[string]uint64{},
	}
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, too, because the clock does.
func (r *registry) Start(c *runtime.Context) {
	r.generation = uint64(c.Now().UnixNano())
	r.report(c, false, "no complete snapshot yet", 0)
	r.pull(c)
	r.askInterfaces(c)
	for _, renderer := range r.deps.renderers() {
		c.Send(c.PID(PathRenderer(renderer)), &messages.Resync{Sibling: registryName, Incarnation: c.Incarnation()})
	}
	c.After(r.deps.Timing.Retry, &registryTick{})
	c.Ready()
}

// Stop satisfies runtime.Behaviour.
func (*registry) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (r *registry) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Snapshot:
		r.snapshot(c, m)
	case *messages.ServiceChanged:
		if r.complete { // before, the snapshot will bring it
			r.changed(c, m.GetInput())
		}
	case *messages.NodeChanged:
		r.nodeChanged(c, m.GetInput())
	case *messages.InterfaceSet:
		r.interfacesChanged(c, m)
	case *messages.Digest:
		r.compare(c, m)
	case *messages.PullSpec:
		r.pulled(c, m.GetKey())
	case *messages.Have:
		if e := r.entries[m.GetKey()]; e != nil && m.GetGeneration() >= e.spec.GetGeneration() {
			e.acked = true
		}
	case *messages.Retired:
		r.retired(c, m)
	case *messages.RenderUp:
		r.epochs[m.GetRenderer()] = m.GetEpoch()
		r.begin(c, m.GetRenderer())
	case *messages.Missing:
		r.missing(c, m)
	case *messages.Resync: // introspection was restarted
		for _, key := range r.keys() {
			c.Send(c.PID(PathService(key)), m)
		}
	case *registryTick:
		r.tick(c)
	case *endpointsTick:
		r.computeEndpoints(c)
	}
}

func (r *registry) pull(c *runtime.Context) {
	c.Send(c.PID(PathWatch), &messages.Pull{Incarnation: c.Incarnation()})
}

// snapshot replaces everything: what is not in it is gone.
func (r *registry) snapshot(c *runtime.Context, m *messages.Snapshot) {
	if !m.GetComplete() {
		return
	}
	first := !r.complete
	r.complete = true
	if m.GetNode() != nil {
		r.nodeChanged(c, m.GetNode())
	}
	present := make(map[string]bool, len(m.GetServices()))
	for _, in := range m.GetServices() {
		present[in.GetKey()] = true
		r.changed(c, in)
	}
	for _, key := range slices.Sorted(maps.Keys(r.sources)) {
		if !present[key] {
			r.changed(c, &messages.ServiceInput{Key: key})
		}
	}
	c.Send(c.PID(PathServices), &messages.Ensure{Keys: r.keys(), Complete: true})
	if first {
		r.report(c, true, "", 0)
		r.beginAll(c)
		record(c, &messages.Event{Kind: "resync", Text: fmt.Sprintf("snapshot of %d services taken", len(r.entries)), Cause: m.GetGeneration()})
	}
}

// changed takes the latest input of one service.
func (r *registry) changed(c *runtime.Context, in *messages.ServiceInput) {
	key, gone := in.GetKey(), in.GetService() == nil
	if gone && len(in.GetSlices()) == 0 {
		delete(r.sources, key)
	} else {
		r.sources[key] = in.GetGeneration()
	}
	e := r.entries[key]
	switch {
	case e == nil && gone:
		return // slices of a service that is not there
	case e == nil:
		e = &entry{}
		r.entries[key] = e
		c.Send(c.PID(PathServices), &messages.Ensure{Keys: []string{key}})
	case sameInput(e.spec.GetInput(), in):
		return
	}
	if gone {
		in = &messages.ServiceInput{Key: key, Generation: in.GetGeneration()}
	}
	r.staleEndpoints(c)
	r.give(c, e, in)
}

// sameInput reports whether the service would see no difference, whatever generation the source counts.
func sameInput(a, b *messages.ServiceInput) bool {
	if a.GetService() == nil && b.GetService() == nil {
		return true
	}
	return proto.Equal(a.GetService(), b.GetService()) &&
		slices.EqualFunc(a.GetSlices(), b.GetSlices(), func(x, y *messages.EndpointSlice) bool { return proto.Equal(x, y) }) &&
		slices.EqualFunc(a.GetErrors(), b.GetErrors(), func(x, y *messages.ObjectError) bool { return proto.Equal(x, y) })
}

// give hands a new spec to the service; until the node is known it only keeps it.
func (r *registry) give(c *runtime.Context, e *entry, in *messages.ServiceInput) {
	r.generation++
	e.spec = &messages.ServiceSpec{Input: in, Node: r.context, Generation: r.generation, Epochs: maps.Clone(r.epochs)}
	e.acked = false
	r.send(c, e)
}

func (r *registry) send(c *runtime.Context, e *entry) {
	e.sent = c.Now()
	if r.context == nil {
		return // nothing is local and nothing has an address before the node is known
	}
	if !e.pulled && c.Incarnation() == 1 {
		return // its actor is being spawned and will ask; a restarted registry can not know who is there
	}
	c.Send(c.PID(PathService(e.spec.GetInput().GetKey())), e.spec)
}

func (r *registry) pulled(c *runtime.Context, key string) {
	if e := r.entries[key]; e != nil {
		e.pulled = true
		if !maps.Equal(e.spec.GetEpochs(), r.epochs) {
			e.spec = &messages.ServiceSpec{
				Input: e.spec.GetInput(), Node: e.spec.GetNode(), Generation: e.spec.GetGeneration(), Epochs: maps.Clone(r.epochs),
			}
		}
		r.send(c, e)
	} else if r.complete {
		c.Send(c.PID(PathServices), &messages.Release{Key: key})
	}
}

func (r *registry) retired(c *runtime.Context, m *messages.Retired) {
	e := r.entries[m.GetKey()]
	if e != nil && (e.spec.GetInput().GetService() != nil || m.GetGeneration() < e.spec.GetGeneration()) {
		return // it is wanted again
	}
	delete(r.entries, m.GetKey())
	c.Send(c.PID(PathServices), &messages.Release{Key: m.GetKey()})
}

// nodeChanged takes what Kubernetes says of the nodes.
func (r *registry) nodeChanged(c *runtime.Context, in *messages.NodeInput) {
	r.node = in
	r.updateContext(c)
}

// askInterfaces has the interface set repeated: it has the VPP addresses of this node.
func (*registry) askInterfaces(c *runtime.Context) {
	c.Send(c.PID(PathInterfaces), &messages.Resync{Sibling: registryName, Incarnation: c.Incarnation()})
}

func (r *registry) interfacesChanged(c *runtime.Context, set *messages.InterfaceSet) {
	first := !r.looked
	r.vpp, r.looked = set.GetNodeAddresses(), true
	r.updateContext(c)
	if first {
		r.beginAll(c)
	}
}

// beginAll begins the epochs of all renderers that are up.
func (r *registry) beginAll(c *runtime.Context) {
	for _, renderer := range slices.Sorted(maps.Keys(r.epochs)) {
		r.begin(c, renderer)
	}
}

// updateContext tells every service when something of the node changed that serving depends on.
func (r *registry) updateContext(c *runtime.Context) {
	if r.node.GetSelf() == nil || c.Incarnation() > 1 && !r.looked {
		return // a restarted registry must not give out less than its predecessor knew
	}
	next := nodeContext(r.node.GetSelf(), r.vpp)
	if r.context != nil && proto.Equal(next.GetNode(), r.context.GetNode()) && slices.Equal(next.GetAddresses(), r.context.GetAddresses()) {
		return
	}
	first := r.context == nil
	next.Generation = r.context.GetGeneration() + 1
	r.context = next
	r.staleEndpoints(c)
	for _, key := range slices.Sorted(maps.Keys(r.entries)) {
		r.give(c, r.entries[key], r.entries[key].spec.GetInput())
	}
	if first {
		r.beginAll(c)
		return
	}
	for _, renderer := range slices.Sorted(maps.Keys(r.epochs)) {
		c.Send(c.PID(PathRenderer(renderer)), r.context)
	}
}

// keys are the services whose actors must exist: also those that are gone and have not retired yet.
func (r *registry) keys() []string { return slices.Sorted(maps.Keys(r.entries)) }

// begin tells a renderer the services of its epoch, and the services to speak.
func (r *registry) begin(c *runtime.Context, renderer string) {
	if !r.complete || r.context == nil || !r.looked {
		return // what the services say without the addresses of VPP must not lead to a deletion; RenderUp is repeated
	}
	keys, epoch := r.keys(), r.epochs[renderer]
	c.Send(c.PID(PathRenderer(renderer)), &messages.Begin{Epoch: epoch, Keys: keys, Node: r.context})
	replay := &messages.Replay{Renderer: renderer, Epoch: epoch}
	for _, key := range keys {
		if r.entries[key].pulled || c.Incarnation() > 1 {
			c.Send(c.PID(PathService(key)), replay)
		}
	}
}

// missing asks silent services again; one that has no actor any more is spawned.
func (r *registry) missing(c *runtime.Context, m *messages.Missing) {
	if r.epochs[m.GetRenderer()] != m.GetEpoch() {
		return
	}
	c.Send(c.PID(PathServices), &messages.Ensure{Keys: m.GetKeys()})
	for _, key := range m.GetKeys() {
		if r.entries[key] != nil {
			c.Send(c.PID(PathService(key)), &messages.Replay{Renderer: m.GetRenderer(), Epoch: m.GetEpoch()})
		}
	}
}

// compare finds out whether something of the source was missed. One difference may be a message still under way, two are not.
func (r *registry) compare(c *runtime.Context, theirs *messages.Digest) {
	ours := digestOf(r.sources, r.node)
	if r.complete && ours.GetHash() == theirs.GetHash() && ours.GetServices() == theirs.GetServices() {
		r.doubts = 0
		return
	}
	if r.doubts++; r.doubts >= 2 {
		r.doubts = 0
		record(c, &messages.Event{Kind: "resync", Text: "missed something of the source, pulling a snapshot"})
		r.pull(c)
	}
}

// tick repeats specs that were not taken. The actor may have been lost or quarantined: the spawner is told as well.
func (r *registry) tick(c *runtime.Context) {
	c.After(r.deps.Timing.Retry, &registryTick{})
	r.repeat(c)
	if !r.looked {
		r.askInterfaces(c)
	}
	if !r.complete {
		r.pull(c)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[key]
		if e.acked || c.Now().Sub(e.sent) < r.deps.Timing.Retry {
			continue
		}
		c.Send(c.PID(PathServices), &messages.Ensure{Keys: []string{key}})
		c.Send(c.PID(PathServices), &messages.Nudge{Key: key, Generation: e.spec.GetGeneration()})
		r.send(c, e)
	}
}

// staleEndpoints has the local endpoints computed again soon.
func (r *registry) staleEndpoints(c *runtime.Context) {
	if !r.stale {
		r.stale = true
		c.After(endpointsDelay, &endpointsTick{})
	}
}

// computeEndpoints derives the addresses of all endpoints on this node. It is computed, not counted: a pod that backs several services
// stays a backend until the last of them drops it.
func (r *registry) computeEndpoints(c *runtime.Context) {
	r.stale = false
	inputs := make([]*messages.ServiceInput, 0, len(r.entries))
	for _, e := range r.entries {
		inputs = append(inputs, e.spec.GetInput())
	}
	addresses := localEndpoints(inputs, r.deps.NodeName)
	if r.endpoints == nil || !slices.Equal(addresses, r.endpoints.GetAddresses()) {
		r.endpoints = &messages.LocalEndpoints{Addresses: addresses, Generation: r.endpoints.GetGeneration() + 1}
	}
	c.Send(c.PID(PathInterfaces), r.endpoints)
}
