package status

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// publisher publishes the state of the services outside of the process: Kubernetes Events and
// health-check node ports. It belongs to introspection, which receives its input.
type publisher struct {
	config      *Config
	tracker     *events.Tracker
	checks      map[string][]healthcheck.Check // of the services that have any
	listed      bool                           // the list of services is known
	missing     map[string]bool                // services of the list without a status
	published   bool                           // Set of HealthChecks was called
	quarantined map[string]bool                // services whose actor is in quarantine
}

func newPublisher(config *Config) *publisher {
	return &publisher{
		config: config, tracker: events.NewTracker(), checks: map[string][]healthcheck.Check{}, missing: map[string]bool{},
		quarantined: map[string]bool{},
	}
}

// status takes the status of one service.
func (p *publisher) status(m *messages.ServiceStatus) {
	key := m.GetKey()
	if p.config.Events != nil {
		if p.quarantined[key] { // a status means that the quarantine is over
			delete(p.quarantined, key)
			if !m.GetGone() {
				p.config.Events.Record(events.Released(events.ServiceObject(key, m.GetView().GetUid()), p.config.NodeName))
			}
		}
		for _, e := range p.tracker.Observe(m) {
			p.config.Events.Record(e)
		}
	}
	checks := healthcheck.Checks(m.GetView())
	changed := len(checks) > 0 || len(p.checks[key]) > 0
	if len(checks) == 0 {
		delete(p.checks, key)
	} else {
		p.checks[key] = checks
	}
	delete(p.missing, key)
	p.publish(changed)
}

// fault takes a failure. A quarantine becomes an event. If the message is lost, so is the event;
// the state of the actor shows the quarantine in any case.
func (p *publisher) fault(m *messages.Fault) {
	key, ok := address.ServiceKey(m.GetActor())
	if !ok || m.GetDecision() != "quarantine" || p.config.Events == nil {
		return
	}
	p.quarantined[key] = true
	p.config.Events.Record(events.Quarantined(events.ServiceObject(key, p.tracker.UID(key)), p.config.NodeName, m.GetReason()))
}

// exist takes the list of services, and the known statuses.
func (p *publisher) exist(exist map[string]bool, known map[string]*messages.ServiceStatus) {
	p.listed = true
	clear(p.missing)
	for key := range exist {
		if known[key] == nil {
			p.missing[key] = true
		}
	}
	before := len(p.checks)
	maps.DeleteFunc(p.quarantined, func(key string, _ bool) bool { return !exist[key] })
	maps.DeleteFunc(p.checks, func(key string, _ []healthcheck.Check) bool { return !exist[key] })
	p.publish(len(p.checks) != before)
}

// publish passes on the health checks when they are complete: a list with gaps would close ports of
// existing services.
func (p *publisher) publish(changed bool) {
	if p.config.HealthChecks == nil || !p.listed || len(p.missing) > 0 || p.published && !changed {
		return
	}
	p.published = true
	var all []healthcheck.Check
	for _, key := range slices.Sorted(maps.Keys(p.checks)) {
		// ordered, so that equal lists are equal
		all = append(all, p.checks[key]...)
	}
	p.config.HealthChecks.Set(all)
}

// PendingSince knows since when changes of services wait for an answer of the renderers. It
// outlives introspection, which writes it; any goroutine may read it. The zero value is empty.
type PendingSince struct {
	mu    sync.Mutex
	since map[string]time.Time // of the services that wait
}

// Oldest returns since when the oldest change waits; zero = none waits. It ignores services for
// which skip is true; nil ignores none. skip must not call PendingSince.
func (p *PendingSince) Oldest(skip func(key string) bool) (oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, at := range p.since {
		if (oldest.IsZero() || at.Before(oldest)) && (skip == nil || !skip(key)) {
			oldest = at
		}
	}
	return oldest
}

// set notes since when a service waits; zero = it does not wait.
func (p *PendingSince) set(key string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since.IsZero() {
		delete(p.since, key)
		return
	}
	if p.since == nil {
		p.since = map[string]time.Time{}
	}
	p.since[key] = since
}

// keep drops the services that do not exist.
func (p *PendingSince) keep(exist map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.since, func(key string, _ time.Time) bool { return !exist[key] })
}
