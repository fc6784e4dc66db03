package render

import (
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// subscriber is one service that has rendered.
type subscriber struct {
	generation, hash uint64
	// nil: the service is gone, and is forgotten when its last object has left VPP
	view *messages.ServiceView
	// last acknowledgement; nil = none for the last Render
	acked *messages.RenderAck
}

// render adopts the view of a service and answers at once with the known state.
func (d *Driver[K]) render(c *runtime.Context, m *messages.Render) {
	key := m.GetKey()
	s := d.subscribers[key]
	if s != nil && m.GetGeneration() < s.generation || m.GetGeneration() < d.barrier.awaited[key] || s == nil && d.barrier.departed(m) {
		return // older than a later Render, or the list of services
	}
	d.barrier.rendered(key, m.GetGeneration())
	switch {
	case s == nil && m.GetView() == nil:
		c.Send(c.PID(address.Service(key)), &messages.RenderAck{
			Key: key, Generation: m.GetGeneration(), Hash: m.GetHash(), Renderer: d.name, State: messages.RenderState_RENDER_RETIRED,
		})
	case s != nil && s.hash == m.GetHash() && (s.view == nil) == (m.GetView() == nil):
		// a repeated view, or the same view in a newer generation, needs no plan, only an
		// answer
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

// forget removes the services that are not in a list and have not rendered since.
func (d *Driver[K]) forget(c *runtime.Context, m *messages.Begin) {
	var gone []string
	for key, s := range d.subscribers {
		if s.view != nil && s.generation < m.GetGeneration() && !d.barrier.listed(key) {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		d.adopt(c, key, m.GetGeneration(), 0, nil)
	}
}

// adopt replaces the view of a service; nil = the service is gone. After a restart of the agent VPP
// mostly holds the objects of a service as they are wanted: then the first answer says so.
func (d *Driver[K]) adopt(c *runtime.Context, key string, generation, hash uint64, view *messages.ServiceView) {
	s := d.subscribers[key]
	first := s == nil
	if first {
		s = &subscriber{}
		d.subscribers[key] = s
	}
	s.generation, s.hash, s.view = generation, hash, view
	before := d.wishes.Objects(key)
	d.kind.Plan(key, view)
	concerned := map[string]bool{key: true}
	for _, k := range slices.Concat(before, d.wishes.Objects(key)) {
		// its owner may have changed although its wanted value has not
		d.concern(k, concerned)
	}
	d.touched(key)
	d.queue.leave(key, before)
	if first && d.known && d.exchange == nil {
		for _, k := range d.wishes.Objects(key) {
			if d.queue.Dirty(k) && d.queue.inSync(k) {
				d.queue.clean(k)
			}
		}
	}
	s.acked = nil // the new view is answered at once, before VPP has it
	d.answerEach(c, slices.Collect(maps.Keys(concerned)))
}

// concern adds the services whose acknowledgement depends on an object.
func (d *Driver[K]) concern(k K, services map[string]bool) {
	for _, name := range d.wishes.Services(k) {
		services[name] = true
	}
	for _, name := range d.queue.leavers[k] {
		services[name] = true
	}
}
