package actors

import (
	"fmt"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// ailment is what keeps a renderer from being in sync: words that do not change while it goes on, and the details, which are only looked for
// when they are told. The zero value is none.
type ailment struct {
	cause   string
	details func() string // nil: the cause says it all
	reach   messages.Reach
}

// What keeps renderers from being in sync.
const (
	causeLink       = "no connection to VPP"
	causeUnknown    = "what VPP holds is not known"
	causeRefused    = "VPP refused"
	causeServices   = "the services are not known yet"
	causeSilent     = "services have not spoken"
	causeInterfaces = "VPP's interfaces are not known yet"
	causeFailed     = "refused by VPP"
	causeWork       = "being programmed"
	causeSettings   = "settings and interfaces are being programmed"
	causeUnswept    = "routes of earlier runs are being removed"
	causeInSync     = "in sync"
	causeMirror     = "the services are those of the local mirror" // only a warning
)

// firstOf returns the first ailment that is one; being in sync needs no words.
func firstOf(all ...ailment) ailment {
	for _, a := range all {
		if a.cause != "" {
			return a
		}
	}
	return ailment{cause: causeInSync, details: func() string { return "" }}
}

// ails says what is wrong with VPP itself.
func (o *outlet) ails(known bool) ailment {
	switch {
	case !o.link.GetUp():
		return ailment{cause: causeLink}
	case !known:
		return ailment{cause: causeUnknown, details: o.unknown, reach: messages.Reach_REACH_DOWNSTREAM}
	case o.refused != nil:
		return ailment{causeRefused, o.refused.Error, messages.Reach_REACH_DOWNSTREAM}
	}
	return ailment{}
}

// unknown says why it is not known what VPP holds, as far as there is more to say.
func (o *outlet) unknown() string {
	if o.refused != nil {
		return causeUnknown + ": " + o.refused.Error()
	}
	return causeUnknown
}

// ails says who is awaited.
func (e *enrolment) ails() ailment {
	switch {
	case e.begun == nil:
		return ailment{cause: causeServices, reach: messages.Reach_REACH_UPSTREAM}
	case len(e.awaited) > 0:
		return ailment{causeSilent, func() string {
			return fmt.Sprintf("%d %s, first %s", len(e.awaited), causeSilent, missing(e.awaited, 1)[0])
		}, messages.Reach_REACH_OBJECT}
	}
	return ailment{}
}

// ails says what VPP refused or, unless the renderer is ready, what is left to do. Once in sync, ordinary changes do not take readiness away:
// VPP holds what was wanted a moment ago. Damage by others does.
func (b *backlog[K]) ails(unready bool) ailment {
	switch {
	case len(b.failed) > 0:
		return ailment{causeFailed, func() string {
			k, err := b.firstFailure()
			return fmt.Sprintf("%d %s %s, first %s: %v", len(b.failed), b.noun, causeFailed, k, err)
		}, messages.Reach_REACH_OBJECT}
	case b.pending() > 0 && unready:
		return ailment{
			causeWork, func() string { return fmt.Sprintf("%d %s are %s", b.pending(), b.noun, causeWork) }, messages.Reach_REACH_DOWNSTREAM,
		}
	}
	return ailment{}
}

// diagnose reports the health of a renderer when it has changed. With a warning it is in sync nevertheless.
func (r *reporter) diagnose(c *runtime.Context, a ailment, warning string, epoch uint64) {
	if r.reach = a.reach; a.cause == r.cause && r.interfaces == r.last.GetInterfaces() && r.refusedSet == r.last.GetRefusedSet() {
		return
	}
	r.cause = a.cause
	ok, reason := a.cause == causeInSync, a.cause
	if a.details != nil {
		reason = a.details()
	}
	if ok {
		reason = warning
	}
	if r.last == nil || r.last.GetOk() != ok || r.last.GetReason() != reason || r.last.GetInterfaces() != r.interfaces ||
		r.last.GetRefusedSet() != r.refusedSet {
		r.report(c, ok, reason, epoch)
	}
}
