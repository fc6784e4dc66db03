package connector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/connector/store"
)

// play runs a test in virtual time.
func play(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// TestConnector: stories of the whole tree on a cluster that refuses what the API server refuses.
func TestConnector(t *testing.T) {
	play(t, "A1, A15: objects are written once", func(t *testing.T) {
		o := start(t, newCluster(), nil, "yaml")
		defer o.stop()
		o.sources["yaml"].say(true, "db", "web")
		o.want("create EndpointSlice db", "create EndpointSlice web", "create Service db", "create Service web")
		time.Sleep(10 * time.Second) // what was written is compared once more
		passes := o.deps.board.aggregator.Load().passes
		o.sources["yaml"].say(true, "db", "web")
		o.want()
		if n := o.deps.board.aggregator.Load().passes - passes; n != 0 {
			t.Errorf("%d comparisons although nothing has changed", n)
		}
	})
	play(t, "A5, A7: what vanishes waits for a complete snapshot, two confirmations, or an operator", func(t *testing.T) {
		c := newCluster()
		o := start(t, c, nil, "yaml")
		o.sources["yaml"].say(true, "a", "b", "c")
		o.want("create EndpointSlice a", "create EndpointSlice b", "create EndpointSlice c", "create Service a", "create Service b", "create Service c")
		o.stop()
		o = start(t, c, nil, "yaml") // it knows nothing of the one before
		defer o.stop()
		o.want()
		o.sources["yaml"].say(false)
		o.want()
		o.sources["yaml"].say(true, "a")
		o.want()
		if held := o.deps.board.aggregator.Load().Sources[0].Held; !slices.Equal(held, []string{"b", "c"}) {
			t.Errorf("held %q", held)
		}
		answer, err := o.system.Ask(context.Background(), aggregatorPath, &confirm{"yaml"})
		if err != nil || !slices.Equal(answer.(*confirmed).released, []string{"b", "c"}) {
			t.Errorf("%v %v", answer, err)
		}
		o.want("delete EndpointSlice b", "delete EndpointSlice c", "delete Service b", "delete Service c")
		if answer, err = o.system.Ask(context.Background(), aggregatorPath, &confirm{"other"}); err != nil || answer.(*confirmed).known {
			t.Errorf("%v %v", answer, err)
		}
	})
	play(t, "A10: a foreign Service stays as it is, until it goes", func(t *testing.T) {
		c := newCluster()
		c.services["web"] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "outside", UID: "u", ResourceVersion: "1"}}
		o := start(t, c, nil, "yaml")
		defer o.stop()
		o.sources["yaml"].say(true, "web")
		o.want()
		if got := o.events.take(); !slices.Equal(got, []string{"NameConflict Service outside/web"}) {
			t.Errorf("events %q", got)
		}
		c.mu.Lock()
		delete(c.services, "web")
		c.changed()
		c.mu.Unlock()
		o.want("create EndpointSlice web", "create Service web")
	})
	play(t, "A17: a refused write is tried again, later and later, the others are not delayed", func(t *testing.T) {
		c := newCluster()
		var attempts atomic.Int64
		c.refuse = func(write string) error {
			if !strings.HasSuffix(write, "Service bad") {
				return nil
			}
			if attempts.Add(1) > 5 {
				return nil
			}
			return &store.WriteError{Reason: store.WriteUnavailable, Err: errors.New("500")}
		}
		o := start(t, c, nil, "yaml")
		defer o.stop()
		o.sources["yaml"].say(true, "bad", "good")
		o.want("create EndpointSlice good", "create Service good")
		if failing := o.deps.board.sink.Load().Failing; len(failing) != 1 || !strings.HasPrefix(failing[0], "bad: unavailable") {
			t.Errorf("failing %q", failing)
		}
		time.Sleep(5 * time.Second)
		if n := attempts.Load(); n < 2 || n > 4 { // at 1, 3 and 7 s, more or less
			t.Errorf("%d attempts", n)
		}
		time.Sleep(time.Minute)
		o.want("create EndpointSlice bad", "create Service bad")
	})
	play(t, "A18: a source that hangs or fails keeps no other one from working", func(t *testing.T) {
		o := start(t, newCluster(), nil, "slow", "broken", "yaml")
		defer o.stop() // within 2 s
		o.sources["yaml"].say(true, "web")
		o.want("create EndpointSlice web", "create Service web")
	})
	play(t, "A21: a connector that does not lead writes nothing, and takes over at once", func(t *testing.T) {
		lead, other := make(chan struct{}), make(chan struct{})
		o := start(t, newCluster(), func(ctx context.Context, leads func(context.Context)) {
			for _, wait := range []chan struct{}{lead, other} {
				select {
				case <-wait:
				case <-ctx.Done():
					return
				}
				term, end := context.WithTimeout(ctx, 10*time.Second)
				leads(term)
				end()
			}
		}, "yaml")
		defer o.stop()
		o.sources["yaml"].say(true, "a")
		o.want()
		close(lead)
		o.want("create EndpointSlice a", "create Service a")
		time.Sleep(10 * time.Second)
		o.sources["yaml"].say(true, "a", "b")
		o.want()
		close(other)
		o.want("create EndpointSlice b", "create Service b")
	})
	play(t, "every actor is killed: nothing is lost, nothing is deleted", func(t *testing.T) {
		o := start(t, newCluster(), nil, "yaml")
		defer o.stop()
		o.sources["yaml"].say(true, "a")
		o.want("create EndpointSlice a", "create Service a")
		for i, path := range []string{sinkPath, aggregatorPath, sourcesPath, sourcesPath + "/yaml"} {
			name := string(rune('b' + i))
			if err := o.system.Kill(path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			o.sources["yaml"].say(true, append([]string{"a", "b", "c", "d", "e"}[:i+1], name)...)
			o.want("create EndpointSlice "+name, "create Service "+name)
		}
	})
}

// TestA20Bursts: virtual time, so the moments of the passes are exact.
func TestA20Bursts(t *testing.T) {
	every := func(n int, interval time.Duration) func(*cluster) {
		return func(c *cluster) {
			for range n {
				c.changed()
				time.Sleep(interval)
			}
		}
	}
	passes := func(t *testing.T, triggers func(*cluster)) (out []time.Duration) {
		c := newCluster()
		o := start(t, c, nil)
		defer o.stop()
		time.Sleep(10 * time.Second)
		c.mu.Lock()
		begin := time.Now()
		c.observed = nil
		c.mu.Unlock()
		triggers(c)
		time.Sleep(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, at := range c.observed {
			out = append(out, at.Sub(begin))
		}
		return out
	}
	for name, row := range map[string]struct {
		triggers func(*cluster)
		want     []time.Duration
	}{
		"none":                         {func(*cluster) {}, nil},
		"one":                          {every(1, 0), []time.Duration{time.Second}},
		"1000 in 3 s: one pass":        {every(1000, 3*time.Millisecond), []time.Duration{2997*time.Millisecond + time.Second}},
		"slower than the quiet period": {every(3, 1500*time.Millisecond), []time.Duration{time.Second, 2500 * time.Millisecond, 4 * time.Second}},
	} {
		play(t, name, func(t *testing.T) {
			if got := passes(t, row.triggers); !slices.Equal(got, row.want) {
				t.Errorf("passes at %v, want %v", got, row.want)
			}
		})
	}
	play(t, "endless churn: one pass every 5 s", func(t *testing.T) {
		got := passes(t, every(4*60, 250*time.Millisecond))
		if len(got) < 11 || len(got) > 13 {
			t.Fatalf("%d passes in 60 s: %v", len(got), got)
		}
		for i := range got[:len(got)-2] { // the last one follows the last trigger
			if d := got[i+1] - got[i]; d < longestWait || d > longestWait+250*time.Millisecond {
				t.Errorf("%v between two passes", d)
			}
		}
	})
}
