package interfaces

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	layers "github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Config is the configuration of the actor. It is read-only.
type Config struct {
	// NodeName is this node's name in Kubernetes.
	NodeName string
	// VPP is the connection.
	VPP link.Caller
	// Hints says that VPP's interfaces changed; may be nil. One pending hint is enough.
	Hints <-chan struct{}
	// NAT44 has the hairpin address. SNAT are the settings of dynamic SNAT, which depends on
	// the interface set.
	NAT44 nat44.Config
	SNAT  external.SNAT
	// Listening returns the ports on which processes of this node listen, "number/PROTO",
	// ordered. It is called by discoveries, outside of the actor. May be nil: none are known.
	Listening func(now time.Time) []string
	// OtherProtocols says where packets enter that are not TCP, UDP or ICMP. May be nil: only
	// pods and tunnels say it.
	OtherProtocols stats.Source[map[uint32]bool]
	// Attachments keeps the interfaces of pods that were attached by command, Saves lets one
	// call of its Save in at a time.
	Attachments Store
	Saves       *runtime.Exclusive
	// Receivers are the paths of the actors that get the set.
	Receivers []string
	// RoleGivers are the names of the renderers that give interfaces their roles.
	RoleGivers []string
	// Rediscover is the longest time between two discoveries: addresses and routes of VPP have
	// no events. While a pod of this node has no interface, and shortly after a change,
	// discoveries follow each other after RediscoverSoon.
	Rediscover, RediscoverSoon time.Duration
	// Command is how long a command may take, and how long its rollback.
	Command time.Duration
}

// interfacesActor derives the interface set from VPP, the pods of this node and the local
// endpoints. It keeps no counts: when something may have changed, it discovers the interfaces again
// and sends the complete set if it differs.
type interfacesActor struct {
	report.Health
	attachments
	config *Config

	// Input of the derivation: changed by linkChanged, nodeChanged and Receive.
	link      *messages.LinkState
	input     *messages.NodeInput // the last one
	pods      []*messages.Pod
	addresses []string // of this node, in Kubernetes
	hairpin   netip.Addr
	peers     []interfaces.Peer // only with SNAT
	networks  []netip.Prefix    // IPv4 pod networks of this node
	remote    []netip.Prefix    // IPv4 pod networks and addresses of other nodes
	podsKnown bool              // Kubernetes has delivered the pods
	endpoints *messages.LocalEndpoints
	protocols map[uint32]bool // interfaces with packets that are not TCP, UDP or ICMP

	// The set: changed by Start and take.
	set        *messages.InterfaceSet
	generation uint64 // of the last set

	// Discoveries: changed by look, found, lookLater and Receive.
	looking bool              // a discovery is under way
	again   bool              // something changed since it began
	reader  interfaces.Reader // belongs to the goroutine of a discovery while one is under way
	hinted  bool              // VPP has reported an interface event
	wake    func()            // cancels the timer of the next discovery
	changed time.Time         // when the set, or the input of its derivation, last changed

	lacking lacking // changed by take, in lacking.go
}

// discovered is the result of one discovery.
type discovered struct {
	connection uint64
	version    uint64 // of the attachments
	protocols  map[uint32]bool
	set        *messages.InterfaceSet
	err        error
}

// interfaceHint says that VPP has reported an interface event.
type interfaceHint struct{}

// setBits is how many sets one incarnation of the actor can send.
const setBits = 40

// interfacesTick starts a discovery.
type interfacesTick struct{}

// New returns the actor.
func New(config *Config) runtime.Behaviour {
	i := &interfacesActor{Health: report.Health{Part: "interfaces"}, config: config, link: &messages.LinkState{}}
	i.recorded, i.active, i.detached, i.reports = map[string]string{}, map[string]string{}, map[string]bool{}, map[string]*messages.Health{}
	i.gone = map[string]time.Time{}
	return i
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, because incarnations do.
func (i *interfacesActor) Start(c *runtime.Context) {
	i.generation = c.Incarnation() << setBits
	if hints := i.config.Hints; hints != nil {
		post := c.Post()
		c.Go("interface-events", func(ctx context.Context) { forwardHints(ctx, hints, post) })
	}
	if i.config.OtherProtocols != nil {
		c.After(protocolsInterval, &protocolsTick{})
	}
	i.Report(c, false, "VPP's interfaces are not known yet", 0)
	i.load(c) // without the attachments the set is not complete, so renderers take no role away
	i.askLink(c)
	c.Send(c.PID(address.Registry), &messages.Resync{Sibling: "interfaces", Incarnation: c.Incarnation()})
	i.Health.Start(c)
	c.Ready()
}

// askLink asks the link to repeat its state.
func (*interfacesActor) askLink(c *runtime.Context) {
	c.Send(c.PID(address.Link), &messages.Resync{Sibling: "interfaces", Incarnation: c.Incarnation()})
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

func (i *interfacesActor) Stop(c *runtime.Context) { i.Interrupt(c) }

func (i *interfacesActor) Receive(c *runtime.Context, msg any) {
	if i.handleCommand(c, msg) {
		return
	}
	switch m := msg.(type) {
	case *messages.LinkState:
		i.linkChanged(c, m)
	case *messages.NodeChanged:
		i.nodeChanged(c, m.GetInput())
	case *messages.LocalEndpoints:
		if i.endpoints == nil || !slices.Equal(i.endpoints.GetAddresses(), m.GetAddresses()) {
			i.endpoints = m
			i.look(c)
		}
	case *interfaceHint:
		i.hinted, i.changed = true, c.Now()
		i.look(c)
	case *messages.Resync: // a later sibling, the registry, or the link has started
		if m.GetSibling() == "link" {
			i.askLink(c)
		}
		i.send(c)
	case *interfacesTick:
		i.wake = nil
		i.look(c)
	case *discovered:
		i.found(c, m)
	case *protocolsTick:
		i.lookAtProtocols(c)
	case *protocolsSeen:
		i.protocolsLooked(c, m)
	case *report.Ask:
		i.Repeat(c)
	case *report.Beat:
		i.Beat(c)
	}
}

// nodeChanged takes the node and its pods in Kubernetes.
func (i *interfacesActor) nodeChanged(c *runtime.Context, in *messages.NodeInput) {
	if in == i.input && i.podsKnown {
		return // repeated
	}
	i.input = in
	pods, addresses := in.GetPods(), in.GetSelf().GetAddresses()
	same := slices.EqualFunc(i.pods, pods, func(a, b *messages.Pod) bool { return proto.Equal(a, b) })
	same = !i.takePeers(in) && same
	if !i.podsKnown || !same || !slices.Equal(i.addresses, addresses) {
		i.pods, i.addresses, i.podsKnown, i.changed = pods, addresses, true, c.Now()
		i.takeNetworks(in)
		i.look(c)
	} else if i.takeNetworks(in) {
		i.look(c)
	}
}

// takeNetworks notes the networks whose tables are looked up, and reports whether they have
// changed.
func (i *interfacesActor) takeNetworks(in *messages.NodeInput) bool {
	networks, remote := interfaces.IPv4Networks(in.GetSelf().GetPodCidrs()), interfaces.Remote(i.config.NodeName, in.GetNodes())
	changed := !slices.Equal(i.networks, networks) || !slices.Equal(i.remote, remote)
	i.networks, i.remote = networks, remote
	return changed
}

// takePeers notes the input of SNAT besides the interfaces, and reports whether it has changed.
func (i *interfacesActor) takePeers(in *messages.NodeInput) bool {
	if !i.config.SNAT.Enabled {
		return false
	}
	peers, hairpin := interfaces.Peers(i.config.NodeName, in.GetNodes()), i.config.NAT44.ForNode(in.GetSelf()).TwiceNAT
	changed := hairpin != i.hairpin || !slices.Equal(i.peers, peers)
	i.peers, i.hairpin = peers, hairpin
	return changed
}

// linkChanged discovers the interfaces after each new connection.
func (i *interfacesActor) linkChanged(c *runtime.Context, m *messages.LinkState) {
	if m.GetSession() < i.link.GetSession() {
		return // of an earlier incarnation of the link
	}
	fresh := m.GetUp() && (!i.link.GetUp() || m.GetSession() != i.link.GetSession())
	i.link = m
	if fresh {
		i.protocols = nil // perhaps it is another VPP
		i.look(c)
	}
	if down := "no connection to VPP"; !m.GetUp() && i.Last.GetReason() != down {
		i.Reach, i.Lost = messages.Reach_REACH_NONE, false // the link reports that VPP is lost
		i.Report(c, false, down, 0)
	}
}

// look starts a discovery, or notes that another one has to follow the present one.
func (i *interfacesActor) look(c *runtime.Context) {
	switch {
	case !i.link.GetUp():
		return
	case i.looking: // one at a time: VPP answers each request under its barrier
		i.again = true
		return
	}
	i.looking, i.again = true, false
	if i.hinted || i.link.GetBoot() != i.set.GetBoot() {
		// a known interface may have changed: everything is read
		i.reader.Forget()
	}
	i.hinted = false
	connection, post, vpp, listening, now := i.link.GetSession(), c.Post(), i.config.VPP, i.config.Listening, c.Now()
	in := interfaces.Input{
		Pods: i.pods, LocalEndpoints: i.endpoints.GetAddresses(), NodeAddresses: i.addresses, Complete: i.podsKnown && i.endpoints != nil && i.loaded,
		Boot: i.link.GetBoot(), Peers: i.peers, PodNetworks: i.networks, Remote: i.remote, Loopback: i.loopback(), Attached: i.attached(), Detached: maps.Clone(i.detached),
		OtherProtocols: i.protocols,
	}
	version := i.version // a command waits for a discovery that began with its change
	stats := i.config.OtherProtocols
	if i.protocols != nil {
		stats = nil // looked at each second
	}
	c.Go("discover", func(ctx context.Context) {
		if stats != nil { // so that the first set of a VPP has it
			in.OtherProtocols, _ = readProtocols(ctx, stats)
		}
		set, err := i.reader.Discover(ctx, vpp, in)
		if err == nil && listening != nil {
			set.Listening = listening(now)
		}
		post(&discovered{connection, version, in.OtherProtocols, set, err})
	})
}

// loopback is the address by which NAT44 replaces the source of clients; invalid = NAT44 serves
// nothing.
func (i *interfacesActor) loopback() netip.Addr {
	if !slices.Contains(i.config.RoleGivers, "nat44") {
		return netip.Addr{}
	}
	return i.config.NAT44.ForNode(i.input.GetSelf()).TwiceNAT
}

func (i *interfacesActor) found(c *runtime.Context, m *discovered) {
	i.looking = false
	switch {
	case m.connection != i.link.GetSession(): // of an earlier connection
		i.again = true
	case m.err != nil && i.link.GetUp():
		i.Reach = messages.Reach_REACH_DOWNSTREAM
		i.Report(c, false, m.err.Error(), 0) // the timer starts the next discovery
	case m.err != nil: // the connection has ended; the next one starts a discovery
	default:
		if i.protocols == nil {
			i.protocols = m.protocols
		}
		i.take(c, m.set, i.explains(m))
	}
	i.looked(c, m)
	switch {
	case i.again:
		i.look(c)
	case m.err == nil && m.version == i.version:
		// the set is up to date, so what is missing in it is gone
		i.forget(c)
	}
	i.lookLater(c)
}

// lookLater schedules the next discovery. It comes soon after a change, because a CNI adds routes
// after the interface that VPP reports, and while a pod of this node has no interface. Otherwise
// discoveries are rare.
func (i *interfacesActor) lookLater(c *runtime.Context) {
	if i.wake != nil {
		i.wake()
	}
	next := i.config.Rediscover
	recent := c.Now().Sub(i.changed)
	if recent < settling || recent < mostSettling && len(i.lacking.since) > 0 || i.Lost || i.Last.GetReach() == messages.Reach_REACH_DOWNSTREAM {
		next = min(next, i.config.RediscoverSoon)
	}
	i.wake = c.After(next, &interfacesTick{})
}

// settling is how long after a change further changes are likely, and how long a pod may be without
// an interface before that is a fault: its CNI is at work, before or after Kubernetes knows.
// mostSettling is how long discoveries are frequent for the interface of a pod.
const (
	settling     = 10 * time.Second
	mostSettling = time.Minute
)

// take adopts a set and sends it if it differs; cause is the command that has changed it, 0 = none.
func (i *interfacesActor) take(c *runtime.Context, set *messages.InterfaceSet, cause uint64) {
	set.Unplaced = i.lacking.settled(c.Now(), set)
	// for the comparison, which ignores both
	set.Generation, set.Cause = i.generation, i.set.GetCause()
	if i.set == nil || !proto.Equal(i.set, set) {
		i.generation++
		set.Generation, set.Cause = i.generation, cause
		i.set, i.changed = set, c.Now()
		report.Event(c, &messages.Event{Kind: "interfaces", Text: summary(set), Method: messages.Method_METHOD_UPDATE, Cause: set.GetCause()})
		i.send(c)
	}
	switch {
	case !i.podsKnown && i.Last.GetReason() != podsUnknown:
		i.Reach = messages.Reach_REACH_NONE
		i.Report(c, false, podsUnknown, 0)
	case i.podsKnown && !i.again:
		// a discovery that began before the last change does not have it
		i.judge(c)
	}
}

// podsUnknown is why the set is not complete before Kubernetes has delivered.
const podsUnknown = "the pods of this node are not known yet"

// send sends the set to its receivers.
func (i *interfacesActor) send(c *runtime.Context) {
	if i.set == nil {
		return
	}
	for _, path := range i.config.Receivers {
		c.Send(c.PID(path), i.set)
	}
	if i.config.SNAT.Enabled && i.set.GetComplete() {
		// with an incomplete set, SNAT would be refused or placed wrongly for a moment
		c.Send(c.PID(address.External), &layers.Place{Set: i.set, Hairpin: i.hairpin})
	}
}

func (i *interfacesActor) Inspect() any {
	return map[string]any{
		"generation": i.generation, "interfaces": len(i.set.GetInterfaces()), "complete": i.set.GetComplete(), "looking": i.looking, "podsKnown": i.podsKnown, "pods": len(i.pods),
		"addresses": i.addresses, "connected": i.link.GetUp(),
	}
}

// summary describes an interface set in one line for the journal.
func summary(set *messages.InterfaceSet) string {
	var frontends, backends, others []string
	for _, i := range set.GetInterfaces() {
		if i.GetFrontend() {
			frontends = append(frontends, i.GetName())
		}
		if i.GetBackend() {
			backends = append(backends, i.GetName())
		}
		if i.GetOtherProtocols() != "" {
			others = append(others, i.GetName())
		}
	}
	text := fmt.Sprintf("%d interfaces; frontends: %s; backends: %s", len(set.GetInterfaces()), shortened(frontends), shortened(backends))
	if len(others) > 0 {
		text += "; packets that are not TCP, UDP or ICMP: " + shortened(others)
	}
	return text
}

// faults says why connections to endpoints behind interfaces are lost; "" = they are not.
func faults(set *messages.InterfaceSet) string {
	var all []string
	for _, i := range set.GetInterfaces() {
		if i.GetFault() != "" {
			all = append(all, "connections to endpoints behind "+i.GetName()+" are lost: "+i.GetFault())
		}
	}
	return strings.Join(all, "; ")
}

// shortened shortens a list for a line of text.
func shortened(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return strings.Join(names[:most], " ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, " ")
}
