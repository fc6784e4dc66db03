package events

import "github.com/troupe-vpp/troupe/messages"

// Tracker remembers the last settled status of each service and finds the events of the next one.
// It belongs to one goroutine. It needs one pointer of memory per service, because other packages
// hold the messages anyway.
type Tracker struct {
	last map[string]*messages.ServiceStatus
}

// NewTracker returns a tracker without services: the first status of a service is Standing.
func NewTracker() *Tracker { return &Tracker{last: map[string]*messages.ServiceStatus{}} }

// Observe returns the events of a new status. The status must not be modified any more.
func (t *Tracker) Observe(status *messages.ServiceStatus) []Event {
	if status.GetGone() {
		delete(t.last, status.GetKey())
		return nil
	}
	if status.GetView() == nil {
		return nil // the service has no view yet
	}
	events := Diff(t.last[status.GetKey()], status)
	t.last[status.GetKey()] = Settled(t.last[status.GetKey()], status)
	return events
}

// Len returns how many services are known.
func (t *Tracker) Len() int { return len(t.last) }

// UID returns the UID of a service that was observed; "" if it was not.
func (t *Tracker) UID(key string) string { return t.last[key].GetView().GetUid() }

// Settled returns the current status with the last finished ack of each renderer that is at work,
// as a later Diff should see it. Without this, "failed, pending, failed" would be two failures, and
// "failed, pending, in sync" no recovery. Neither status is modified. If nothing is pending, the
// current status itself is returned.
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

// settled reports whether a renderer has finished.
func settled(ack *messages.RenderAck) bool {
	return ack.GetState() != messages.RenderState_RENDER_PENDING
}

// ackOf returns the ack of a renderer; nil = none.
func ackOf(status *messages.ServiceStatus, renderer string) *messages.RenderAck {
	for _, ack := range status.GetRenders() {
		if ack.GetRenderer() == renderer {
			return ack
		}
	}
	return nil
}
