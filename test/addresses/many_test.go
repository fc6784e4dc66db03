package addresses_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

const many = 1000 // Services

// create makes so many Services, from a number on.
func (o *town) create(from, count int) {
	o.Helper()
	var running sync.WaitGroup
	for lane := range 8 {
		running.Go(func() {
			for i := from + lane; i < from+count; i += 8 {
				o.service(fmt.Sprintf("s%d", i))
			}
		})
	}
	running.Wait()
}

// common is a pool with 1,000 addresses.
const common = "{addresses: [203.0.113.0-203.0.116.231]}"

// services returns all Services of the namespace default that have a class, in their order of age.
func (o *town) services() []corev1.Service {
	o.Helper()
	list, err := o.Admin.CoreV1().Services("default").List(o.Context(), metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	all := slices.DeleteFunc(list.Items, func(s corev1.Service) bool { return s.Spec.LoadBalancerClass == nil })
	slices.SortFunc(all, func(a, b corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return all
}

// all waits until each of 1,000 Services has an address.
func (o *town) all() {
	o.Helper()
	controlplane.Eventually(o, "addresses", func() string {
		given := 0
		for _, s := range o.services() {
			given += len(s.Status.LoadBalancer.Ingress)
		}
		if given != many {
			return fmt.Sprintf("%d Services have an address", given)
		}
		return ""
	})
	o.poolIs("common", "1000 given, 0 free")
}

// TestThousand: 1,000 Services have their addresses, the oldest ones the lowest.
func TestThousand(t *testing.T) {
	o := stage(t)
	o.pool("common", common)
	o.create(0, many)
	begun := time.Now()
	o.allocate()
	o.all()
	t.Logf("%d Services in %.1f s after the start of the process", many, time.Since(begun).Seconds())
	at := netip.MustParseAddr("203.0.113.0")
	for _, s := range o.services() {
		if got := describe(&s); got != at.String() {
			t.Fatalf("%s has %s, want %s", s.Name, got, at)
		}
		at = at.Next()
	}
}

// TestLeadersAreKilled: while Services are made and the leader is killed ten times, no address is
// in two statuses at any time, and no Service loses its address.
func TestLeadersAreKilled(t *testing.T) {
	const kills = 10
	o := stage(t)
	o.pool("common", common)
	w := o.observe()
	leader, standby := o.allocate(), o.allocate()
	for kill := range kills {
		controlplane.Eventually(t, "leader", func() string {
			if standby.leads() {
				leader, standby = standby, leader
			}
			if !leader.leads() {
				return "none leads"
			}
			return ""
		})
		enough := w.reaches(kill*many/kills + 20)
		var running sync.WaitGroup
		running.Go(func() { o.create(kill*many/kills, many/kills) })
		select {
		case <-enough:
		case <-time.After(controlplane.Patience):
			t.Fatal("no progress")
		}
		leader.Kill()
		t.Logf("kill %d, %d addresses were given", kill+1, w.count.Load())
		running.Wait()
		leader = o.allocate()
	}
	o.all()
	controlplane.Eventually(t, "last versions", func() string {
		if n := w.count.Load(); n != many {
			return fmt.Sprintf("%d Services were seen with an address", n)
		}
		return ""
	})
}

// watcher looks at every version of every Service.
type watcher struct {
	count  atomic.Int64 // Services that were seen with an address
	wanted atomic.Int64
	enough chan struct{} // has one when the count is what is wanted
}

// reaches returns a channel that gets one when so many Services have an address.
func (w *watcher) reaches(count int) <-chan struct{} {
	w.wanted.Store(int64(count))
	return w.enough
}

// observe looks until the end of the test.
func (o *town) observe() *watcher {
	o.Helper()
	ctx, stop := context.WithCancel(context.Background())
	from, err := o.Admin.CoreV1().Services("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	w, done := &watcher{enough: make(chan struct{}, 1)}, make(chan struct{})
	go func() {
		defer close(done)
		users, has := map[string]string{}, map[string]string{}
		for e := range from.ResultChan() {
			s, is := e.Object.(*corev1.Service)
			if !is {
				if ctx.Err() == nil {
					o.Errorf("watch: %v", e.Object)
				}
				return
			}
			at := describe(s)
			if old := has[s.Name]; old != "" && old != at {
				o.Errorf("%s had %s and has %q", s.Name, old, at)
			}
			if other, used := users[at]; at != "" && used && other != s.Name {
				o.Errorf("%s and %s have %s", s.Name, other, at)
			}
			if at != "" && has[s.Name] == "" {
				users[at], has[s.Name] = s.Name, at
				if w.count.Add(1) == w.wanted.Load() {
					w.enough <- struct{}{}
				}
			}
		}
	}()
	o.Cleanup(func() {
		stop()
		from.Stop()
		<-done
	})
	return w
}
