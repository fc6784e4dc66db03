package actors

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// house is the whole troupe in virtual time, on a seeded scheduler: a cluster in memory, a simulated VPP without a socket, a node sync that
// agrees to everything.
type house struct {
	*testing.T
	witness
	wire *wire
	sim  *runtime.Sim
}

// agreeable is a node sync that gives everybody an ID. It can be run again, but not twice at a time.
type agreeable struct{ running atomic.Bool }

func (a *agreeable) Run(ctx context.Context, out func(*messages.ClusterState)) error {
	if a.running.Swap(true) {
		return errors.New("is already running")
	}
	defer a.running.Store(false)
	out(&messages.ClusterState{Claim: messages.ClaimState_CLAIM_HELD, Id: 1})
	<-ctx.Done()
	return nil
}

func (*agreeable) SetNodes(*messages.NodeInput) {}
func (*agreeable) Publish([]string)             {}

// blocking are the functions of Context.Go that wait for something; the others are steps of the simulation.
var blocking = map[string]bool{"external": true, "source": true, "link": true, "nodesync": true, "interface-events": true}

// inHouse builds a house and plays in it; with may change what it is built of.
func inHouse(t *testing.T, seed uint64, with func(h *house, o *runtime.Options), play func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{T: t, wire: newWire(), witness: witness{cluster: newAPIServer(), foreign: map[frontend.Key]bool{}}}
		h.vpp = h.wire
		h.deps = &Deps{
			NodeName: testNode, Source: h.cluster.source(), Link: h.wire, Readiness: &Readiness{},
			NAT44: nat44.Config{Node: testNode, Pads: true}, Log: slog.New(slog.DiscardHandler),
			NodeSync: &agreeable{}, Serving: testServing(),
		}
		h.sim = runtime.NewSim(runtime.SimOptions{Seed: seed, Bubble: true, MessageCost: 200 * time.Microsecond, StepLimit: 3_000_000})
		o := h.sim.Options()
		o.Go = func(path, name string, run func()) {
			if blocking[name] {
				go run()
			} else {
				h.sim.Go(path, name, run)
			}
		}
		o.OnFatal = func(reason string) { h.fatal.Store(&reason) }
		if with != nil {
			with(h, &o)
		}
		h.sys = runtime.NewSystem(o)
		if _, err := h.sys.SpawnRoot(RootName, Tree(h.deps)); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := h.sys.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			_ = h.wire.vpp.Close()
		}()
		play(h)
	})
}

// run lets virtual time pass.
func (h *house) run(d time.Duration) {
	h.Helper()
	if err := h.sim.RunFor(d); err != nil {
		h.Fatal(err)
	}
}

// settle waits until everything is as it should be; after too long it fails with what is not.
func (h *house) settle(limit time.Duration) {
	h.Helper()
	for deadline := time.Now().Add(limit); ; h.run(time.Second) {
		wrong := h.wrong()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			h.journal()
			h.Fatalf("not settled after %v:\n%s", limit, wrong)
		}
	}
}

// quiet checks that nothing is left to do: VPP is not written to and nobody turns unready, for longer than every retry.
func (h *house) quiet() {
	h.Helper()
	writes, _ := h.wire.counts()
	since := h.deps.Readiness.Load().Since
	h.run(3 * time.Minute)
	if after, _ := h.wire.counts(); after != writes {
		h.Errorf("%d writes while nothing changed", after-writes)
	}
	if report := h.deps.Readiness.Load(); !report.Ready || !report.Since.Equal(since) {
		h.Errorf("readiness flapped: %+v", report)
	}
	if wrong := h.wrong(); wrong != "" {
		h.Errorf("while nothing changed:\n%s", wrong)
	}
	if h.Failed() {
		h.journal()
	}
}

// journal logs what happened last, newest first, for a test that has failed.
func (h *house) journal() {
	answer, err := h.sys.Ask(context.Background(), PathJournal, &EventsQuery{Limit: 30})
	if err != nil {
		h.Log(err)
		return
	}
	for _, e := range answer.(*EventsPage).Events {
		h.Log(time.Unix(0, e.GetTime()).UTC().Format("15:04:05.000"), e.GetActor(), e.GetObject(), e.GetText(), e.GetError(), e.GetOperations())
	}
}

// serve adds a service with endpoints to the cluster.
func (h *house) serve(name, ip string, endpoints ...string) {
	h.cluster.change(func() {
		s := testService(name, ip)
		slice := testSlice(name, endpoints...)
		s.Namespace, slice.Namespace = "ns", "ns"
		h.cluster.services["ns/"+name], h.cluster.slices["ns/"+slice.GetName()] = s, slice
	})
}

// occupy lets somebody else take an address in VPP, or give it back.
func (h *house) occupy(k frontend.Key, take bool) {
	vip := netip.AddrPortFrom(k.Addr, k.Port)
	if !take {
		if _, err := h.wire.vpp.ForeignRemove(vip, k.Proto); err != nil {
			h.Fatal(err)
		}
		delete(h.foreign, k)
		return
	}
	backend := func(text string) simulator.Backend {
		return simulator.Backend{Addr: netip.MustParseAddrPort(text), Weight: 1}
	}
	retval, err := h.wire.vpp.ForeignAdd(simulator.ForeignRow{
		VIP: vip, Proto: k.Proto, Tag: "theirs", Backends: []simulator.Backend{backend("10.9.9.1:80"), backend("10.9.9.2:80")},
	})
	if err != nil {
		h.Fatal(err)
	}
	if retval == 0 {
		h.foreign[k] = true
	}
}
