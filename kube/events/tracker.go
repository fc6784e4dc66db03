package events

import "github.com/troupe-vpp/troupe/messages"

// Tracker remembers what was told of each service, and says what is worth telling next. It belongs to one goroutine. Its memory is one
// pointer per service, to messages that others hold as well.
type Tracker struct {
	told map[string]*messages.ServiceStatus
}

// NewTracker returns a tracker that knows nothing: what it sees first of a service is Standing.
func NewTracker() *Tracker { return &Tracker{told: map[string]*messages.ServiceStatus{}} }

// Observe returns the events that a status is worth. The status must not be modified any more.
func (t *Tracker) Observe(status *messages.ServiceStatus) []Event {
	if status.GetGone() {
		delete(t.told, status.GetKey())
		return nil
	}
	if status.GetView() == nil {
		return nil // nothing is known of it yet
	}
	events := Diff(t.told[status.GetKey()], status)
	t.told[status.GetKey()] = Settled(t.told[status.GetKey()], status)
	return events
}

// Len returns how many services are known.
func (t *Tracker) Len() int { return len(t.told) }

// UID returns the UID of a service that was observed; "" if it was not.
func (t *Tracker) UID(key string) string { return t.told[key].GetView().GetUid() }

// Settled returns the current status as a later Diff should see it: while a renderer is at work, what it said last stays true. Without this,
// "failed, pending, failed" would be two failures, and "failed, pending, in sync" no recovery. Neither status is modified; where nothing is
// pending the current one is returned itself.
func Settled(previous, current *messages.ServiceStatus) *messages.ServiceStatus {
	if previous.GetGone() || previous.GetView().GetUid() != current.GetView().GetUid() {
		previous = nil
	}
	var renders []*messages.RenderAck
	changed := false
	for _, ack := range current.GetRenders() {
		if !settled(ack) {
			changed = true
			if ack = ackOf(previous, ack.GetRenderer()); ack == nil {
				continue
			}
		}
		renders = append(renders, ack)
	}
	for _, ack := range previous.GetRenders() {
		if ackOf(current, ack.GetRenderer()) == nil {
			changed = true
			renders = append(renders, ack)
		}
	}
	if !changed {
		return current
	}
	return &messages.ServiceStatus{
		Key: current.GetKey(), Generation: current.GetGeneration(), View: current.GetView(), Renders: renders, Errors: current.GetErrors(),
		Changed: current.GetChanged(),
	}
}

// settled says whether a renderer has finished.
func settled(ack *messages.RenderAck) bool {
	return ack.GetState() != messages.RenderState_RENDER_PENDING
}

// ackOf returns what a renderer said; nil if nothing.
func ackOf(status *messages.ServiceStatus, renderer string) *messages.RenderAck {
	for _, ack := range status.GetRenders() {
		if ack.GetRenderer() == renderer {
			return ack
		}
	}
	return nil
}
