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
	// nil: it is gone, and is forgotten when nothing of it is left in VPP
	view *messages.ServiceView
	// last acknowledgement; nil = none for what it rendered last
	acked *messages.RenderAck
	// so many roll calls repeat it before it waits for its turn
	repeats int
}

// render adopts what a service wants and answers at once with what is known.
func (d *Driver[K]) render(c *runtime.Context, m *messages.Render) {
	key := m.GetKey()
	s := d.subscribers[key]
	if s != nil && m.GetGeneration() < s.generation || m.GetGeneration() < d.barrier.awaited[key] || s == nil && d.barrier.departed(m) {
		return // older than what the service, or the list of services, has said since
	}
	d.barrier.rendered(key, m.GetGeneration())
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

// forget has the services leave that are not in a list and have not rendered since.
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
