package informers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/messages"
)

// sourceName is the source in the errors of objects from the API server.
const sourceName = "kubernetes"

// Config of a Source.
type Config struct {
	// NodeName is the name of this node: metadata.name of its Node. Required.
	NodeName string
	// ServiceCIDRs makes the source watch the ServiceCIDR objects of the cluster.
	ServiceCIDRs bool
	// AddressPools makes the source watch the AddressPools.
	AddressPools bool
	// FollowExternalIPs leaves out spec.externalIPs if the version of the API server is 1.40 or
	// later, as Kubernetes does. From 1.36 on, which deprecates the field, its use is logged.
	// The source asks for the version once.
	FollowExternalIPs bool
}

// interval is the least time between two commits; changes in between coalesce by object. The first
// change after a quiet time is not delayed.
const interval = 10 * time.Millisecond

// Source delivers the objects of the API server to the agent of one node. It is a kube.Source.
type Source struct {
	// Any goroutine may read these fields; New sets them.
	config  Config
	log     *slog.Logger
	watched []resource
	store   *kube.Store
	queue   *queue
	health  *health
	refresh chan struct{} // holds one request

	// Only the goroutine of Run uses the fields below.
	sink     kube.Sink
	indexes  map[string]cache.Indexer // by kind
	synced   []<-chan struct{}        // closed when listed; only kinds not listed yet
	reported *verdict                 // last verdict passed to the sink
	outage   outageLog
}

var _ kube.Source = (*Source)(nil)

// New returns a source that watches through this client. The client's rate limits apply to
// requests, not to events.
func New(client *apiserver.Client, config Config, log *slog.Logger) *Source {
	q, watched := newQueue(), resources(client, config.NodeName)
	if config.FollowExternalIPs {
		watched[0].follow(&externalIPs{version: client.Version, log: log})
	}
	var plurals []string
	for _, r := range watched {
		plurals = append(plurals, r.plural)
	}
	if config.ServiceCIDRs {
		watched = append(watched, serviceCIDRs(client, log))
	}
	if config.AddressPools {
		watched = append(watched, addressPools(client, log))
	}
	return &Source{
		config: config, log: log, watched: watched,
		store: kube.NewStore(config.NodeName), queue: q, health: newHealth(q.signal, plurals),
		refresh: make(chan struct{}, 1),
		indexes: map[string]cache.Indexer{},
	}
}

// Refresh satisfies kube.Source.
func (s *Source) Refresh() {
	select {
	case s.refresh <- struct{}{}:
	default: // one is pending already
	}
}

// Run satisfies kube.Source. It fails only if the informers cannot be set up; this does not depend
// on the API server.
func (s *Source) Run(ctx context.Context, sink kube.Sink) error {
	s.sink = sink
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	// The deferred calls run in reverse order: cancel first, then the wait.
	defer running.Wait()
	defer cancel()
	// The kinds are listed in parallel; the first Snapshot waits for the slowest.
	for i := range s.watched {
		r := &s.watched[i]
		informer, err := r.informer(s.health)
		if err != nil {
			return fmt.Errorf("set up informer of %s: %w", r.plural, err)
		}
		// The handler's checker is done only after the handler has seen the whole list; the
		// informer's checker is done earlier.
		handler, err := informer.AddEventHandler(s.handler(r.kind))
		if err != nil {
			return fmt.Errorf("add handler to informer of %s: %w", r.plural, err)
		}
		s.indexes[r.kind] = informer.GetIndexer()
		s.synced = append(s.synced, r.optional.settled(ctx, &running, handler.HasSyncedChecker().Done()))
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	s.work(ctx)
	return nil
}

// handler only notes the keys of changed objects.
func (s *Source) handler(kind string) cache.ResourceEventHandler {
	note := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			s.log.Error("object without a key from the informer", "kind", kind, "err", err)
			return
		}
		triggered := int64(0)
		if h, ok := object.(*held); ok {
			slice, _ := h.value.(*messages.EndpointSlice)
			triggered = slice.GetTriggered()
		}
		s.queue.add(item{kind, key}, triggered)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: note,
		UpdateFunc: func(old, current any) {
			if !sameVersion(old, current) {
				// A relist reports every object, changed or not.
				note(current)
			}
		},
		DeleteFunc: note,
	}
}

// work is the worker: it delivers until the context ends.
func (s *Source) work(ctx context.Context) {
	// After a quiet time a change is delivered at once. The pause after each commit joins the
	// changes of a rolling update.
	pause := time.NewTimer(0) // runs after a commit; the queue is not read before it ends
	defer pause.Stop()
	waiting, due := true, false
	s.outage.begin(s.log)
	defer s.outage.timer.Stop()
	for {
		var listed <-chan struct{}
		if len(s.synced) > 0 {
			listed = s.synced[0]
		}
		select {
		case <-ctx.Done():
			return
		case <-listed:
			s.synced = s.synced[1:]
			if len(s.synced) == 0 {
				s.first()
			}
			continue
		// A request before the first list needs no answer of its own: the first Snapshot
		// answers it.
		case <-s.refresh:
			if len(s.synced) == 0 {
				s.sink.Snapshot(s.store.Snapshot())
			}
			continue
		case <-s.queue.wake:
			due = true
			s.reportHealth()
		case <-pause.C:
			waiting = false
		case <-s.outage.timer.C:
			s.outage.lasts(*s.reported)
		}
		if due && !waiting && len(s.synced) == 0 {
			due, waiting = false, true
			s.deliver()
			pause.Reset(interval)
		}
	}
}

// first delivers the first Snapshot.
func (s *Source) first() {
	s.apply()
	s.store.Commit()
	s.sink.Snapshot(s.store.Snapshot())
	s.reportHealth()
	if now := s.health.state(); now.ok {
		s.report(now)
	}
}

// deliver brings the Store up to date and delivers the changes.
func (s *Source) deliver() {
	s.apply()
	s.store.Commit().Deliver(s.sink)
}

// reportHealth passes changed health to the sink. Good health means nothing before everything is
// listed.
func (s *Source) reportHealth() {
	for _, v := range s.health.take() {
		if len(s.synced) == 0 || !v.ok {
			s.report(v)
		}
	}
}

// report passes a verdict to the log and the sink, unless it equals the last one.
func (s *Source) report(v verdict) {
	if s.reported != nil && *s.reported == v {
		return
	}
	s.reported = &v
	s.outage.reported(v)
	s.sink.Health(kube.Health{OK: v.ok, Reason: v.reason})
}
