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
		// the states of very many objects are sent once, when they are done
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
	if d.barrier.begun == nil {
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
	d.barrier.rollCalls++
	for i, key := range d.barrier.begun.GetKeys() {
		s := d.subscribers[key]
		if s == nil || s.acked == nil {
			continue
		}
		settled := s.acked.GetState() == messages.RenderState_RENDER_IN_SYNC
		if s.repeats > 0 || !settled || (i+d.barrier.rollCalls)%restInterval == 0 {
			c.Send(c.PID(address.Service(key)), s.acked)
			s.repeats = max(0, s.repeats-1)
		}
	}
}

// ErrContested is what a row shows whose address has another owner; RenderAck.conflicts names it.
var ErrContested = errors.New("the address has another owner")

// RowState is what an acknowledgement says of a row; err is its last error, nil = none.
func RowState(renderer string, key fmt.Stringer, inSync bool, err error) *messages.RowState {
	state := &messages.RowState{Renderer: renderer, Vip: key.String(), InSync: inSync}
	if err != nil {
		state.Error = err.Error()
	}
	return state
}

// Unrendered adds parts of a service that there are no means for to its acknowledgement; what says
// what becomes of them: "not rendered".
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
