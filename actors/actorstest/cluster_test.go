package actorstest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/messages"
)

// running runs a source until the returned function is called, which waits for its end.
func running(s *Source, sink kube.Sink) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, sink) }()
	return func() {
		cancel()
		<-ended
	}
}

// synced waits until the source has a sink.
func synced(s *Source) {
	for there := false; !there; s.locked(func() { there = s.sink != nil }) {
		time.Sleep(100 * time.Microsecond)
	}
}

// TestSourceKeepsTheContract: every listener sees what kube.Source promises and ends with the
// cluster, over several runs.
func TestSourceKeepsTheContract(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := NewSource(probe.Node)
		s.furnish(false)
		listener := kubetest.NewMirror()
		stop := running(s, listener)
		synced(s)
		rt.Repeat(map[string]func(*rapid.T){
			"serve": func(t *rapid.T) {
				s.Serve(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), rapid.SampledFrom([]string{"10.96.0.1", "10.96.0.2"}).Draw(t, "ip"), "10.1.1.2")
			},
			"delete": func(t *rapid.T) {
				key := "default/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
				s.Change(func(store *kube.Store) { store.Delete("Service", key) })
			},
			"refresh": func(*rapid.T) { s.Refresh() },
			"run again": func(t *rapid.T) {
				stop()
				listener.Check(t)
				s.Serve("meanwhile", "10.96.0.3")
				listener = kubetest.NewMirror()
				stop = running(s, listener)
				synced(s)
			},
		})
		stop()
		listener.Check(rt)
		want := s.Snapshot()
		want.Generation = 0 // of the Snapshot itself: the receiver has no such number
		if diff := cmp.Diff(want, listener.View().Snapshot(), protocmp.Transform()); diff != "" {
			rt.Errorf("the listener differs (-source +listener):\n%s", diff)
		}
	})
}

// calls notes what a sink is told.
type calls struct{ list []string }

func (c *calls) ServiceChanged(in *messages.ServiceInput) { c.list = append(c.list, in.GetKey()) }
func (c *calls) NodeChanged(*messages.NodeInput)          { c.list = append(c.list, "node") }
func (c *calls) Snapshot(m *messages.Snapshot) {
	c.list = append(c.list, map[bool]string{true: "all", false: "some"}[m.GetComplete()])
}

func (c *calls) Health(h kube.Health) {
	c.list = append(c.list, map[bool]string{true: "well", false: "blind: "}[h.OK]+h.Reason)
}

// TestHold: a source that is held lists nothing, or not all, until Release.
func TestHold(t *testing.T) {
	for partial, first := range map[bool][]string{false: {"blind: no answer"}, true: {"some", "blind: no answer"}} {
		s, c := NewSource(probe.Node), &calls{}
		s.Hold("no answer", partial)
		stop := running(s, c)
		synced(s)
		s.Release()
		for done := false; !done; s.locked(func() { done = len(c.list) >= len(first)+2 }) {
			time.Sleep(100 * time.Microsecond)
		}
		stop()
		if diff := cmp.Diff(append(first, "all", "well"), c.list); diff != "" {
			t.Errorf("partial %t (-want +got):\n%s", partial, diff)
		}
	}
}
