package status

import (
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// publisher publishes what became of the services outside of the process: Kubernetes Events, and
// which health-check node ports to answer. It belongs to introspection, which gets everything that
// it needs.
type publisher struct {
	config      *Config
	tracker     *events.Tracker
	checks      map[string][]healthcheck.Check // of the services that have any
	listed      bool                           // it is known which services exist
	missing     map[string]bool                // those of them without a status
	published   bool                           // checks were handed on, an empty list counts
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

// fault takes a failure; a quarantine is worth an event. The message may be lost, and the event
// with it; the state of the actor shows the quarantine in any case.
func (p *publisher) fault(m *messages.Fault) {
	key, ok := address.ServiceKey(m.GetActor())
	if !ok || m.GetDecision() != "quarantine" || p.config.Events == nil {
		return
	}
	p.quarantined[key] = true
	p.config.Events.Record(events.Quarantined(events.ServiceObject(key, p.tracker.UID(key)), p.config.NodeName, m.GetReason()))
}

// exist takes which services exist, and which of them have a status.
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

// publish hands the health checks on once they are complete: a list with gaps would close ports of
// living services.
func (p *publisher) publish(changed bool) {
	if p.config.HealthChecks == nil || !p.listed || len(p.missing) > 0 || p.published && !changed {
		return
	}
	p.published = true
	var all []healthcheck.Check
	for _, key := range slices.Sorted(maps.Keys(p.checks)) {
		// an order of its own, so that the same list is the same
		all = append(all, p.checks[key]...)
	}
	p.config.HealthChecks.Set(all)
}
