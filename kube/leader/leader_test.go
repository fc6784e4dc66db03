package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leases hold one Lease. Like the API server they refuse a second creation, and an update of
// another version.
type leases struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	away    map[string]bool // identities that do not reach it
}

// of returns the leases as one process sees them.
type of struct {
	*leases
	identity string
}

func (l of) reach() error {
	if l.away[l.identity] {
		return errors.New("connection refused")
	}
	return nil
}

func (l of) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reach(); err != nil {
		return nil, err
	}
	if l.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, name)
	}
	return l.lease.DeepCopy(), nil
}

func (l of) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reach(); err != nil {
		return nil, err
	}
	if l.lease != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, lease.Name)
	}
	return l.store(lease), nil
}

func (l of) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reach(); err != nil {
		return nil, err
	}
	if lease.ResourceVersion != l.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, lease.Name, errors.New("modified"))
	}
	return l.store(lease), nil
}

func (l of) Delete(context.Context, string, metav1.DeleteOptions) error {
	return errors.New("unexpected")
}

func (l of) store(lease *coordinationv1.Lease) *coordinationv1.Lease {
	l.version++
	l.lease = lease.DeepCopy()
	l.lease.ResourceVersion = strconv.Itoa(l.version)
	return l.lease.DeepCopy()
}

func (l *leases) cut(identity string, away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away[identity] = away
}

// terms records the leaders; two at the same time are an error.
type terms struct {
	mu      sync.Mutex
	t       *testing.T
	leading string
	begun   time.Time
	log     []string // "NAME from to", in seconds
}

func (r *terms) lead(name string, begin time.Time) func(context.Context) {
	return func(term context.Context) {
		r.mu.Lock()
		if r.leading != "" {
			r.t.Errorf("%s leads beside %s", name, r.leading)
		}
		r.leading, r.begun = name, time.Now()
		r.mu.Unlock()
		<-term.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leading = ""
		r.log = append(r.log, fmt.Sprintf("%s %.0f-%.0f", name, r.begun.Sub(begin).Seconds(), time.Since(begin).Seconds()))
	}
}

// TestA21OneLeads: after any failure of the leader the next term begins, and it begins after the
// old term has ended.
func TestA21OneLeads(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(cluster *leases, stop context.CancelFunc)
		want []string
	}{
		{"an orderly end: the other one leads at once", func(_ *leases, stop context.CancelFunc) {
			time.Sleep(20100 * time.Millisecond) // between two attempts of b
			stop()
		}, []string{"a 0-21", "b 23-60"}},
		{"cut off: its term ends before the Lease runs out", func(cluster *leases, _ context.CancelFunc) {
			time.Sleep(20500 * time.Millisecond)
			cluster.cut("a", true)
		}, []string{"a 0-30", "b 37-60"}},
		{"cut off for a moment: nothing happens", func(cluster *leases, _ context.CancelFunc) {
			time.Sleep(20500 * time.Millisecond)
			cluster.cut("a", true)
			time.Sleep(5 * time.Second)
			cluster.cut("a", false)
		}, []string{"a 0-60"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &leases{away: map[string]bool{}}
				begin, r := time.Now(), &terms{t: t}
				ctx, end := context.WithTimeout(context.Background(), time.Minute)
				defer end()
				first, stop := context.WithCancel(ctx)
				defer stop()
				var running sync.WaitGroup
				run := func(ctx context.Context, name string) {
					e := New(of{cluster, name}, "x", name, Duration, slog.New(slog.DiscardHandler))
					running.Go(func() { e.Run(ctx, r.lead(name, begin)) })
				}
				run(first, "a")
				time.Sleep(time.Second)
				run(ctx, "b")
				c.play(cluster, stop)
				running.Wait()
				if got := fmt.Sprint(r.log); got != fmt.Sprint(c.want) {
					t.Errorf("terms %v, want %v", r.log, c.want)
				}
			})
		})
	}
}
