package allocator

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/events"
)

const (
	// writers is how many writes are made at the same time.
	writers = 8
	// most writes of a round: the next one sees newer objects.
	most = 400
	// writeTimeout is the time limit of a write, including its wait for the rate limit.
	writeTimeout = 10 * time.Second
	// grace is for how long writes may go on after their term; the Lease lasts longer
	// (kube/leader).
	grace = 500 * time.Millisecond
	// pause is the least time between two rounds.
	pause = 100 * time.Millisecond
)

// Config of an Allocator.
type Config struct {
	// DefaultClass gives addresses also to Services without a class.
	DefaultClass bool
	// ServiceCIDRs and PodCIDRs are networks of the cluster, beside those that ServiceCIDR and Node
	// objects have.
	ServiceCIDRs, PodCIDRs []netip.Prefix
}

// Status is the state of an Allocator, for operators.
type Status struct {
	// Leading says that this process writes. The rest is empty where it does not.
	Leading bool
	// Listed says that all objects have been seen. Trouble is why objects are not seen or not
	// written; "" = there is no trouble.
	Listed  bool
	Trouble string
	// Pools by name.
	Pools map[string]PoolStatus
	// Services get addresses from pools; Without of them lack an address.
	Services, Without int
	// Written and Failed count writes since the start of the process.
	Written, Failed uint64
}

// PoolStatus counts the addresses of a pool.
type PoolStatus struct {
	Given, Free int
	// Refused says that the pool gives nothing; its status says why.
	Refused bool
}

// Allocator gives addresses to Services while it leads.
type Allocator struct {
	client          *apiserver.Client
	config          Config
	events          events.Recorder
	log             *slog.Logger
	written, failed atomic.Uint64
	status          atomic.Pointer[Status]
}

// New returns an allocator. It does nothing before Lead.
func New(client *apiserver.Client, config Config, recorder events.Recorder, log *slog.Logger) *Allocator {
	a := &Allocator{client: client, config: config, events: recorder, log: log}
	a.status.Store(&Status{})
	return a
}

// Status returns the last state.
func (a *Allocator) Status() Status { return *a.status.Load() }

// Lead gives addresses until the term ends.
func (a *Allocator) Lead(term context.Context) {
	t := &work{Allocator: a, sent: map[string]*unseen{}, wake: make(chan struct{}, 1)}
	defer a.status.Store(&Status{})
	t.informers = apiserver.NewInformers(a.log)
	t.services = t.informers.Add(a.client.Services, &corev1.Service{}, "services")
	t.namespaces = t.informers.Add(a.client.Namespaces, &corev1.Namespace{}, "namespaces")
	t.nodes = t.informers.Add(a.client.Nodes, &corev1.Node{}, "nodes")
	t.pools = t.informers.Add(a.client.AddressPools, &addresses.AddressPool{}, "addresspools")
	t.ranges = t.informers.AddRanges(a.client.ServiceCIDRs, len(a.config.ServiceCIDRs) > 0)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if err := t.informers.Run(term, t.signal, func() { t.listed.Store(true) }); err != nil {
			a.log.Error("objects not watched", "err", err)
		}
	})
	t.run(term)
}

// work is one term.
type work struct {
	*Allocator
	informers                                  *apiserver.Informers
	services, namespaces, nodes, pools, ranges cache.Indexer
	listed                                     atomic.Bool
	wake                                       chan struct{} // holds one signal that an object has changed
	sent                                       map[string]*unseen
	trouble, failure                           string // told to the log; of the last round
}

func (t *work) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run makes rounds until the term ends.
func (t *work) run(term context.Context) {
	writing, cancel := context.WithCancel(context.WithoutCancel(term))
	defer cancel()
	defer context.AfterFunc(term, func() { time.AfterFunc(grace, cancel) })()
	tick := time.NewTicker(time.Second) // for retries and troubles
	defer tick.Stop()
	last, due := &round{}, true
	for {
		if due && t.listed.Load() {
			last = plan(t.seen(), t.sent, &t.config, time.Now())
			last.writes = last.writes[:min(len(last.writes), most)]
			t.apply(term, writing, last)
		}
		t.publish(last)
		select {
		case <-term.Done():
			return
		case <-time.After(pause):
		}
		select {
		case <-term.Done():
			return
		case <-t.wake:
			due = true
		case <-tick.C:
			due = last.waiting || len(last.writes) > 0
		}
	}
}

// seen reads the caches.
func (t *work) seen() *seen {
	s := &seen{
		services: list[*corev1.Service](t.services), pools: list[*addresses.AddressPool](t.pools), nodes: list[*corev1.Node](t.nodes),
		ranges: list[*networkingv1.ServiceCIDR](t.ranges), namespaces: map[string]labels.Set{},
	}
	for _, n := range list[*corev1.Namespace](t.namespaces) {
		s.namespaces[n.Name] = n.Labels
	}
	versions := map[string]string{}
	for _, one := range s.services {
		versions[keyOf(one)] = one.ResourceVersion
	}
	for _, one := range s.pools {
		versions[one.Name] = one.ResourceVersion
	}
	forget(t.sent, versions)
	return s
}

// forget drops writes of objects that have another version in the cache.
func forget(sent map[string]*unseen, versions map[string]string) {
	maps.DeleteFunc(sent, func(key string, u *unseen) bool { return versions[key] != u.version })
}

// sending notes that a write is sent.
func sending(sent map[string]*unseen, w *write) *unseen {
	u := sent[w.key]
	if u == nil || u.version != w.version {
		u = &unseen{version: w.version}
		sent[w.key] = u
	}
	u.addresses = append(u.addresses, w.addresses...)
	return u
}

func list[T any](from cache.Indexer) (all []T) {
	for _, object := range from.List() {
		all = append(all, object.(T))
	}
	return all
}

// apply makes the writes of a round.
func (t *work) apply(term, writing context.Context, r *round) {
	t.failure = ""
	errs := make([]error, len(r.writes))
	var running sync.WaitGroup
	slots := make(chan struct{}, writers)
	made := 0
	for i := range r.writes {
		w := &r.writes[i]
		slots <- struct{}{}
		if term.Err() != nil {
			break
		}
		made++
		sending(t.sent, w)
		running.Go(func() {
			errs[i] = t.write(writing, w)
			<-slots
		})
	}
	running.Wait()
	for i, w := range r.writes[:made] {
		u, err := t.sent[w.key], errs[i]
		switch {
		case err == nil:
			t.written.Add(1)
			u.answered = true
			for _, e := range w.events {
				t.events.Record(e)
			}
			continue
		case apierrors.IsConflict(err):
			u.answered = true
			continue
		}
		t.failed.Add(1)
		t.failure = "write status of " + w.key + ": " + err.Error()
		u.retry = time.Now().Add(delay(u.tries))
		u.tries++
	}
}

// delay is the time before a write is repeated.
func delay(tries int) time.Duration {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: tries + 1, Cap: 5 * time.Minute}
	for range tries {
		backoff.Step()
	}
	return backoff.Step()
}

// write makes one write.
func (t *work) write(ctx context.Context, w *write) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	patch, err := w.patch()
	if err != nil {
		return err
	}
	if namespace, name, is := strings.Cut(w.key, "/"); is {
		return t.client.PatchServiceStatus(ctx, namespace, name, patch)
	}
	return t.client.PatchAddressPoolStatus(ctx, w.key, patch)
}

// publish makes the state visible, and logs troubles.
func (t *work) publish(r *round) {
	trouble := t.informers.Trouble()
	if trouble == "" {
		trouble = t.failure
	}
	switch {
	case trouble == t.trouble:
	case trouble != "":
		t.log.Warn("addresses are not all given", "err", trouble)
	default:
		t.log.Info("addresses are given again")
	}
	t.trouble = trouble
	t.status.Store(&Status{
		Leading: true, Listed: t.listed.Load(), Trouble: trouble, Pools: r.pools, Services: r.services, Without: r.without,
		Written: t.written.Load(), Failed: t.failed.Load(),
	})
}
