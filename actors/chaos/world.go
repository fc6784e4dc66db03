package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Limits of a simulation.
const (
	messageCost = 200 * time.Microsecond
	stepLimit   = 5_000_000
)

// world is one node with its surroundings. It belongs to one goroutine.
type world struct {
	// Time; these fields do not change.
	sim   *runtime.Sim // nil in a world with threads
	now   func() time.Time
	later func(time.Duration, func()) // calls a function after a while, between two steps

	// The surroundings outlive the process of the agent; faults change them.
	cluster   *cluster
	documents *documents // external configuration; nil in a world with threads
	disk      *durable.Memory
	vpp       *virtual.Stream
	injector  *injector
	saved     map[string][]byte // documents that the agent has saved
	attached  *interfaces.MemoryStore
	commands  *commands
	snat      bool                     // dynamic SNAT is configured
	detached  bool                     // the overlay is missing
	unwanted  map[netip.Addr]time.Time // when this node should last not own a load-balancer address

	// The present process of the agent; only start sets these fields.
	source    *source
	endSource func() // ends the source and waits for its end
	nodes     *nodeSync
	deps      *actors.Deps
	sys       *runtime.System
	order     order

	// Changes of VPP outside of the agent: faults record them, and Drifted explains drift by
	// them.
	foreign map[frontend]bool // rows of other owners
	stolen  map[frontend]int  // removed rows, with the number of the last read before
	strayed map[string]int    // other removed objects, by renderer

	// Observations; only checks set these fields.
	observed    observed
	remedies    remedies
	provisional provisional
	overdue     bool // VPP executes the requests that it got while it hung
	silenced    bool // the journal was suspended, or has failed
	fatal       string
	probes      int      // packets so far
	broken      []string // violations of invariants that must hold at any time
}

// newWorld builds the node and starts the agent.
func newWorld(seed uint64, trace func(runtime.SimStep)) (*world, error) {
	sim := runtime.NewSim(runtime.SimOptions{Seed: seed, MessageCost: messageCost, StepLimit: stepLimit, Trace: trace})
	w := &world{sim: sim, now: sim.Now, cluster: newCluster(), foreign: map[frontend]bool{}, stolen: map[frontend]int{}, strayed: map[string]int{}}
	w.snat, w.cluster.ip6, w.cluster.announces = half(seed, 5), half(seed, 6), half(seed, 7)
	w.documents, w.saved, w.attached, w.commands = &documents{
		texts: map[string][]byte{}, good: map[string]layer{}, last: map[string][]byte{}, away: map[string]bool{},
	}, map[string][]byte{}, &interfaces.MemoryStore{}, &commands{}
	w.unwanted = map[netip.Addr]time.Time{}
	w.disk, w.provisional = durable.NewMemory(), provisional{}
	w.remedies = remedies{boots: map[string]string{}, failed: map[string][]time.Time{}}
	w.later = func(d time.Duration, fn func()) { sim.AfterFunc(d, fn) }
	w.observed = newObserved(w.cluster)
	w.vpp = virtual.New(sim, w.topology, w.changed)
	w.vpp.Spared = isRolling
	w.injector = &injector{rand: sim.Rand()}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

// half chooses half of the seeds. Half of the worlds have dynamic SNAT. Half have IPv6: every
// address and every slice has a twin there, so that the expected translations of CNAT follow from
// the expected rows of NAT44.
func half(seed, of uint64) bool { return rand.New(rand.NewPCG(seed, of)).IntN(2) == 0 }

// start starts a process of the agent, which knows nothing of the previous process.
func (w *world) start() error {
	clear(w.provisional)
	w.observed.own = 0
	w.source = &source{sim: w.sim, cluster: w.cluster, store: kube.NewStore(thisNode), listed: w.listed}
	feed := kube.NewRelay(w.mirrored(w.source), nil, w.sim.Now)
	ctx, cancel := context.WithCancel(context.Background())
	w.nodes = &nodeSync{sim: w.sim}
	w.nodes.hold()
	w.deps = &actors.Deps{
		NodeName: thisNode, Feed: feed, Link: w.vpp, NodeSync: w.nodes, Readiness: &health.Readiness{}, Park: w.sim.Park,
		NAT44: nat44.Config{Node: thisNode, Pads: true, MasqueradeClashes: true}, Serving: serving(), Log: slog.New(slog.DiscardHandler),
		Observer: observer{world: w}, External: &externalSources{w.documents, w.sim, w.saved}, Attachments: w.attached, Wrap: w.wrap,
		SNAT: layers.SNAT{Enabled: w.snat, OverlayPorts: []string{fmt.Sprint(overlayPort, "/UDP")}},
	}
	if w.cluster.ip6 {
		w.deps.CNAT = &cnat.Config{Node: thisNode}
		w.deps.Serving.ServiceCIDRs = append(w.deps.Serving.ServiceCIDRs, serviceNetwork6)
	}
	if w.cluster.announces {
		w.announce()
	}
	o := w.sim.Options()
	o.Go = w.sim.Start
	o.Faults = w.handled
	o.OnFault = w.failure
	o.OnFatal = func(reason string) { w.fatal = reason }
	w.sys = runtime.NewSystem(o)
	ended := false
	w.sim.Start("bootstrap", "source", func() {
		defer func() { ended = true }()
		if err := feed.Run(ctx); err != nil {
			w.breach("the source ended: %v", err)
		}
	})
	w.endSource = func() {
		cancel()
		if done, err := w.sim.RunUntil(func() bool { return ended }, time.Minute); err != nil || !done {
			w.breach("I9: the source does not end: %v", err)
		}
	}
	tree := actors.Tree(w.deps)
	w.order = newOrder(tree)
	w.injector.groups = w.order.groups
	if _, err := w.sys.SpawnRoot(address.RootName, tree); err != nil {
		return fmt.Errorf("start the troupe: %w", err)
	}
	return nil
}

// topology adds the interfaces of the node to a new VPP, as a CNI does.
func (w *world) topology(v *simulator.VPP) {
	err := connectPods(v, w.cluster.ended)
	if w.snat && !w.detached {
		err = errors.Join(err, connectOverlay(v))
	}
	if w.cluster.ip6 {
		err = errors.Join(err, connectIPv6(v, w.cluster.ended))
	}
	if w.cluster.announces {
		err = errors.Join(err, connectEdge(v))
	}
	if err != nil {
		w.breach("build the topology: %v", err)
	}
}

// connectPods connects the node to its network and to its pods.
func connectPods(v *simulator.VPP, ended map[int]bool) error {
	_, err := v.AddInterface(uplink, []netip.Prefix{netip.MustParsePrefix(nodeIP + "/24")}, true)
	err = errors.Join(err, v.DefaultRoute(uplink, netip.MustParseAddr("192.168.16.254")))
	for i := range podsPerNode + 1 { // the last pod serves an observed service
		if ended[i] {
			continue
		}
		_, e := v.AddPod(podName(i), podIP(1, i))
		err = errors.Join(err, e)
	}
	return err
}

// breach notes the violation of an invariant that must hold at any time.
func (w *world) breach(format string, args ...any) {
	const most = 20
	if len(w.broken) < most {
		w.broken = append(w.broken, w.now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// heal ends every fault.
func (w *world) heal() error {
	w.injector.calm()
	w.source.blind, w.source.slow, w.source.broken = false, 0, false
	w.repairDisk()
	w.documents.mend()
	w.nodes.broken, w.nodes.slow = false, 0
	w.nodes.hold()
	w.vpp.Cut, w.vpp.Lose, w.vpp.Refuse = 0, 0, 0
	for _, a := range w.sys.Snapshot() {
		if box, found := w.sys.Mailbox(a.Path); found {
			box.Release()
		}
	}
	if err := w.vpp.VPP.FreezeMappings(false); err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	w.resumeVPP()
	return nil
}

// stop ends the agent and VPP. The error names actors that do not end.
func (w *world) stop() error {
	err := w.sys.Shutdown(context.Background())
	w.endSource()
	return errors.Join(err, w.vpp.VPP.Close())
}
