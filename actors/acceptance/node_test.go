package acceptance_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// patience is how long a test waits for something that should happen at once. No test asserts on time.
const patience = 60 * time.Second

// timing makes the troupe repeat itself often, so that a lost message costs a test little.
var timing = actors.Timing{
	Retry: 200 * time.Millisecond, Rediscover: time.Second, Audit: time.Second, Digest: time.Second, Backoff: 20 * time.Millisecond,
}

// node is one node with everything: a cluster in memory, a simulated VPP behind its socket, a troupe on the real dispatcher.
type node struct {
	*testing.T
	name    string
	serving service.Config
	source  *source
	vpp     *simulator.VPP
	places  *places
	// checkups are its health-check node ports.
	checkups *checkups
	// ahead is how far VPP's clock is before the real one.
	ahead atomic.Int64

	// link, system and readiness are those of the running troupe.
	link      *overheard
	system    *runtime.System
	readiness *health.Readiness
	// known are all services that ever were, by key.
	known map[string]bool
	// context is what the node is, as the services should see it.
	context *messages.NodeContext
	// port is the last client port that was used.
	port uint16
}

// newNode builds a node of the cluster, with a VPP that has all plugins but the named ones; nothing of the troupe runs before start.
func newNode(t *testing.T, name string, serving service.Config, without ...string) *node {
	t.Helper()
	n := &node{T: t, name: name, serving: serving, source: newSource(name), checkups: newCheckups(t), known: map[string]bool{}, port: 1023}
	n.vpp = simulator.New(simulator.Options{
		Clock: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }, WithoutPlugins: without,
	})
	if err := n.vpp.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.vpp.Close() })
	return n
}

// start runs a troupe; a second start after stop is an agent restart.
func (n *node) start() {
	n.Helper()
	n.startWith(n.source)
}

// startWith runs a troupe on another source. It is configured as the agent does it.
func (n *node) startWith(from kube.Source) {
	n.Helper()
	n.readiness = &health.Readiness{}
	log := slog.New(slog.NewTextHandler(&testLog{t: n.T}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	hints := make(chan struct{}, 1)
	n.link = &overheard{Link: link.New(link.Config{Socket: n.vpp.Socket(), OnEvent: func() {
		select {
		case hints <- struct{}{}:
		default:
		}
	}}, log)}
	nat := nat44.Config{Node: n.name, Pads: true, Unreachable: true}
	deps := &actors.Deps{
		NodeName: n.name, Source: from, Serving: n.serving, Link: n.link, InterfaceEvents: hints, NAT44: nat,
		HealthChecks: n.checkups.servers, Readiness: n.readiness, Log: log, Timing: timing,
	}
	system := runtime.NewSystem(runtime.Options{Logger: log, OnFatal: func(reason string) { n.Errorf("the troupe gave up: %s", reason) }})
	n.system = system
	n.Cleanup(func() { n.shutdown(system) })
	if _, err := system.SpawnRoot(address.RootName, actors.Tree(deps)); err != nil {
		n.Fatal(err)
	}
}

// stop ends the troupe as the agent does.
func (n *node) stop() {
	n.Helper()
	n.shutdown(n.system)
}

func (n *node) shutdown(system *runtime.System) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := system.Shutdown(ctx); err != nil {
		n.Errorf("shutdown: %v", err)
	}
}

// until waits for a condition, which says what is still missing.
func (n *node) until(what string, missing func() string) {
	n.Helper()
	deadline := time.Now().Add(patience)
	pause := time.Millisecond
	for {
		reason := missing()
		if reason == "" {
			return
		}
		if time.Now().After(deadline) {
			n.Fatalf("%s: not within %s: %s\nreadiness: %+v\nVPP:\n%s", what, patience, reason, n.readiness.Load(), n.vpp.State())
		}
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// settled waits until everything that was changed has arrived: every actor on the way has seen it, every service serves what the pure
// rules make of the input, VPP holds it and its interfaces have their roles.
func (n *node) settled() {
	n.Helper()
	n.barrier()
	n.until("in sync", n.unsettled)
	n.barrier()
	n.until("in sync", n.unsettled)
}

// barrier passes a question through the actors in the order in which a change travels: mailboxes are queues, so whoever answers has seen
// what came before.
func (n *node) barrier() {
	paths := []string{address.Watch, address.Registry}
	for _, key := range slices.Sorted(maps.Keys(n.source.services())) {
		paths = append(paths, address.Service(key))
	}
	for _, path := range append(paths, address.Renderer("nat44"), address.Renderer("routes"), address.Introspect) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, _ = n.system.Inspect(ctx, path) // an actor that is not there yet has seen nothing; unsettled waits for it
		cancel()
	}
}

// unsettled says what is still missing; "" = nothing.
func (n *node) unsettled() string {
	if report := n.readiness.Load(); !report.Ready {
		return "not ready: " + report.Reasons()
	}
	inputs := n.source.services()
	statuses := n.statuses()
	if statuses == nil || len(statuses) != len(inputs) {
		return fmt.Sprintf("known are %q, want %q", slices.Sorted(maps.Keys(statuses)), slices.Sorted(maps.Keys(inputs)))
	}
	for key, in := range inputs {
		n.known[key] = true
		if reason := unfinished(statuses[key], service.Hash(service.Resolve(in, n.context, n.serving))); reason != "" {
			return key + ": " + reason
		}
	}
	for key := range n.known {
		if inputs[key] != nil {
			continue
		}
		if _, alive := n.system.Actor(address.Service(key)); alive {
			return key + " has not retired"
		}
		delete(n.known, key)
	}
	if reason := n.rolesMissing(statuses); reason != "" {
		return reason
	}
	return n.differs()
}

// differs says what the renderer would still do to VPP; "" = nothing.
func (n *node) differs() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var operations []string
	for _, renderer := range actors.Renderers() {
		answer, err := n.system.Ask(ctx, address.Renderer(renderer), &render.DiffQuery{})
		if err != nil {
			return err.Error()
		}
		page := answer.(*render.DiffPage)
		if page.Err != nil {
			return page.Err.Error()
		}
		operations = append(operations, page.Operations...)
	}
	return strings.Join(operations, "; ")
}

// unfinished says what is missing until VPP serves the view of this hash.
func unfinished(status *messages.ServiceStatus, want uint64) string {
	switch {
	case status == nil:
		return "not known"
	case service.Hash(status.GetView()) != want:
		return "serves something else than its input says"
	case len(status.GetRenders()) != len(actors.Renderers()):
		return "not rendered"
	}
	for _, ack := range status.GetRenders() {
		if ack.GetState() != messages.RenderState_RENDER_IN_SYNC || ack.GetHash() != want {
			return fmt.Sprintf("%s is %s %s", ack.GetRenderer(), ack.GetState(), ack.GetError())
		}
	}
	return ""
}

// rolesMissing says which interface that packets use has not both NAT roles: the uplink, the host, pods that Kubernetes knows and those that
// back a service.
func (n *node) rolesMissing(statuses map[string]*messages.ServiceStatus) string {
	details, err := n.vpp.Exec(&nat44_ed.Nat44InterfaceDump{})
	if err != nil {
		return err.Error()
	}
	both := map[uint32]bool{}
	for _, detail := range details {
		if d, ok := detail.(*nat44_ed.Nat44InterfaceDetails); ok {
			const roles = nat_types.NAT_IS_INSIDE | nat_types.NAT_IS_OUTSIDE
			both[uint32(d.SwIfIndex)] = d.Flags&roles == roles
		}
	}
	interfaces := n.vpp.Interfaces()
	for name := range n.places.needed(statuses) {
		if !both[interfaces[name]] {
			return "no roles on " + name
		}
	}
	return ""
}

// statuses asks introspection for all services, by key; nil when nobody answers.
func (n *node) statuses() map[string]*messages.ServiceStatus {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := n.system.Ask(ctx, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil
	}
	all := map[string]*messages.ServiceStatus{}
	for _, s := range answer.(*status.ServicesPage).Services {
		all[s.GetKey()] = s
	}
	return all
}

// kill makes an actor fail and waits until its successor runs.
func (n *node) kill(path string) {
	n.Helper()
	before, ok := n.system.Actor(path)
	if !ok {
		n.Fatalf("no actor %s", path)
	}
	if err := n.system.Kill(path); err != nil {
		n.Fatalf("kill %s: %v", path, err)
	}
	n.until("restart of "+path, func() string {
		if now, ok := n.system.Actor(path); !ok || now.Incarnation <= before.Incarnation || now.State == runtime.StateBackoff {
			return "still down"
		}
		return ""
	})
}

// setNode tells the cluster what this node is.
func (n *node) setNode(self *messages.Node) {
	n.source.change(func(s *kube.Store) { s.SetNode(self, nil) })
	n.context = &messages.NodeContext{Node: self, Addresses: self.GetAddresses()}
}

// mutating is how many requests VPP got that change something.
func (n *node) mutating() uint64 { return n.vpp.Counters().Mutating() }

// clientPort gives a port that no connection of this node has used for a long time.
func (n *node) clientPort() uint16 {
	if n.port++; n.port < 1024 {
		n.port = 1024
	}
	return n.port
}

// prefixes parses networks.
func prefixes(t *testing.T, texts []string) []netip.Prefix {
	t.Helper()
	var all []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Masked())
	}
	return all
}

// testLog writes the log of the troupe into the test's.
type testLog struct{ t *testing.T }

// Write satisfies io.Writer.
func (l *testLog) Write(p []byte) (int, error) {
	defer func() { _ = recover() }() // a line after the end of the test has nowhere to go
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
