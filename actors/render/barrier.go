package render

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// subscriber is one service that has rendered.
type subscriber struct {
	generation, hash uint64
	// nil: it is gone, and is forgotten when nothing of it is left in VPP
	view *messages.ServiceView
	// last acknowledgement; nil = none for what it rendered last
	acked *messages.RenderAck
	// so many roll calls repeat it before it waits for its turn
	repeats int
}

// barrier knows which services exist and which of them have not rendered what they should have.
// Nothing that an earlier run put into VPP may be removed before all have.
type barrier struct {
	begun *messages.Begin // last list of the services; nil = none yet
	// services that have not rendered, with the generation that is awaited
	awaited map[string]uint64

	rollCalls int // since the start
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

// departed reports whether a Render is older than a list that does not have its service any more.
func (b *barrier) departed(m *messages.Render) bool {
	return b.begun != nil && m.GetView() != nil && m.GetGeneration() < b.begun.GetGeneration() && !b.listed(m.GetKey())
}

// rendered notes that a service has rendered a generation.
func (b *barrier) rendered(key string, generation uint64) {
	if awaited, waits := b.awaited[key]; waits && generation >= awaited {
		delete(b.awaited, key)
	}
}

// begin takes a list of the services. The first one, and the first that is not provisional, closes
// the barrier until every service in it has rendered its generation; those that have not are asked.
func (d *Driver[K]) begin(c *runtime.Context, m *messages.Begin) {
	if m.GetGeneration() < d.begun.GetGeneration() {
		return
	}
	first := d.begun == nil
	closes := first || d.begun.GetProvisional() && !m.GetProvisional()
	d.begun = m
	found := 0
	for i, key := range m.GetKeys() {
		wanted := m.GetGenerations()[i]
		s := d.subscribers[key]
		if s != nil {
			found++
		}
		if s != nil && s.generation >= wanted {
			continue
		}
		if closes {
			d.awaited[key] = wanted
		}
		if first && s != nil { // a message that was late: what VPP holds may be newer
			delete(d.subscribers, key)
			d.adapter.Plan(key, nil)
			d.changed(c)
		}
		c.Send(c.PID(address.Service(key)), &messages.Replay{Renderer: d.name})
	}
	if found < len(d.subscribers) {
		d.forget(c, m)
	}
	maps.DeleteFunc(d.awaited, func(key string, _ uint64) bool { return !d.listed(key) })
	d.surroundings(c)
	switch {
	case closes:
		report.Event(c, &messages.Event{
			Kind: "resync", Object: d.name, Method: messages.Method_METHOD_FULL_RESYNC,
			Text: fmt.Sprintf("epoch begun with %d services, %d still silent", len(m.GetKeys()), len(d.awaited)),
		})
		if first {
			// approximations depend on the node
			d.answerEach(c, slices.Sorted(maps.Keys(d.subscribers)))
		}
	case m.GetRollCall():
		d.repeatAcks(c)
	}
}

// forget has the services leave that are not in a list and have not rendered since.
func (d *Driver[K]) forget(c *runtime.Context, m *messages.Begin) {
	var gone []string
	for key, s := range d.subscribers {
		if s.view != nil && s.generation < m.GetGeneration() && !d.listed(key) {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		d.adopt(c, key, m.GetGeneration(), 0, nil)
	}
}

// render adopts what a service wants and answers at once with what is known.
func (d *Driver[K]) render(c *runtime.Context, m *messages.Render) {
	key := m.GetKey()
	s := d.subscribers[key]
	if s != nil && m.GetGeneration() < s.generation || m.GetGeneration() < d.awaited[key] || s == nil && d.departed(m) {
		return // older than what the service, or the list of services, has said since
	}
	d.rendered(key, m.GetGeneration())
	switch {
	case s == nil && m.GetView() == nil:
		c.Send(c.PID(address.Service(key)), &messages.RenderAck{
			Key: key, Generation: m.GetGeneration(), Hash: m.GetHash(), Renderer: d.name, State: messages.RenderState_RENDER_RETIRED,
		})
	case s != nil && s.hash == m.GetHash() && (s.view == nil) == (m.GetView() == nil):
		if s.generation == m.GetGeneration() && d.owed[key] {
			// repeated while it is being programmed
			c.Send(c.PID(address.Service(key)), s.acked)
			return
		}
		s.generation, s.acked = m.GetGeneration(), nil
		d.answer(c, key)
	default:
		d.adopt(c, key, m.GetGeneration(), m.GetHash(), m.GetView())
	}
}

// adopt changes what a service wants; nil = nothing any more. Objects that VPP is known to hold as
// they are wanted now need no work, and the answer says so.
func (d *Driver[K]) adopt(c *runtime.Context, key string, generation, hash uint64, view *messages.ServiceView) {
	s := d.subscribers[key]
	if s == nil {
		s = &subscriber{}
		d.subscribers[key] = s
	}
	s.generation, s.hash, s.view = generation, hash, view
	before := d.adapter.Objects(key)
	d.adapter.Plan(key, view)
	concerned := map[string]bool{key: true}
	for _, k := range slices.Concat(before, d.adapter.Objects(key)) {
		// its owner may be another one although the same is wanted
		d.concern(k, concerned)
	}
	d.touched(key)
	d.queue.leave(key, before)
	if d.known && d.work == nil {
		for _, k := range d.adapter.Objects(key) {
			if d.queue.Dirty(k) && d.queue.inSync(k) {
				d.queue.clean(k)
			}
		}
	}
	s.acked = nil // the answer to what it wants now does not wait until VPP has it
	d.answerEach(c, slices.Collect(maps.Keys(concerned)))
}

// concern enters the services whose acknowledgement depends on an object.
func (d *Driver[K]) concern(k K, services map[string]bool) {
	for _, name := range d.adapter.Services(k) {
		services[name] = true
	}
	for _, name := range d.queue.leavers[k] {
		services[name] = true
	}
}

// answer acknowledges a service, if that is news.
func (d *Driver[K]) answer(c *runtime.Context, key string) {
	s := d.subscribers[key]
	if s == nil {
		return
	}
	delete(d.owed, key)
	ack := d.acknowledgement(key, s)
	if s.acked.GetState() == ack.GetState() && s.acked.GetHash() == ack.GetHash() && proto.Equal(s.acked, ack) {
		return
	}
	s.acked, s.repeats = ack, newsRepeats
	c.Send(c.PID(address.Service(key)), ack)
	if ack.GetState() == messages.RenderState_RENDER_RETIRED {
		delete(d.subscribers, key)
		d.queue.forget(key)
	}
}

// acknowledgement says what became of a service in VPP, as far as it is known.
func (d *Driver[K]) acknowledgement(key string, s *subscriber) *messages.RenderAck {
	ack := &messages.RenderAck{
		Key: key, Generation: s.generation, Hash: s.hash, Renderer: d.name, State: messages.RenderState_RENDER_IN_SYNC,
	}
	if d.known && d.queue.next.waits(key) && len(d.adapter.Objects(key)) > batchSize {
		// what became of each of very many objects is said once, when they are done
		ack.State = messages.RenderState_RENDER_PENDING
		return ack
	}
	left := d.queue.left(key)
	switch {
	case !d.known:
		ack.State, ack.Error = messages.RenderState_RENDER_PENDING, "waiting for VPP"
	case s.view == nil && left:
		ack.State = messages.RenderState_RENDER_RETIRED
	}
	for _, k := range d.adapter.Objects(key) {
		switch owner := d.adapter.Owner(k); owner {
		case "", key:
			d.queue.acknowledge(ack, k, d.queue.Dirty(k))
		default:
			ack.Conflicts = append(ack.Conflicts, &messages.Conflict{Frontend: k.String(), Owner: owner})
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(d.queue.leaving[key]), d.adapter.Compare) {
		// until it has gone the service is served as before
		d.queue.acknowledge(ack, k, true)
	}
	d.adapter.Acknowledge(ack, key, d.known)
	if d.begun == nil {
		ack.Approximations = nil // they depend on the node
	}
	return ack
}

// answerEach acknowledges services, if that is news. An acknowledgement is about everything that a
// service has in VPP, and so costs as much: one that knows not to be in sync is told again when
// nothing of it is in the queue any more, and not after every batch.
func (d *Driver[K]) answerEach(c *runtime.Context, services []string) {
	slices.Sort(services)
	for _, name := range slices.Compact(services) {
		if s := d.subscribers[name]; s != nil && d.known && s.unfinished() && d.queue.next.waits(name) {
			d.owed[name] = true
			continue
		}
		d.answer(c, name)
	}
}

// unfinished reports whether the service has been told that VPP does not hold what it wants now.
func (s *subscriber) unfinished() bool {
	switch s.acked.GetState() {
	case messages.RenderState_RENDER_PENDING, messages.RenderState_RENDER_FAILED:
		return s.acked != nil
	}
	return false
}

// answerOwed acknowledges services of which nothing is in the queue or under way any more.
func (d *Driver[K]) answerOwed(c *runtime.Context) {
	if d.work != nil {
		return
	}
	for _, name := range d.queue.drained {
		if d.owed[name] && !d.queue.next.waits(name) {
			d.answer(c, name)
		}
	}
	d.queue.drained = d.queue.drained[:0]
}

// answerFor acknowledges the services that objects concern.
func (d *Driver[K]) answerFor(c *runtime.Context, keys []K) {
	services := map[string]bool{}
	for _, k := range keys {
		d.concern(k, services)
	}
	d.answerEach(c, slices.Collect(maps.Keys(services)))
}

// answerAll acknowledges every service.
func (d *Driver[K]) answerAll(c *runtime.Context) {
	d.answerEach(c, slices.Collect(maps.Keys(d.subscribers)))
}

// Acknowledgements in roll calls: news are repeated in newsRepeats of them, so that a fault that
// hides one roll call and the news before it hides nothing; what is in sync has its turn every
// restInterval of them, so that services at rest cost next to nothing.
const (
	newsRepeats  = 2
	restInterval = 10
)

// repeatAcks sends acknowledgements again: news, those of services that are not in sync, and a part
// of the others in turn.
func (d *Driver[K]) repeatAcks(c *runtime.Context) {
	d.rollCalls++
	for i, key := range d.begun.GetKeys() {
		s := d.subscribers[key]
		if s == nil || s.acked == nil {
			continue
		}
		settled := s.acked.GetState() == messages.RenderState_RENDER_IN_SYNC
		if s.repeats > 0 || !settled || (i+d.rollCalls)%restInterval == 0 {
			c.Send(c.PID(address.Service(key)), s.acked)
			s.repeats = max(0, s.repeats-1)
		}
	}
}
