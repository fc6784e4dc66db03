package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// herald tells the world outside what became of the services: Kubernetes Events, and which health-check node ports to answer. It belongs to
// introspection, which hears everything that it needs.
type herald struct {
	deps    *Deps
	tracker *events.Tracker
	checks  map[string][]healthcheck.Check // of the services that have any
	roll    bool                           // it is known which services exist
	unheard map[string]bool                // those of them that have not spoken
	said    bool                           // checks were handed on, an empty list counts
	aside   map[string]bool                // services whose actor was put aside
}

func newHerald(d *Deps) *herald {
	return &herald{deps: d, tracker: events.NewTracker(), checks: map[string][]healthcheck.Check{}, unheard: map[string]bool{}, aside: map[string]bool{}}
}

// status hears of one service.
func (h *herald) status(m *messages.ServiceStatus) {
	if h.deps.Events != nil {
		if key := m.GetKey(); h.aside[key] { // it speaks again
			delete(h.aside, key)
			if !m.GetGone() {
				h.deps.Events.Record(events.Released(events.ServiceObject(key, m.GetView().GetUid()), h.deps.NodeName))
			}
		}
		for _, e := range h.tracker.Observe(m) {
			h.deps.Events.Record(e)
		}
	}
	key, checks := m.GetKey(), healthcheck.Checks(m.GetView())
	changed := len(checks) > 0 || len(h.checks[key]) > 0
	if len(checks) == 0 {
		delete(h.checks, key)
	} else {
		h.checks[key] = checks
	}
	delete(h.unheard, key)
	h.publish(changed)
}

// fault hears of a failure; that a service was put aside is worth an event. A message may be lost, so the event may be missing; the state of
// the actor shows it in any case.
func (h *herald) fault(m *messages.Fault) {
	name, ok := strings.CutPrefix(m.GetActor(), PathServices+"/")
	if !ok || m.GetDecision() != "quarantine" || h.deps.Events == nil {
		return
	}
	key := runtime.UnescapeName(name)
	h.aside[key] = true
	h.deps.Events.Record(events.Quarantined(events.ServiceObject(key, h.tracker.UID(key)), h.deps.NodeName, m.GetReason()))
}

// exist hears which services exist, and which of them have spoken.
func (h *herald) exist(exist map[string]bool, heard map[string]*messages.ServiceStatus) {
	h.roll = true
	clear(h.unheard)
	for key := range exist {
		if heard[key] == nil {
			h.unheard[key] = true
		}
	}
	before := len(h.checks)
	maps.DeleteFunc(h.aside, func(key string, _ bool) bool { return !exist[key] })
	maps.DeleteFunc(h.checks, func(key string, _ []healthcheck.Check) bool { return !exist[key] })
	h.publish(len(h.checks) != before)
}

// publish hands the health checks on once they are complete: a list with gaps would close ports of living services.
func (h *herald) publish(changed bool) {
	if h.deps.HealthChecks == nil || !h.roll || len(h.unheard) > 0 || h.said && !changed {
		return
	}
	h.said = true
	var all []healthcheck.Check
	for _, key := range slices.Sorted(maps.Keys(h.checks)) {
		all = append(all, h.checks[key]...)
	}
	h.deps.HealthChecks.Set(all)
}
