package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/mirror"
	"github.com/troupe-vpp/troupe/messages"
)

// storeSource is a real source on a Store that makes its deliveries within Run, on one goroutine.
type storeSource struct {
	store *kube.Store
	asked bool
	play  func(kube.Sink)
}

// Run satisfies kube.Source.
func (s *storeSource) Run(_ context.Context, sink kube.Sink) error {
	s.play(sink)
	return nil
}

// Refresh satisfies kube.Source.
func (s *storeSource) Refresh() { s.asked = true }

// answer delivers the requested Snapshot.
func (s *storeSource) answer(sink kube.Sink) {
	if s.asked {
		s.asked = false
		sink.Snapshot(s.store.Snapshot())
	}
}

// TestChain: with the chain of production (source, mirror, relay) every listener sees the contract
// of kube.Source, and ends with the state of the source, whenever it begins to listen.
func TestChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := &storeSource{store: kube.NewStore("n1")}
		files := durable.NewMemory()
		chain := kube.NewRelay(mirror.New(source, mirror.NewStore("d", files), mirror.Config{Node: "n1"}, slog.New(slog.DiscardHandler)), nil, time.Now)
		listener := kubetest.NewMirror()
		chain.Listen(listener)
		source.play = func(sink kube.Sink) {
			source.answer(sink)
			healthy := 0
			t.Repeat(map[string]func(*rapid.T){
				"change": func(t *rapid.T) {
					name := fmt.Sprintf("s%d", rapid.IntRange(0, 3).Draw(t, "service"))
					if rapid.Bool().Draw(t, "delete") {
						source.store.Delete("Service", "a/"+name)
					} else {
						ip := fmt.Sprintf("10.96.0.%d", rapid.IntRange(1, 4).Draw(t, "address"))
						source.store.Set(&messages.Service{Namespace: "a", Name: name, ClusterIps: []string{ip}}, nil)
					}
					source.store.Commit().Deliver(sink)
				},
				"node": func(t *rapid.T) {
					source.store.Set(&messages.Node{Name: "n1", Zone: rapid.StringN(0, 1, 1).Draw(t, "zone")}, nil)
					source.store.Commit().Deliver(sink)
				},
				"health": func(*rapid.T) {
					healthy++
					sink.Health(kube.Health{OK: healthy%2 == 1, Reason: fmt.Sprint(healthy)})
				},
				"listen": func(t *rapid.T) {
					listener.Check(t)
					listener = kubetest.NewMirror()
					chain.Listen(listener)
				},
				"refresh": func(*rapid.T) { chain.Refresh() },
				"answer":  func(*rapid.T) { source.answer(sink) },
			})
			source.answer(sink)
		}
		if err := chain.Run(t.Context()); err == nil {
			t.Error("the end of the source is no error")
		}
		listener.Check(t)
		want := source.store.Snapshot()
		want.Generation = 0 // generation of the Snapshot itself, which the receiver does not keep
		if diff := cmp.Diff(want, listener.View().Snapshot(), protocmp.Transform()); diff != "" {
			t.Errorf("the last listener differs (-source +listener):\n%s", diff)
		}
		saved, err := mirror.NewStore("d", files).Snapshot()
		if err != nil || len(saved.GetSnapshot().GetServices()) != len(want.GetServices()) {
			t.Errorf("saved: %v, %v", saved, err)
		}
	})
}
