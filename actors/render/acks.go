package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// answer acknowledges a service, if its acknowledgement has changed.
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
	s.acked = ack
	c.Send(c.PID(address.Service(key)), ack)
	if ack.GetState() == messages.RenderState_RENDER_RETIRED {
		delete(d.subscribers, key)
		d.queue.forget(key)
	}
}

// acknowledgement is the present state of a service in VPP.
func (d *Driver[K]) acknowledgement(key string, s *subscriber) *messages.RenderAck {
	ack := &messages.RenderAck{
		Key: key, Generation: s.generation, Hash: s.hash, Renderer: d.name, State: messages.RenderState_RENDER_IN_SYNC,
	}
	if d.known && d.queue.next.waits(key) && len(d.wishes.Objects(key)) > batchSize {
		// the state of a very large service is sent once, when all is done
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
	for _, k := range d.wishes.Objects(key) {
		switch owner := d.wishes.Owner(k); owner {
		case "", key:
			d.queue.acknowledge(ack, k, d.queue.Dirty(k))
		default:
			ack.Conflicts = append(ack.Conflicts, &messages.Conflict{Frontend: k.String(), Owner: owner})
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(d.queue.leaving[key]), d.wishes.Compare) {
		// until the object has left VPP, the service is served as before
		d.queue.acknowledge(ack, k, true)
	}
	d.kind.Acknowledge(ack, key, d.known)
	if d.barrier.begun == nil {
		ack.Approximations = nil // approximations depend on the node
	}
	return ack
}

// answerEach acknowledges services whose acknowledgement has changed. Its cost grows with the
// number of objects of the service. So an unfinished service gets the next one when its last object
// has left the queue, and not after every batch.
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

// unfinished reports whether the last acknowledgement says that VPP does not hold the present view.
func (s *subscriber) unfinished() bool {
	switch s.acked.GetState() {
	case messages.RenderState_RENDER_PENDING, messages.RenderState_RENDER_FAILED:
		return s.acked != nil
	}
	return false
}

// answerOwed acknowledges services whose last object has left the queue.
func (d *Driver[K]) answerOwed(c *runtime.Context) {
	if d.exchange != nil {
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

// ErrContested is the error of a row whose address has another owner. RenderAck.conflicts names the
// owner.
var ErrContested = errors.New("the address has another owner")

// RowState is the state of one row in an acknowledgement; err is its last error, nil = none.
func RowState(renderer string, key fmt.Stringer, inSync bool, err error) *messages.RowState {
	state := &messages.RowState{Renderer: renderer, Vip: key.String(), InSync: inSync}
	if err != nil {
		state.Error = err.Error()
	}
	return state
}

// Unrendered adds the parts of a service that VPP cannot serve to its acknowledgement. what says
// their fate: "not rendered".
func Unrendered(ack *messages.RenderAck, what string, parts []*messages.ObjectError) {
	if len(parts) == 0 {
		return
	}
	ack.Unrendered = slices.Concat(ack.GetUnrendered(), parts)
	if ack.GetError() != "" {
		return
	}
	ack.Error = fmt.Sprintf("%s: %s: %s", what, parts[0].GetField(), parts[0].GetMessage())
	if more := len(parts) - 1; more > 0 {
		ack.Error += fmt.Sprintf(" (and %d more)", more)
	}
}
