package sourceranges

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Acknowledge adds what is to be said about the rules of a service. refused is why VPP refused access lists; nil = it did not.
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
			Unrendered(ack, "not served", []*messages.ObjectError{e})
		}
		Unrendered(ack, "not guarded", p.Unrendered)
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

// Unrendered adds parts of a service that there are no means for.
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
