package sourceranges

import (
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
)

// Acknowledge adds the state of the rules of a service to its acknowledgement. refused is why VPP
// refused access lists; nil = no refusal.
func (r *Ranges) Acknowledge(ack *messages.RenderAck, service string, refused error) {
	waits := !r.Left(service)
	if p := r.plans[service]; p != nil {
		approximations := p.Approximations
		if !r.Guarded(service) {
			approximations = p.Unserved
		}
		ack.Approximations = slices.Concat(ack.GetApproximations(), approximations)
		for k := range p.frontends {
			waits = waits || r.Guarded(service) && r.standing.Missing[k]
		}
		if e := r.refused[service]; e != nil {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, ""
			render.Unrendered(ack, "not served", []*messages.ObjectError{e})
		}
		render.Unrendered(ack, "not guarded", p.Unrendered)
	}
	waits = waits || r.changed[service] && r.Guarded(service)
	switch state := ack.GetState(); {
	case !waits || state == messages.RenderState_RENDER_FAILED:
	case refused != nil:
		ack.State, ack.Error = messages.RenderState_RENDER_FAILED, refused.Error()
	default:
		ack.State = messages.RenderState_RENDER_PENDING
	}
}
