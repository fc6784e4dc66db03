package actors

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
)

// interfacesActor derives the frontend/backend interface set from VPP, the pods of this node and the local endpoints. It keeps no counts:
// each time something may have changed it looks again and sends the complete set if it differs.
type interfacesActor struct {
	reporter
	attachments
	deps       *Deps
	link       *messages.LinkState
	input      *messages.NodeInput // the last one
	pods       []*messages.Pod
	addresses  []string // of this node, in Kubernetes
	hairpin    netip.Addr
	peers      []interfaces.Peer // only with SNAT
	told       bool              // Kubernetes has said which pods there are
	endpoints  *messages.LocalEndpoints
	set        *messages.InterfaceSet
	generation uint64 // of the last set
	looking    bool   // a discovery is under way
	again      bool   // something changed since it began
}

// discovered is the result of one look at VPP.
type discovered struct {
	session uint64
	version uint64 // of the attachments
	set     *messages.InterfaceSet
	err     error
}

// interfaceHint says that VPP reported an interface event.
type interfaceHint struct{}

// setBits is how many sets one incarnation of the actor can tell of.
const setBits = 40

// interfacesTick makes the actor look again and repeat itself.
type interfacesTick struct{}

func newInterfaces(d *Deps) runtime.Behaviour {
	i := &interfacesActor{reporter: reporter{part: "interfaces"}, deps: d, link: &messages.LinkState{}}
	i.prepare()
	return i
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, because incarnations do.
func (i *interfacesActor) Start(c *runtime.Context) {
	i.generation = c.Incarnation() << setBits
	if hints := i.deps.InterfaceEvents; hints != nil {
		post := c.Post()
		c.Go("interface-events", func(ctx context.Context) { forwardHints(ctx, hints, post) })
	}
	i.report(c, false, "VPP's interfaces are not known yet", 0)
	i.load(c)
	i.askLink(c)
	for _, path := range []string{PathRegistry, PathWatch} { // local endpoints, pods
		c.Send(c.PID(path), &messages.Resync{Sibling: "interfaces", Incarnation: c.Incarnation()})
	}
	i.keep(c)
	c.After(i.deps.Timing.Rediscover, &interfacesTick{})
	c.Ready()
}

// askLink has the link repeat its state.
func (*interfacesActor) askLink(c *runtime.Context) {
	c.Send(c.PID(PathLink), &messages.Resync{Sibling: "interfaces", Incarnation: c.Incarnation()})
}

func forwardHints(ctx context.Context, hints <-chan struct{}, post func(any)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
			post(&interfaceHint{})
		}
	}
}

// Stop satisfies runtime.Behaviour.
func (i *interfacesActor) Stop(c *runtime.Context) { i.release(c) }

// Receive satisfies runtime.Behaviour.
func (i *interfacesActor) Receive(c *runtime.Context, msg any) {
	if i.command(c, msg) {
		return
	}
	switch m := msg.(type) {
	case *messages.LinkState:
		i.linkChanged(c, m)
	case *messages.NodeChanged:
		if m.GetInput() == i.input && i.told {
			return // repeated
		}
		i.input = m.GetInput()
		pods, addresses := m.GetInput().GetPods(), m.GetInput().GetSelf().GetAddresses()
		same := slices.EqualFunc(i.pods, pods, func(a, b *messages.Pod) bool { return proto.Equal(a, b) })
		same = !i.around(m.GetInput()) && same
		if !i.told || !same || !slices.Equal(i.addresses, addresses) {
			i.pods, i.addresses, i.told = pods, addresses, true
			i.look(c)
		}
	case *messages.LocalEndpoints:
		if i.endpoints == nil || !slices.Equal(i.endpoints.GetAddresses(), m.GetAddresses()) {
			i.endpoints = m
			i.look(c)
		}
	case *interfaceHint:
		i.look(c)
	case *messages.Resync: // somebody has just started: a later sibling, the registry, or the link
		if m.GetSibling() == "link" {
			i.askLink(c)
		}
		i.tell(c)
	case *interfacesTick:
		c.After(i.deps.Timing.Rediscover, &interfacesTick{})
		i.look(c)
		i.tell(c)
	case *discovered:
		i.found(c, m)
	case *healthBeat:
		i.keep(c)
		i.repeat(c)
		i.tell(c)
	}
}

// around notes what SNAT depends on besides the interfaces, and reports whether that has changed.
func (i *interfacesActor) around(in *messages.NodeInput) bool {
	if !i.deps.SNAT.Enabled {
		return false
	}
	peers, hairpin := interfaces.Peers(i.deps.NodeName, in.GetNodes()), NAT44For(i.deps.NAT44, in.GetSelf()).TwiceNAT
	changed := hairpin != i.hairpin || !slices.Equal(i.peers, peers)
	i.peers, i.hairpin = peers, hairpin
	return changed
}

// linkChanged looks at a VPP, or a connection to it, that was not known.
func (i *interfacesActor) linkChanged(c *runtime.Context, m *messages.LinkState) {
	if m.GetSession() < i.link.GetSession() {
		return // overtaken
	}
	news := m.GetUp() && (!i.link.GetUp() || m.GetSession() != i.link.GetSession())
	i.link = m
	if news {
		i.look(c)
	}
	if down := "no connection to VPP"; !m.GetUp() && i.last.GetReason() != down {
		i.reach = messages.Reach_REACH_NONE
		i.report(c, false, down, 0)
	}
}

// look starts a discovery, or notes that another one is needed after the present one.
func (i *interfacesActor) look(c *runtime.Context) {
	switch {
	case !i.link.GetUp():
		return
	case i.looking:
		i.again = true
		return
	}
	i.looking, i.again = true, false
	session, post, link := i.link.GetSession(), c.Post(), i.deps.Link
	in := interfaces.Input{
		Pods: i.pods, LocalEndpoints: i.endpoints.GetAddresses(), NodeAddresses: i.addresses, Complete: i.told && i.endpoints != nil && i.loaded,
		Boot: i.link.GetBoot(), Peers: i.peers, Attached: i.attached(), Detached: maps.Clone(i.detached),
	}
	version := i.version
	c.Go("discover", func(ctx context.Context) {
		set, err := interfaces.Discover(ctx, link, in)
		post(&discovered{session, version, set, err})
	})
}

func (i *interfacesActor) found(c *runtime.Context, m *discovered) {
	i.looking = false
	switch {
	case m.session != i.link.GetSession(): // of an earlier VPP, worthless
		i.again = true
	case m.err != nil && i.link.GetUp():
		i.reach = messages.Reach_REACH_DOWNSTREAM
		i.report(c, false, m.err.Error(), 0) // the slow timer looks again
	case m.err != nil: // no wonder
	default:
		i.take(c, m.set, i.explains(m))
	}
	i.looked(c, m)
	switch {
	case i.again:
		i.look(c)
	case m.err == nil && m.version == i.version:
		i.forget(c)
	}
}

// take adopts a set and passes it on if it says something new; cause is the command that it follows from, if any.
func (i *interfacesActor) take(c *runtime.Context, set *messages.InterfaceSet, cause uint64) {
	set.Generation, set.Cause = i.generation, i.set.GetCause()
	if i.set == nil || !proto.Equal(i.set, set) {
		i.generation++
		set.Generation, set.Cause = i.generation, cause
		i.set = set
		record(c, &messages.Event{Kind: "interfaces", Text: summary(set), Method: messages.Method_METHOD_UPDATE, Cause: set.GetCause()})
		i.tell(c)
	}
	switch {
	case !i.told && i.last.GetReason() != podsUnknown:
		i.reach = messages.Reach_REACH_NONE
		i.report(c, false, podsUnknown, 0)
	case i.told && !i.again && !i.last.GetOk(): // a look that began before the last news says nothing of it
		i.interfaces = i.set.GetGeneration()
		i.reach = messages.Reach_REACH_NONE
		i.report(c, true, "", 0)
	}
}

// podsUnknown is why the set is not complete while Kubernetes has not spoken.
const podsUnknown = "the pods of this node are not known yet"

func (i *interfacesActor) tell(c *runtime.Context) {
	if i.set == nil {
		return
	}
	i.deps.tellRenderers(c, i.set)
	for _, path := range []string{PathNodes, PathRegistry, PathIntrospect} {
		c.Send(c.PID(path), i.set)
	}
	if i.deps.SNAT.Enabled && i.set.GetComplete() {
		c.Send(c.PID(PathExternal), &snatPlace{i.set, i.hairpin})
	}
}
