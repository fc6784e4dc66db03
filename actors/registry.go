package actors

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// generationBits is how many generations one incarnation of the registry can give out.
const generationBits = 40

// registry holds what the node should serve: the input of every service with a generation, and which services exist at all. It does no
// I/O; a restarted registry pulls everything from the watch and hands it out again, which changes nothing for who already has it.
type registry struct {
	reporter
	census
	deps       *Deps
	complete   bool // a complete snapshot has been taken
	mirrored   bool // before that, one of an earlier run was taken
	generation uint64
	entries    map[string]*entry
	open       map[string]*entry // those whose spec was not taken yet
	members    []string          // keys of entries, ordered; nil = to be made again; shared with messages
	node       *messages.NodeInput
	nodeAt     uint64   // its mark
	vpp        []string // VPP addresses of this node, "ip/len"
	looked     bool     // VPP's interfaces are known, so vpp is what it is
	context    *messages.NodeContext
	hosts      []string // addresses of all nodes; shared with messages
	renderers  map[string]standing
	epochs     map[string]uint64   // of renderers; shared with specs, so it is replaced and not modified
	doubt      doubt               // whether something of the source was missed
	given      uint64              // XOR over the generations of all entries
	cursor     string              // the last service of which something was repeated before its time
	hosted     map[string][]string // addresses of local endpoints by service, of those that have some
	endpoints  *messages.LocalEndpoints
	stale      bool // endpoints must be computed again
	traced     bool // what is given out now is written down service by service
}

// entry is one service.
type entry struct {
	spec   *messages.ServiceSpec
	pulled bool      // its actor exists: it has asked
	tries  uint8     // how often this spec was sent
	again  time.Time // when it is sent again
}

// registryTick repeats what was not acknowledged.
type registryTick struct{}

// rollCall repeats who exists.
type rollCall struct{}

// summaryTick tells introspection in one number what it should have heard of, and repeats what was not acknowledged to some.
type summaryTick struct{}

func newRegistry(d *Deps) runtime.Behaviour {
	return &registry{
		reporter: reporter{part: "registry"}, census: newCensus(), deps: d, entries: map[string]*entry{}, open: map[string]*entry{},
		renderers: map[string]standing{}, hosted: map[string][]string{},
	}
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, because incarnations do.
func (r *registry) Start(c *runtime.Context) {
	r.generation = (c.Incarnation()-1)<<generationBits + 1
	r.stand(c)
	r.pull(c)
	r.askInterfaces(c)
	r.deps.tellRenderers(c, &messages.Resync{Sibling: "registry", Incarnation: c.Incarnation()})
	r.keep(c)
	c.After(r.deps.Timing.Retry, &registryTick{})
	c.After(r.deps.Timing.Audit, &rollCall{})
	c.After(r.deps.Timing.Digest, &summaryTick{})
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
		if !r.blank(c) {
			r.serviceChanged(c, m)
		}
	case *messages.NodeChanged:
		if !r.blank(c) {
			r.nodeChanged(c, m.GetInput(), m.GetRun())
		}
	case *messages.InterfaceSet:
		r.interfacesChanged(c, m)
	case *messages.Digest:
		r.compare(c, m)
	case *messages.PullSpec:
		r.pulled(c, m.GetKey())
	case *messages.Have:
		if e := r.entries[m.GetKey()]; e != nil {
			if e.pulled = true; m.GetGeneration() == e.spec.GetGeneration() {
				delete(r.open, m.GetKey())
			}
		}
	case *messages.Retired:
		r.retired(c, m)
	case *messages.RenderUp:
		r.renderUp(c, m)
	case *messages.Missing:
		r.missing(c, m)
	case *messages.Resync:
		r.resync(c, m)
	case *registryTick:
		r.tick(c)
	case *messages.Pull: // of introspection
		r.tellGenerations(c)
	case *summaryTick:
		c.After(r.deps.Timing.Digest, &summaryTick{})
		r.remind(c)
		if r.known() && r.context != nil {
			c.Send(c.PID(PathIntrospect), &messages.Digest{Services: uint64(len(r.entries)), Hash: r.given})
		}
	case *rollCall:
		c.After(r.deps.Timing.Audit, &rollCall{})
		if r.known() {
			r.callRoll(c)
		}
	case *endpointsTick:
		r.computeEndpoints(c)
	case *healthBeat:
		r.keep(c)
		r.repeat(c)
	}
}

func (r *registry) pull(c *runtime.Context) {
	c.Send(c.PID(PathWatch), &messages.Pull{Incarnation: c.Incarnation()})
}

// known reports whether anybody has said which services there are: the source, or an earlier run through the local mirror.
func (r *registry) known() bool { return r.complete || r.mirrored }

// blank reports whether a restarted registry still waits for the snapshot that it has asked for. Until then it believes nobody: it does not know
// what its predecessor did, and what was held up on the way would take services back to what they were.
func (r *registry) blank(c *runtime.Context) bool { return c.Incarnation() > 1 && !r.known() }

// serviceChanged takes one change of the source.
func (r *registry) serviceChanged(c *runtime.Context, m *messages.ServiceChanged) {
	in := m.GetInput()
	if r.hear(in.GetKey(), mark(m.GetRun(), in.GetGeneration()), exists(in)) && r.trace(c, in, messages.Method_METHOD_UPDATE) {
		c.Send(c.PID(PathServices), &messages.Ensure{Keys: []string{in.GetKey()}})
	}
}

// trace takes the latest input of one service and, if that is news, writes down the id of everything that follows from it.
func (r *registry) trace(c *runtime.Context, in *messages.ServiceInput, method messages.Method) (created bool) {
	before := r.generation
	r.traced = true
	created = r.changed(c, in)
	r.traced = false
	if r.generation == before {
		return created
	}
	text := "changed"
	switch {
	case in.GetService() == nil:
		text = "gone"
	case created:
		text = "new"
	}
	record(c, &messages.Event{
		Kind: "service", Object: in.GetKey(), Cause: r.generation, Method: method,
		Text: fmt.Sprintf("%s in the source, revision %d there", text, in.GetGeneration()),
	})
	return created
}

// snapshot replaces everything that it is not older than. What is not in a complete one is gone; one of an earlier run only adds.
func (r *registry) snapshot(c *runtime.Context, m *messages.Snapshot) {
	switch {
	case r.complete && !m.GetComplete():
		return // the source has spoken meanwhile
	case r.blank(c) && m.GetPulled() < c.Incarnation():
		r.pull(c) // there is a watch now, and when we asked there may have been none
		return
	}
	first, known := !r.complete, r.known()
	take := r.changed
	if !first { // only what was missed is news, and there is seldom much of it
		take = func(c *runtime.Context, in *messages.ServiceInput) bool {
			return r.trace(c, in, messages.Method_METHOD_UPSTREAM_RESYNC)
		}
	}
	if m.GetNode() != nil {
		r.nodeChanged(c, m.GetNode(), m.GetRun())
	}
	shown := make(map[string]bool, len(m.GetServices()))
	for _, in := range m.GetServices() {
		shown[in.GetKey()] = true
		if r.hear(in.GetKey(), mark(m.GetRun(), in.GetGeneration()), exists(in)) {
			take(c, in)
		}
	}
	if !m.GetComplete() {
		r.mirrored = true
		r.callRoll(c)
		if !known {
			r.began(c, fmt.Sprintf("%d services taken from the local mirror; nothing is removed before the source has spoken", len(r.entries)), m)
		}
		return
	}
	at := mark(m.GetRun(), m.GetGeneration())
	for _, key := range r.absent(at, shown) {
		r.enter(key, at, false)
		take(c, &messages.ServiceInput{Key: key, Generation: m.GetGeneration()})
	}
	r.complete = true // not before everything is in: a Begin with half of the services would cost the others their rows
	r.callRoll(c)
	if first {
		r.anew()
		r.began(c, fmt.Sprintf("snapshot of %d services taken", len(r.entries)), m)
	}
}

// began says that it is known which services there are, and has the renderers begin.
func (r *registry) began(c *runtime.Context, text string, m *messages.Snapshot) {
	r.stand(c)
	r.computeEndpoints(c) // also when there are none: our predecessor may have told of some
	r.beginAll(c)
	record(c, &messages.Event{
		Kind: "resync", Text: fmt.Sprintf("%s, revision %d there", text, m.GetGeneration()), Method: messages.Method_METHOD_UPSTREAM_RESYNC,
	})
}

// stand reports what the registry lacks, if that has changed. It is for the watch to say that the source does not answer. Without a node nothing
// can be served; when Kubernetes forgets one that was known, the node goes on with what it was.
func (r *registry) stand(c *runtime.Context) {
	ok, reason, nobody := true, "", "Kubernetes has no node "+r.deps.NodeName
	switch {
	case !r.known():
		ok, reason = false, "no complete snapshot yet"
	case r.node.GetSelf() == nil && r.context == nil:
		ok, reason = false, nobody
	case r.node.GetSelf() == nil:
		reason = nobody + " any more"
	case !r.complete:
		reason = causeMirror
	}
	if r.last == nil || r.last.GetOk() != ok || r.last.GetReason() != reason {
		r.report(c, ok, reason, 0)
	}
}

// callRoll tells who exists: spawner and introspection drop the others. It is repeated now and then, because both only hear of single
// services otherwise.
func (r *registry) callRoll(c *runtime.Context) {
	c.Send(c.PID(PathServices), &messages.Ensure{Keys: r.keys(), Complete: true})
	r.tellGenerations(c)
}

// tellGenerations tells introspection who exists, and which generation of every service it should have heard of.
func (r *registry) tellGenerations(c *runtime.Context) {
	if !r.known() {
		return
	}
	all := &messages.Ensure{Keys: r.keys(), Complete: true, Generations: make([]uint64, 0, len(r.entries)), Newest: r.generation}
	for _, key := range all.GetKeys() {
		all.Generations = append(all.Generations, r.entries[key].spec.GetGeneration())
	}
	c.Send(c.PID(PathIntrospect), all)
}

// changed takes the latest input of one service and reports whether it needs an actor that it did not need before.
func (r *registry) changed(c *runtime.Context, in *messages.ServiceInput) (created bool) {
	key, gone := in.GetKey(), in.GetService() == nil
	e := r.entries[key]
	switch {
	case e == nil && gone:
		return false // slices of a service that is not there
	case e == nil:
		e, created = &entry{}, true
		r.entries[key], r.members = e, nil
	case sameInput(e.spec.GetInput(), in):
		return false
	}
	if gone {
		in = &messages.ServiceInput{Key: key, Generation: in.GetGeneration()}
	}
	r.host(c, in)
	r.give(c, e, in)
	return created
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

// nodeChanged takes what Kubernetes says of the nodes.
func (r *registry) nodeChanged(c *runtime.Context, in *messages.NodeInput, run uint64) {
	at := mark(run, in.GetGeneration())
	if at <= r.nodeAt {
		return
	}
	r.node, r.nodeAt = in, at
	r.stand(c)
	hosts := hostAddresses(in)
	news := !slices.Equal(r.hosts, hosts)
	r.hosts = hosts
	if before := r.context; !r.updateContext(c) && news && before != nil {
		r.generation++
		r.beginAll(c)
	}
}

// askInterfaces has the interface set repeated: it has the VPP addresses of this node.
func (*registry) askInterfaces(c *runtime.Context) {
	c.Send(c.PID(PathInterfaces), &messages.Resync{Sibling: "registry", Incarnation: c.Incarnation()})
}

// interfacesChanged takes the VPP addresses, and answers with what the interface set depends on: it comes now and then without a change.
func (r *registry) interfacesChanged(c *runtime.Context, set *messages.InterfaceSet) {
	first := !r.looked
	r.vpp, r.looked = set.GetNodeAddresses(), true
	r.updateContext(c)
	if first {
		r.beginAll(c)
	}
	r.tellEndpoints(c)
}

// updateContext tells every service when something of the node changed that serving depends on, and reports whether it did.
func (r *registry) updateContext(c *runtime.Context) bool {
	if r.node.GetSelf() == nil || c.Incarnation() > 1 && !r.looked {
		return false // a restarted registry must not give out less than its predecessor knew
	}
	next := nodeContext(r.node.GetSelf(), r.vpp)
	if r.context != nil && proto.Equal(next.GetNode(), r.context.GetNode()) && slices.Equal(next.GetAddresses(), r.context.GetAddresses()) {
		return false
	}
	r.generation++
	next.Generation = r.generation
	r.context = next
	for _, key := range r.keys() {
		r.give(c, r.entries[key], r.entries[key].spec.GetInput())
	}
	r.beginAll(c)
	return true
}

// keys are the services whose actors must exist: also those that are gone and have not retired yet.
func (r *registry) keys() []string {
	if r.members == nil {
		r.members = sortedKeys(r.entries)
	}
	return r.members
}

// compare finds out whether something of the source was missed.
func (r *registry) compare(c *runtime.Context, theirs *messages.Digest) {
	missed := difference(r.digest(r.nodeAt), theirs)
	if !r.complete {
		missed |= 1
	}
	if missed == 0 {
		r.age(c.Now())
	}
	if r.doubt.persists(missed) {
		record(c, &messages.Event{
			Kind: "resync", Text: "missed something of the source, pulling a snapshot", Method: messages.Method_METHOD_UPSTREAM_RESYNC,
		})
		r.pull(c)
	}
}

// resync repeats what somebody who has just started needs of us.
func (r *registry) resync(c *runtime.Context, m *messages.Resync) {
	switch m.GetSibling() {
	case "introspect":
		r.tellGenerations(c)
		for _, key := range r.keys() {
			c.Send(c.PID(PathService(key)), m)
		}
	case "interfaces":
		r.tellEndpoints(c)
	}
}
