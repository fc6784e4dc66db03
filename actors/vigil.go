package actors

import (
	"context"
	"time"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// What a reading costs. VPP answers under a barrier that stops its workers, so vigilShare is what the packets of a node may pay for its
// watchfulness: a thousandth of the time. The first vigilWay of a reading costs them nothing: so long seven requests, one after the other, are
// on their way, and VPP 25.10 is busy with the answers for a fraction of it when it holds next to nothing.
const (
	vigilShare = 1000
	vigilWay   = time.Millisecond
)

// vigil decides when a renderer reads VPP although nobody has told it that anything is wrong: VPP does not tell what others do to it. Whoever
// holds few rows finds out within a second, who has ten thousand within half a minute. It is a value without a clock.
type vigil struct {
	least, most time.Duration // between two readings
	took        time.Duration // by the last one
	pause       time.Duration // after it
	last        time.Time     // its end; zero = VPP has not been read yet
}

// vigilTick is when the next reading is due.
type vigilTick struct{}

func newVigil(t Timing) vigil { return vigil{least: t.AuditLeast, most: t.Audit} }

// looked notes a reading, whatever came of it and whatever it was for. Of the last two the shorter one counts: the other has waited for something
// else than VPP, like a processor. Of one alone that is not known, least of all at the start, when everybody wants something.
func (v *vigil) looked(began, ended time.Time) {
	took := ended.Sub(began)
	cost := min(took, v.took) - vigilWay
	v.took, v.last, v.pause = took, ended, min(max(vigilShare*cost, v.least), v.most)
}

// due reports whether VPP may be read if there is nothing else to do.
func (v *vigil) due(now time.Time) bool { return !v.last.IsZero() && now.Sub(v.last) >= v.pause }

// overdue reports whether VPP has to be read even if there is: otherwise a node that is always busy would never find out.
func (v *vigil) overdue(now time.Time) bool { return !v.last.IsZero() && now.Sub(v.last) >= v.most }

// purpose marks what is read for no reason, so that nobody takes it for the consequence of an event.
func purpose(ctx context.Context, reason string) context.Context {
	if reason == reasonAudit {
		return link.Routine(ctx)
	}
	return ctx
}
