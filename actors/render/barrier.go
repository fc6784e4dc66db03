package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Phase is how far the services have rendered.
type Phase uint8

const (
	// Rendering: there is no list of services yet, or one of them has not rendered.
	Rendering Phase = iota
	// Rendered: every service of the list has rendered, and the list comes from the local
	// mirror, so there may be other services.
	Rendered
	// Passed: every service has rendered, and the barrier is open.
	Passed
)

// barrier knows which services exist and which of them have not rendered the generation in the
// list. Before all have, nothing that an earlier run put into VPP may be removed.
type barrier struct {
	begun *messages.Begin // last list of the services; nil = none yet
	// services that have not rendered, with the awaited generation
	awaited map[string]uint64
}

// phase is how far the services have rendered.
func (b *barrier) phase() Phase {
	switch {
	case b.begun == nil || len(b.awaited) > 0:
		return Rendering
	case b.begun.GetProvisional():
		return Rendered
	}
	return Passed
}

// passed reports whether every service has rendered.
func (b *barrier) passed() bool { return b.phase() == Passed }

// listed reports whether a service is in the last list.
func (b *barrier) listed(key string) bool {
	_, found := slices.BinarySearch(b.begun.GetKeys(), key)
	return found
}

// departed reports whether a Render is older than a list without its service.
func (b *barrier) departed(m *messages.Render) bool {
	return b.begun != nil && m.GetView() != nil && m.GetGeneration() < b.begun.GetGeneration() && !b.listed(m.GetKey())
}

// rendered notes that a service has rendered a generation.
func (b *barrier) rendered(key string, generation uint64) {
	if awaited, waits := b.awaited[key]; waits && generation >= awaited {
		delete(b.awaited, key)
	}
}

// begin takes a list of the services. The first list, and the first that is not provisional, closes
// the barrier until every service in it has rendered its generation. The driver asks the services
// that have not.
func (d *Driver[K]) begin(c *runtime.Context, m *messages.Begin) {
	if m.GetGeneration() < d.barrier.begun.GetGeneration() {
		return
	}
	first := d.barrier.begun == nil
	closes := first || d.barrier.begun.GetProvisional() && !m.GetProvisional()
	d.barrier.begun = m
	for i, key := range m.GetKeys() {
		wanted := m.GetGenerations()[i]
		s := d.subscribers[key]
		if s != nil && s.generation >= wanted {
			continue
		}
		if closes {
			d.barrier.awaited[key] = wanted
		}
		if first && s != nil { // a late message: VPP may hold a newer view
			delete(d.subscribers, key)
			d.kind.Plan(key, nil)
			d.changed(c)
		}
		c.Send(c.PID(address.Service(key)), &messages.Replay{Renderer: d.name})
	}
	d.forget(c, m)
	maps.DeleteFunc(d.barrier.awaited, func(key string, _ uint64) bool { return !d.barrier.listed(key) })
	d.settle(c)
	if closes {
		report.Event(c, &messages.Event{
			Kind: "resync", Object: d.name, Method: messages.Method_METHOD_FULL_RESYNC,
			Text: fmt.Sprintf("epoch begun with %d services, %d still silent", len(m.GetKeys()), len(d.barrier.awaited)),
		})
		if first {
			// approximations depend on the node
			d.answerEach(c, slices.Sorted(maps.Keys(d.subscribers)))
		}
	}
}

// sweep puts the objects that waited for the phase into the queue. When the barrier has been
// passed, it adds all others that differ, which no service wants. A refused one waits for its next
// try.
func (d *Driver[K]) sweep(c *runtime.Context) {
	d.swept = d.barrier.phase()
	var leftovers []K
	if d.barrier.passed() {
		leftovers = d.differing(func(k K, s *Step) bool {
			// a kind that knows of the phase already may want a row for its connections
			return d.queue.failed[k] == nil && (!s.Wanted || !d.queue.Dirty(k))
		})
		slices.SortFunc(leftovers, d.wishes.Compare)
	}
	for _, k := range slices.Concat(leftovers, d.queue.unfinished()) {
		d.queue.list(k)
	}
	if d.barrier.passed() && (!d.opened || len(leftovers) > 0) {
		d.opened = true
		report.Event(c, &messages.Event{
			Kind: "resync", Object: d.name, Method: d.connection.method(),
			Text: fmt.Sprintf("every service has rendered; %d %s of earlier runs are not wanted any more", len(leftovers), d.noun),
		})
	}
}

// Surroundings are the input of planning besides the views of services.
type Surroundings struct {
	// Begin is the last list of services, with the node; nil = none yet.
	Begin *messages.Begin
	// Set is the interface set of the connected VPP; nil = not known.
	Set *messages.InterfaceSet
	// Phase is how far the services have rendered.
	Phase Phase
}

// Replaced returns the indexes of interfaces that are missing in the next set, or belong to another
// interface there. VPP has dropped what it held for them.
func Replaced(before, now *messages.InterfaceSet) (indexes []uint32) {
	names := make(map[uint32]string, len(now.GetInterfaces()))
	for _, i := range now.GetInterfaces() {
		names[i.GetSwIfIndex()] = i.GetName()
	}
	for _, i := range before.GetInterfaces() {
		if names[i.GetSwIfIndex()] != i.GetName() {
			indexes = append(indexes, i.GetSwIfIndex())
		}
	}
	return indexes
}

// interfaces adopts the interface set when it is complete. A role that comes later would make VPP
// walk all rows and leave entries in its forwarding table. A client behind an unknown interface
// would be dropped or let in.
func (d *Driver[K]) interfaces(c *runtime.Context, m *messages.InterfaceSet) {
	if m.GetComplete() && m.GetGeneration() > d.set.GetGeneration() {
		d.set = m
		d.settle(c)
	}
}

// located reports whether the interface set belongs to the connected VPP.
func (d *Driver[K]) located() bool {
	return d.set != nil && d.set.GetBoot() == d.connection.link.GetBoot()
}

// settle completes the plan with the surroundings.
func (d *Driver[K]) settle(c *runtime.Context) {
	s := Surroundings{Begin: d.barrier.begun, Phase: d.barrier.phase()}
	if d.located() {
		s.Set = d.set
	}
	d.kind.Settle(s)
	d.changed(c)
}
