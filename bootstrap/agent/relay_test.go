package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// once is a source that refuses to be run twice, as the real ones do, and answers each Refresh with a Snapshot.
type once struct {
	t       *testing.T
	ran     bool
	fail    chan error
	refresh chan struct{}
}

// Run satisfies kube.Source.
func (o *once) Run(ctx context.Context, sink kube.Sink) error {
	if o.ran {
		o.t.Error("the source was run twice")
	}
	o.ran = true
	sink.Health(true, "")
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-o.fail:
			return err
		case <-o.refresh:
			sink.Snapshot(&messages.Snapshot{Complete: true})
		}
	}
}

// Refresh satisfies kube.Source.
func (o *once) Refresh() { o.refresh <- struct{}{} }

// audience is a sink that says when it was told something.
type audience struct {
	mu    sync.Mutex
	heard []string
	news  chan struct{}
}

func (a *audience) hear(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, what)
	a.news <- struct{}{}
}

// ServiceChanged satisfies kube.Sink.
func (a *audience) ServiceChanged(*messages.ServiceInput) { a.hear("service") }

// NodeChanged satisfies kube.Sink.
func (a *audience) NodeChanged(*messages.NodeInput) { a.hear("node") }

// Snapshot satisfies kube.Sink.
func (a *audience) Snapshot(*messages.Snapshot) { a.hear("snapshot") }

// Health satisfies kube.Sink.
func (a *audience) Health(bool, string) { a.hear("health") }

// has waits until something was heard.
func (a *audience) has(what string) {
	for {
		<-a.news
		a.mu.Lock()
		found := slices.Contains(a.heard, what)
		a.mu.Unlock()
		if found {
			return
		}
	}
}

func TestEveryListenerGetsASnapshotFromOneRunOfTheSource(t *testing.T) {
	source := &once{t: t, fail: make(chan error), refresh: make(chan struct{}, 16)}
	r := newRelay(source)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = r.work(ctx) })
	for range 3 {
		listening, leave := context.WithCancel(ctx)
		sink := &audience{news: make(chan struct{}, 64)}
		done := make(chan error, 1)
		go func() { done <- r.Run(listening, sink) }()
		sink.has("snapshot")
		leave()
		if err := <-done; err != nil {
			t.Errorf("listening ended with %v", err)
		}
	}
	stop()
	all.Wait()
}

func TestTheEndOfTheSourceIsToldToWhoeverListens(t *testing.T) {
	broken := errors.New("broken")
	source := &once{t: t, fail: make(chan error, 1), refresh: make(chan struct{}, 16)}
	r := newRelay(source)
	source.fail <- broken
	_ = r.work(t.Context())
	for range 2 {
		if err := r.Run(t.Context(), &audience{news: make(chan struct{}, 64)}); !errors.Is(err, broken) {
			t.Errorf("listening ended with %v, want %v", err, broken)
		}
	}
}
