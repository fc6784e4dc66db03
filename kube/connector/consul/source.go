package consul

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

const (
	spacing    = 100 * time.Millisecond // least time between two queries of one name, and between two snapshots
	firstDelay = time.Second            // after a failure, doubled up to lastDelay
	lastDelay  = time.Minute
	starting   = 64               // queries that do not block under way at once
	confirm    = 45 * time.Second // without a change
)

// Source follows a datacenter. It is a connector.Source.
type Source struct {
	client *client
	log    *slog.Logger
	start  chan struct{} // a place for each query that does not block
}

// New returns a source. The error says what of the options cannot be used.
func New(o Options, log *slog.Logger) (*Source, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &Source{client: c, log: log, start: make(chan struct{}, starting)}, nil
}

// report is what one query brought: of the names if name is "".
type report struct {
	name    string
	names   []string
	service catalog.Service
	err     error
	ended   <-chan struct{} // closed once the name is not followed any more
}

// Run satisfies connector.Source. It never fails: what cannot be read makes a snapshot incomplete or a service unknown.
func (s *Source) Run(ctx context.Context, publish func(catalog.Snapshot)) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer s.client.http.CloseIdleConnections()
	defer group.Wait()
	defer cancel()
	reports := make(chan report)
	group.Go(func() { s.follow(ctx, "", reports) })
	st := state{known: map[string]catalog.Service{}, stop: map[string]context.CancelFunc{}, failed: map[string]error{}}
	timer := time.NewTimer(confirm)
	defer timer.Stop()
	dirty := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			publish(catalog.Clean(st.snapshot(), s.client.options.Limits))
			dirty = false
			timer.Reset(confirm)
		case r := <-reports:
			select {
			case <-r.ended: // the name is gone, or is followed anew
				continue
			default:
			}
			for _, name := range st.take(r, s.client.options.Limits.Services) {
				child, stop := context.WithCancel(ctx)
				st.stop[name] = stop
				group.Go(func() { s.follow(child, name, reports) })
			}
			if st.changed && !dirty {
				dirty = true
				timer.Reset(spacing)
			}
			st.changed = false
		}
	}
}

// follow reports each answer for a name, or for all names if it is "", until ctx ends.
func (s *Source) follow(ctx context.Context, name string, reports chan<- report) {
	var index uint64
	delay := firstDelay
	for {
		r := report{name: name, ended: ctx.Done()}
		r, index = s.ask(ctx, r, index)
		select {
		case <-ctx.Done():
			return
		case reports <- r:
		}
		pause := spacing
		if r.err != nil {
			s.log.Warn("query of Consul failed", "service", name, "err", r.err)
			pause = delay/2 + rand.N(delay/2)
			delay = min(2*delay, lastDelay)
		} else {
			delay = firstDelay
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// ask makes one query and returns the index of the next one.
func (s *Source) ask(ctx context.Context, r report, index uint64) (report, uint64) {
	if index == 0 {
		select {
		case <-ctx.Done():
			r.err = ctx.Err()
			return r, 0
		case s.start <- struct{}{}:
		}
		defer func() { <-s.start }()
	}
	path := []string{"catalog", "services"}
	if r.name != "" {
		path = []string{"health", "service", r.name}
	}
	body, next, err := s.client.get(ctx, index, path...)
	if err == nil && r.name == "" {
		r.names, err = decodeNames(body)
	} else if err == nil {
		r.service, err = decodeInstances(r.name, body)
	}
	if err != nil {
		r.err, next = err, 0
	}
	return r, next
}

// state is what the goroutine of Run knows.
type state struct {
	listed  bool // the last query of the names succeeded
	changed bool
	err     error
	known   map[string]catalog.Service
	failed  map[string]error
	stop    map[string]context.CancelFunc
}

// take adds a report and returns the names that are to be followed from now on.
func (st *state) take(r report, most int) (begin []string) {
	if r.name != "" {
		old, ok := st.known[r.name]
		if !ok {
			return nil // is gone
		}
		if r.err != nil {
			r.service = catalog.Service{Name: r.name, Unknown: true}
		}
		st.changed = st.changed || (st.failed[r.name] == nil) != (r.err == nil) || !reflect.DeepEqual(old, r.service)
		delete(st.failed, r.name)
		if r.err != nil {
			st.failed[r.name] = r.err
		}
		st.known[r.name] = r.service
		return nil
	}
	st.changed = st.changed || st.listed != (r.err == nil) || st.err == nil && r.err != nil
	st.listed, st.err = r.err == nil, r.err
	if r.err != nil {
		return nil
	}
	wanted := map[string]bool{}
	for _, name := range r.names {
		wanted[name] = true
		if _, ok := st.known[name]; ok || len(wanted) > most+1 { // Clean reports the one too many
			continue
		}
		st.known[name], st.changed = catalog.Service{Name: name, Unknown: true}, true
		if name != "" && name != "." && name != ".." {
			begin = append(begin, name)
		}
	}
	for name := range st.known {
		if !wanted[name] {
			if stop := st.stop[name]; stop != nil {
				stop()
			}
			delete(st.stop, name)
			delete(st.known, name)
			delete(st.failed, name)
			st.changed = true
		}
	}
	return begin
}

// snapshot returns what is known.
func (st *state) snapshot() catalog.Snapshot {
	out := catalog.Snapshot{Complete: st.listed}
	if st.err != nil {
		out.Problems = append(out.Problems, catalog.Problem{Reason: catalog.ReasonSource, Message: st.err.Error()})
	}
	for name, service := range st.known {
		out.Services = append(out.Services, service)
		if err := st.failed[name]; err != nil {
			out.Problems = append(out.Problems, catalog.Problem{Service: name, Reason: catalog.ReasonSource, Message: err.Error()})
		}
	}
	return out
}
