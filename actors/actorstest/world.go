package actorstest

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	vpplink "github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Config is the configuration of a World. The zero value is a furnished node on the real
// dispatcher.
type Config struct {
	// Node is the name of the node; "" = probe.Node.
	Node string
	// Empty: VPP has no interfaces and the cluster no objects.
	Empty bool
	// IPv6: the node has IPv6 besides, and CNAT serves it.
	IPv6 bool
	// CNAT: with IPv6, CNAT serves IPv4 as well.
	CNAT bool
	// Serving are the settings of the services; without networks, the result of the function
	// Serving is used.
	Serving service.Config
	// VPP are options of the simulated VPP on the real dispatcher.
	VPP simulator.Options
	// Socket is the API socket of a VPP that the test has started, with the interfaces of
	// probe.Topology; "" = VPP is simulated.
	Socket string
	// Sim lets everything run in virtual time; nil = on the real dispatcher.
	Sim *runtime.SimOptions
	// Deps changes the Deps of every troupe; nil = no changes.
	Deps func(*actors.Deps)
	// Tree makes the tree of every troupe; nil = actors.Tree.
	Tree func(*actors.Deps) runtime.Spec
	// System changes the options of every actor system; nil = nothing.
	System func(*runtime.Options)
	// Chain wraps the source before the relay, as kube/mirror does; nil = no wrapper.
	Chain func(kube.Source) kube.Source
}

// Timing has shorter intervals than a node, so that tests need not wait for half a minute.
func Timing() actors.Timing {
	return actors.Timing{Retry: 200 * time.Millisecond, Rediscover: 500 * time.Millisecond, RediscoverSoon: 200 * time.Millisecond, Staleness: time.Hour}
}

// World is one node: a cluster in memory, a simulated VPP, and a troupe between Start and Stop. A
// second Start is a restart of the agent with the same cluster and VPP.
type World struct {
	testing.TB
	Config

	// Of the test, made by New.

	// Source is the cluster.
	Source *Source
	// VPP is the simulated VPP; nil with Config.Socket.
	VPP *simulator.VPP
	// Sim and Stream are the scheduler and the connection to VPP in virtual time; nil on the
	// real dispatcher.
	Sim    *runtime.Sim
	Stream *virtual.Stream

	// Of the present troupe, or of the last one, made by Start.

	// Meter counts the requests of the troupe to VPP; nil in virtual time, where Stream counts.
	Meter *vpplink.Meter
	// Deps, System and Readiness are what the troupe was given and made of.
	Deps      *actors.Deps
	System    *runtime.System
	Readiness *health.Readiness
	fatal     atomic.Pointer[string] // why the actor system gave up; nil = it has not
	endSource func()                 // ends the source; nil = no troupe runs
}

// New builds a node; nothing of the troupe runs before Start. The end of the test closes it.
func New(t testing.TB, config Config) *World {
	t.Helper()
	if config.Node == "" {
		config.Node = probe.Node
	}
	if config.Serving.ServiceCIDRs == nil && !config.Empty {
		config.Serving = Serving()
	}
	w := &World{TB: t, Config: config, Source: NewSource(config.Node), Readiness: &health.Readiness{}}
	topology := probe.Topology
	if config.Empty {
		topology = func(*simulator.VPP) {}
	} else {
		w.Source.furnish(config.IPv6)
	}
	if config.IPv6 {
		topology = probe.DualTopology
		w.Serving.ServiceCIDRs = append(w.Serving.ServiceCIDRs, netip.MustParsePrefix("fd00:96::/112"))
	}
	if config.Sim != nil {
		w.Sim = runtime.NewSim(*config.Sim)
		w.Source.park = w.Sim.Park
		w.Stream = virtual.New(w.Sim, topology, nil)
		w.VPP = w.Stream.VPP
	} else if config.Socket == "" {
		config.VPP.OnBoot, config.VPP.AutoRestart = topology, true
		w.VPP = simulator.New(config.VPP)
		if err := w.VPP.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
			t.Fatal(err)
		}
		w.Socket = w.VPP.Socket()
	}
	t.Cleanup(w.Close)
	return w
}

// Simulate builds a node in virtual time, starts its troupe and plays.
func Simulate(t testing.TB, seed uint64, config Config, play func(*World)) {
	t.Helper()
	config.Sim = &runtime.SimOptions{Seed: seed, MessageCost: 200 * time.Microsecond, StepLimit: 5_000_000}
	w := New(t, config)
	defer w.Close()
	w.Start()
	play(w)
}

// Close ends everything. A second call does nothing.
func (w *World) Close() {
	w.Helper()
	w.Stop()
	if w.VPP != nil {
		_ = w.VPP.Close()
	}
}

// Start runs a troupe.
func (w *World) Start() {
	w.Helper()
	w.Readiness = &health.Readiness{}
	log, options := slog.New(slog.DiscardHandler), runtime.Options{}
	if w.Sim != nil {
		options = w.Sim.Options()
	} else {
		log = slog.New(slog.NewTextHandler(testLog{w.TB}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	options.Logger, options.OnFatal = log, func(reason string) { w.fatal.Store(&reason) }
	source := kube.Source(w.Source)
	if w.Chain != nil {
		source = w.Chain(source)
	}
	now := time.Now
	if w.Sim != nil {
		now = w.Sim.Now
	}
	feed := kube.NewRelay(source, nil, now)
	w.Deps = &actors.Deps{
		NodeName: w.Node, Feed: feed, Serving: w.Serving, NAT44: nat44.Config{Node: w.Node, Pads: true, Ground: reserved()}, Readiness: w.Readiness, Log: log,
	}
	if w.IPv6 {
		w.Deps.CNAT = &cnat.Config{Node: w.Node, IPv4: w.CNAT, Unreachable: w.Deps.NAT44.Unreachable, Ground: reserved()}
	}
	w.connect(log)
	if w.Config.Deps != nil {
		w.Config.Deps(w.Deps)
	}
	if w.Config.System != nil {
		w.Config.System(&options)
	}
	w.System = runtime.NewSystem(options)
	w.run(feed)
	tree := w.Config.Tree
	if tree == nil {
		tree = actors.Tree
	}
	if _, err := w.System.SpawnRoot(address.RootName, tree(w.Deps)); err != nil {
		w.Fatal(err)
	}
}

// connect gives the troupe its connection to VPP and, in virtual time, its node sync.
func (w *World) connect(log *slog.Logger) {
	if w.Sim != nil {
		w.Deps.Link, w.Deps.Park, w.Deps.NodeSync = w.Stream, w.Sim.Park, &nodeSync{park: w.Sim.Park}
		return
	}
	hints := make(chan struct{}, 1)
	w.Meter = vpplink.NewMeter(vpplink.New(vpplink.Config{Socket: w.Socket, OnEvent: func() {
		select {
		case hints <- struct{}{}:
		default:
		}
	}}, log))
	w.Deps.Link, w.Deps.InterfaceEvents, w.Deps.Timing = w.Meter, hints, Timing()
}

// run runs the source until Stop.
func (w *World) run(feed *kube.Relay) {
	ctx, cancel := context.WithCancel(context.Background())
	read := func() {
		if err := feed.Run(ctx); err != nil {
			w.Errorf("the source ended: %v", err)
		}
	}
	if w.Sim != nil {
		w.Sim.Start("bootstrap", "source", read)
		w.endSource = func() {
			cancel()
			w.Run(0)
		}
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		read()
	}()
	w.endSource = func() {
		cancel()
		<-ended
	}
}

// Stop ends the troupe as the agent does. Without one it does nothing.
func (w *World) Stop() {
	w.Helper()
	if w.endSource == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := w.System.Shutdown(ctx); err != nil {
		w.Errorf("shutdown: %v", err)
	}
	w.endSource()
	w.endSource = nil
	if w.Sim != nil { // the connection of a process ends with it
		w.Stream.Disconnect("the agent ended")
		w.Stream.Connect()
	}
}

// GaveUp returns why the actor system gave up; "" = it has not.
func (w *World) GaveUp() string {
	if reason := w.fatal.Load(); reason != nil {
		return *reason
	}
	return ""
}

// Reader looks into VPP past the connection of the troupe.
func (w *World) Reader() vpplink.Caller { return virtual.NewReader(w.VPP) }

// testLog writes the log of the troupe into the test's.
type testLog struct{ testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	defer func() { _ = recover() }() // a line after the end of the test has nowhere to go
	l.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

var errTwice = errors.New("is running already")

// reserved are ports of the nodes that no service may claim: the ports of SSH and the kubelet.
func reserved() rule.Ground {
	return rule.Ground{Reserved: rule.Ports{{Number: 22, Proto: rule.TCP}: true, {Number: 10250, Proto: rule.TCP}: true}}
}
