package catalog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// Least time between two blocking queries, and between two snapshots.
	spacing      = 100 * time.Millisecond
	firstDelay   = time.Second // after a failure, doubled up to lastDelay
	longestDelay = time.Minute
	resweep      = 5 * time.Minute  // interval of complete reads, whatever Consul reports
	sweepShare   = 10               // sweeps take at most one part in sweepShare of the time
	credit       = 30 * time.Second // most sweep time that can be saved up
)

// state is the state of the goroutine of Run, which alone uses it: the last answers, the services,
// the services to be read, and the times of the next actions.
type state struct {
	// The last answers about the whole datacenter, and their errors.
	listed   bool
	repeated bool // the names were confirmed since the last snapshot
	errs     struct{ listing, failing, housing error }
	critical map[check]string  // the names of their services; nil = not known
	nodes    map[string]string // their last known addresses

	services map[string]*consulService
	most     int           // instances of all services
	have     int           // instances of all services now
	failed   int           // number of services whose last reading failed
	delay    time.Duration // time until these are read again

	urgent, rest []string // to be read
	reading      int      // under way
	sweep        struct { // reads all services
		began time.Time // zero = none is under way
		until time.Time // none before
		again bool      // something has changed since it began
	}
	at struct{ publish, retry, sweep time.Time } // zero = not
}

// consulService is one service of the catalog.
type consulService struct {
	found
	err     error
	unread  bool // never read
	waits   bool // in a queue
	reading bool
	again   bool // has to be read once more
}

func newState(most int) *state {
	return &state{most: most, services: map[string]*consulService{}, delay: firstDelay}
}

// due returns the time of the next call of tick.
func (st *state) due() time.Time {
	due := time.Now().Add(time.Hour)
	for _, at := range []time.Time{st.at.publish, st.at.retry, st.at.sweep} {
		if !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}

// tick does everything that is due, and reports whether a snapshot should be published.
func (st *state) tick(now time.Time) (publish bool) {
	over := func(at *time.Time) bool {
		if at.IsZero() || now.Before(*at) {
			return false
		}
		*at = time.Time{}
		return true
	}
	if over(&st.at.retry) {
		for name, s := range st.services {
			if s.err != nil {
				st.want(name, true)
			}
		}
	}
	if over(&st.at.sweep) {
		st.sweep.began, st.sweep.again = now, false
		for _, name := range slices.Sorted(maps.Keys(st.services)) {
			st.want(name, false)
		}
		st.settle(now)
	}
	return over(&st.at.publish)
}

// take adds a report to the state.
func (st *state) take(report any, now time.Time) {
	switch r := report.(type) {
	case list[[]string]:
		st.list(r, now)
	case list[map[check]string]:
		st.fail(r, now)
	case list[map[string]string]:
		st.house(r, now)
	case reading:
		st.read(r, now)
	}
}

// list takes the names. New services are read at once. If something else may have changed in the
// catalog, all services are read to find it.
func (st *state) list(r list[[]string], now time.Time) {
	st.publish(now) // an unchanged answer confirms the one before
	st.listed, st.errs.listing = r.err == nil, r.err
	st.repeated = r.err == nil && !r.moved
	if r.err != nil && r.all == nil {
		return
	}
	wanted := map[string]bool{}
	found := 0
	for _, name := range r.all {
		wanted[name] = true
		if st.services[name] == nil {
			found++
			st.services[name] = &consulService{unread: true}
			st.want(name, true)
		}
	}
	maps.DeleteFunc(st.services, func(name string, s *consulService) bool {
		if wanted[name] {
			return false
		}
		if s.err != nil {
			st.failed--
		}
		st.have -= len(s.instances)
		return true
	})
	if r.moved && found < len(st.services) {
		st.sweepAll(now)
	} else if st.at.sweep.IsZero() && st.sweep.began.IsZero() {
		st.at.sweep = now.Add(resweep)
	}
}

// sweepAll schedules a sweep, which reads all services.
func (st *state) sweepAll(now time.Time) {
	if !st.sweep.began.IsZero() {
		st.sweep.again = true
		return
	}
	st.at.sweep = later(now, st.sweep.until)
}

// fail takes the critical checks. Services with a check that became critical or stopped being
// critical are read at once.
func (st *state) fail(r list[map[check]string], now time.Time) {
	if st.errs.failing != nil || r.err != nil {
		st.publish(now)
	}
	before := st.critical
	st.errs.failing, st.critical = r.err, r.all
	switch {
	case r.err != nil:
		return
	case before == nil: // the changes in between are not known
		if len(st.services) > 0 {
			st.sweepAll(now)
		}
		return
	}
	for _, checks := range [][2]map[check]string{{before, r.all}, {r.all, before}} {
		for c, name := range checks[0] {
			if _, both := checks[1][c]; both {
				continue
			}
			if name != "" {
				st.want(name, true)
				continue
			}
			st.wantOn(c.node) // the check belongs to a node
		}
	}
}

// house takes the addresses of the nodes. Services on a node with a new address are read at once.
func (st *state) house(r list[map[string]string], now time.Time) {
	if st.errs.housing != nil || r.err != nil {
		st.publish(now)
	}
	st.errs.housing = r.err
	if r.err != nil {
		return
	}
	for node, address := range st.nodes {
		if another, still := r.all[node]; still && another != address {
			st.wantOn(node)
		}
	}
	st.nodes = r.all
}

// read takes one service.
func (st *state) read(r reading, now time.Time) {
	st.reading--
	defer st.settle(now)
	s := st.services[r.name]
	if s == nil {
		return // it is gone
	}
	s.reading = false
	if s.again {
		s.again = false
		st.want(r.name, true)
	}
	have := st.have - len(s.instances) + len(r.instances)
	if r.err == nil && have > st.most {
		r.err = fmt.Errorf("more than %d instances of all services", st.most)
	}
	if r.err != nil {
		have, r.found = st.have, s.found // still known
	}
	st.have = have
	if (s.err == nil) != (r.err == nil) || s.unread || !s.equal(r.found) {
		st.publish(now)
	}
	if s.err != nil {
		st.failed--
	}
	s.unread = false
	if s.found, s.err = r.found, r.err; r.err == nil {
		if st.failed == 0 {
			st.delay = firstDelay
		}
		return
	}
	if st.failed++; st.at.retry.IsZero() {
		st.at.retry = now.Add(jittered(st.delay))
		st.delay = min(2*st.delay, longestDelay)
	}
}

// settle ends a sweep when everything has been read.
func (st *state) settle(now time.Time) {
	if st.sweep.began.IsZero() || st.reading > 0 || st.first() != "" {
		return
	}
	st.sweep.until = later(st.sweep.until, now.Add(-credit)).Add(sweepShare * now.Sub(st.sweep.began))
	st.sweep.began, st.at.sweep = time.Time{}, now.Add(resweep)
	if st.sweep.again {
		st.at.sweep = later(now.Add(spacing), st.sweep.until)
	}
}

// want puts a service into a queue to be read.
func (st *state) want(name string, urgent bool) {
	s := st.services[name]
	switch {
	case s == nil:
		return
	case s.reading:
		s.again = true
		return
	case urgent:
		st.urgent = append(st.urgent, name)
	case !s.waits:
		st.rest = append(st.rest, name)
	}
	s.waits = true
}

// wantOn puts the services with an instance on a node into the queue.
func (st *state) wantOn(node string) {
	for name, s := range st.services {
		if slices.Contains(s.nodes, node) {
			st.want(name, true)
		}
	}
}

// first returns the next service to read; "" = none.
func (st *state) first() string {
	for _, queue := range []*[]string{&st.urgent, &st.rest} {
		for len(*queue) > 0 {
			name := (*queue)[0]
			if s := st.services[name]; s != nil && s.waits {
				return name
			}
			*queue = (*queue)[1:]
		}
	}
	return ""
}

// begin notes that the first service is being read.
func (st *state) begin(name string) {
	s := st.services[name]
	s.waits, s.reading = false, true
	st.reading++
}

// publish schedules the publication of a snapshot.
func (st *state) publish(now time.Time) {
	if st.at.publish.IsZero() {
		st.at.publish = now.Add(spacing)
	}
}

// snapshot returns the known state. The confirmation of the names appears in one snapshot only.
func (st *state) snapshot() Snapshot {
	out := Snapshot{Complete: st.listed, Repeated: st.repeated}
	st.repeated = false
	for _, err := range []error{st.errs.listing, st.errs.failing, st.errs.housing} {
		if err != nil {
			out.Problems = append(out.Problems, Problem{Reason: ReasonSource, Message: err.Error()})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.services)) {
		s := st.services[name]
		if s.err != nil {
			out.Problems = append(out.Problems, Problem{Service: name, Reason: ReasonSource, Message: s.err.Error()})
		}
		switch {
		case s.unread || s.absent || s.err != nil:
			out.Services = append(out.Services, Service{Name: name, Unknown: true})
		case !s.foreign:
			out.Services = append(out.Services, Service{Name: name, Instances: s.instances})
		}
	}
	return out
}

// jittered returns a random time between half of the delay and the delay.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
