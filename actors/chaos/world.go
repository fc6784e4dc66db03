package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/durable/durabletest"
	"github.com/troupe-vpp/troupe/kube/relay"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Limits of a simulation.
const (
	messageCost = 200 * time.Microsecond
	stepLimit   = 5_000_000
)

// world is one node with everything around it.
type world struct {
	sim *runtime.Sim // nil on the real dispatcher
	now func() time.Time
	// ends a fault, or goes on with it, after a while, between two steps
	later     func(time.Duration, func())
	cluster   *cluster
	source    *source
	endSource func() // ends the source of the present process and waits for its end
	disk      *durabletest.Disk
	nodes     *nodeSync
	vpp       *virtual.Stream
	injector  *injector
	deps      *actors.Deps
	sys       *runtime.System
	foreign   map[frontend]bool // rows of other owners in VPP
	// rows that were removed outside of the agent, with the number of the last read before
	stolen map[frontend]int
	// routes and settings that were removed outside of the agent and that no drift check has found
	// yet, by renderer
	strayed     map[string]int
	provisional provisional
	overdue     bool              // VPP executes what it was asked while it hung
	documents   *documents        // of external configuration
	saved       map[string][]byte // documents that the troupe has saved
	snat        bool              // dynamic SNAT is configured
	detached    bool              // there is no overlay for a while
	attached    *interfaces.MemoryStore
	commands    *commands
	remedies    remedies
	order       order
	silenced    bool // the journal was held up or had failed
	observed    observed
	outage      time.Time // when the last fault ends
	fatal       string
	probes      int      // packets that were sent
	broken      []string // violations of what must hold at any time
}

// newWorld builds the node and starts the troupe.
func newWorld(seed uint64, trace func(runtime.SimStep)) (*world, error) {
	sim := runtime.NewSim(runtime.SimOptions{Seed: seed, MessageCost: messageCost, StepLimit: stepLimit, Trace: trace})
	w := &world{sim: sim, now: sim.Now, cluster: newCluster(), foreign: map[frontend]bool{}, stolen: map[frontend]int{}, strayed: map[string]int{}, snat: withSNAT(seed)}
	w.cluster.ip6 = withIPv6(seed)
	w.documents, w.saved, w.attached, w.commands = newDocuments(), map[string][]byte{}, &interfaces.MemoryStore{}, &commands{}
	w.disk, w.provisional = durabletest.New(), provisional{}
	w.remedies = remedies{boots: map[string]string{}, failed: map[string][]time.Time{}}
	w.later = w.virtually
	w.observed = newObserved(w.cluster)
	w.vpp = virtual.New(sim, w.topology, w.changed)
	w.vpp.Spared = isRolling
	w.injector = &injector{rand: sim.Rand(), now: sim.Now, heard: map[string]bool{}}
	if err := w.start(); err != nil {
		return nil, err
	}
	return w, nil
}

// start begins the life of an agent: a process knows nothing of the one before.
func (w *world) start() error {
	clear(w.provisional)
	w.source = newSource(w.sim, w.cluster, w.listed)
	feed := relay.New(w.mirrored(w.source), nil, w.sim.Now)
	ctx, cancel := context.WithCancel(context.Background())
	w.nodes = newNodeSync(w.sim)
	w.deps = &actors.Deps{
		NodeName: thisNode, Feed: feed, Link: w.vpp, NodeSync: w.nodes, Readiness: &health.Readiness{}, Park: w.sim.Park,
		NAT44: nat44.Config{Node: thisNode, Pads: true, MasqueradeClashes: true}, Serving: serving(), Log: slog.New(slog.DiscardHandler),
		Observer: observer{w}, External: &externalSources{w.documents, w.sim, w.saved}, SNAT: w.snatSettings(), Attachments: w.attached, Wrap: w.wrap,
	}
	if w.cluster.ip6 {
		w.deps.CNAT = &cnat.Config{Node: thisNode}
		w.deps.Serving.ServiceCIDRs = append(w.deps.Serving.ServiceCIDRs, serviceNetwork6)
	}
	o := w.sim.Options()
	o.Go = w.sim.Start
	o.Faults, o.Network = w.handled, w.injector.network
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
	if _, err := w.sys.SpawnRoot(address.RootName, tree); err != nil {
		return fmt.Errorf("start the troupe: %w", err)
	}
	return nil
}

// topology is what the CNI makes of every new VPP.
func (w *world) topology(v *simulator.VPP) {
	err := connectPods(v, w.cluster.ended)
	if w.snat && !w.detached {
		err = errors.Join(err, connectOverlay(v))
	}
	if w.cluster.ip6 {
		err = errors.Join(err, connectIPv6(v, w.cluster.ended))
	}
	if err != nil {
		w.breach("build the topology: %v", err)
	}
}

// connectPods connects the node to its network and to its pods.
func connectPods(v *simulator.VPP, ended map[int]bool) error {
	_, err := v.AddInterface(uplink, []netip.Prefix{netip.MustParsePrefix(nodeIP + "/24")}, true)
	err = errors.Join(err, v.DefaultRoute(uplink, netip.MustParseAddr("192.168.16.254")))
	for i := range podsPerNode + 1 { // the last one is for an observed service
		if ended[i] {
			continue
		}
		_, e := v.AddPod(podName(i), podIP(1, i))
		err = errors.Join(err, e)
	}
	return err
}

// breach notes that something does not hold that always must.
func (w *world) breach(format string, args ...any) {
	const most = 20
	if len(w.broken) < most {
		w.broken = append(w.broken, w.now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// virtually is later in a simulation.
func (w *world) virtually(d time.Duration, fn func()) {
	if at := w.sim.Now().Add(d); at.After(w.outage) {
		w.outage = at
	}
	w.sim.AfterFunc(d, fn)
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

// stop ends the troupe and reports what does not end.
func (w *world) stop() error {
	err := w.sys.Shutdown(context.Background())
	w.endSource()
	return errors.Join(err, w.vpp.VPP.Close())
}
