package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// applied is the result of a batch.
type applied[K Key] struct {
	exchange *exchange
	keys     []K
	results  []Result[K]
	answered time.Time // by VPP; the message waits in the mailbox after it
}

// startBatch sends the operations for the objects in the queue, and settings that are not in VPP.
// It skips objects that need no operation.
func (d *Driver[K]) startBatch(c *runtime.Context) {
	var steps []Chosen[K]
	var quiet []K
	for messages := d.budget; len(steps) < batchSize && messages > 0 && !d.queue.next.empty(); {
		messages -= d.queue.takeTurn(batchSize-len(steps), func(k K) int {
			step := d.kind.Next(k)
			switch {
			case step.Cost == 0:
				d.queue.clean(k)
				quiet = append(quiet, k)
			case step.Gate == Blocked:
				d.queue.hold(k)
				d.queue.blocked[k] = true
			case step.Gate == Closed: // sweep puts it into the queue when the barrier has been passed
				d.queue.hold(k)
			case !d.admit(c, k, &step):
				quiet = append(quiet, k)
			default:
				steps = append(steps, Chosen[K]{k, step})
				return step.Cost
			}
			return 0
		})
	}
	todo := d.kind.Work(steps)
	if d.kind.State().Settings {
		d.settingsDone()
	}
	d.answerFor(c, quiet)
	if todo == nil {
		if d.queue.Pending() == 0 && !d.connection.full.IsZero() {
			d.connection.synced(c, d.connection.full, 0) // VPP held everything already
		}
		return
	}
	keys := make([]K, len(steps))
	for i := range steps {
		keys[i] = steps[i].Key
	}
	x := &exchange{connection: d.connection.number(), began: c.Now()}
	d.exchange = x
	report.TookStep(c, d.name, report.StepKey, d.queue.retries(keys))
	post, now, vpp := c.Post(), c.Clock(), d.config.VPP
	c.Go("apply", func(ctx context.Context) {
		results := todo(ctx, vpp)
		post(&applied[K]{x, keys, results, now()})
	})
}

// settingsDone notes that the settings and roles of the present interface set are in VPP.
func (d *Driver[K]) settingsDone() {
	d.health.Interfaces, d.health.RefusedSet, d.health.RefusedWhy = d.set.GetGeneration(), 0, ""
	if d.connection.refused != nil && !d.connection.readRefused {
		d.connection.accepted() // the refused operation is not wanted any more
	}
}

// applied takes the results of a batch from its goroutine.
func (d *Driver[K]) applied(c *runtime.Context, m *applied[K]) {
	d.exchange = nil
	if m.answered.Sub(m.exchange.began) > slowBatch {
		d.budget = max(d.budget/2, TurnMessages)
	} else {
		d.budget = min(d.budget+TurnMessages, batchMessages)
	}
	d.record(c, m.results)
	repairing(d.connection.repair, m.results)
	if m.exchange.connection != d.connection.number() || !d.known {
		return // VPP was away meanwhile, everything is read again
	}
	d.kind.Record(m.results)
	changed, services := d.touched("")
	if why := d.kind.State().RolesRefused; why != "" {
		d.health.RefusedSet, d.health.RefusedWhy = d.set.GetGeneration(), why
	}
	o := sum(m.results)
	d.advanced = d.queue.conclude(m.keys, o.refused, c.Now(), d.config.backoff()) || d.advanced
	if o.unknown > 0 {
		d.known = false // some of it may have happened
	}
	conclude(c, &d.connection, &o, d.queue.stubborn(m.keys))
	d.connection.synced(c, m.exchange.began, d.queue.Pending())
	if d.warned() {
		d.answerAll(c)
		return
	}
	d.answerEach(c, services)
	d.answerFor(c, slices.Concat(changed, m.keys))
	d.answerOwed(c)
}

// outcome is the summary of a batch.
type outcome[K Key] struct {
	refused  map[K]error
	settings error // error of the last operation on settings
	done     int
	failed   int
	unknown  int  // without an answer
	unsent   int  // never left this process
	doubt    bool // VPP has to be read
}

// sum summarises results.
func sum[K Key](results []Result[K]) (o outcome[K]) {
	o.refused = map[K]error{}
	for i := range results {
		o.take(&results[i])
	}
	return o
}

func (o *outcome[K]) take(r *Result[K]) {
	kind := classOf(r.Err)
	switch {
	case r.Idle:
		return
	case kind == classNone:
		o.done++
		o.doubt = o.doubt || r.Unknown
		return
	case errors.Is(r.Err, link.ErrUnknown):
		o.unknown++
		return
	case kind == classWait:
		o.unsent++
		return
	case r.Setting:
		o.settings = fmt.Errorf("%s: %w", r.Op.Describe(), r.Err)
	default:
		if first := o.refused[r.Object]; first == nil || errors.Is(first, link.ErrSkipped) {
			// a later refusal may be a consequence of the first
			o.refused[r.Object] = r.Err
		}
	}
	o.failed++
	o.doubt = o.doubt || r.Unknown || kind == classResync
}

// conclude prepares the next batch or read. stubborn says that VPP has refused one object of the
// batch again and again.
func conclude[K Key](c *runtime.Context, n *connection, o *outcome[K], stubborn bool) {
	n.config.Observer.Operations(n.name, o.done, o.failed, o.unknown+o.unsent)
	switch {
	case o.unknown+o.unsent > 0:
		// the link reports the next connection, which ends the wait
		n.delayed = c.Now().Add(n.config.Backoff)
	case o.settings != nil:
		n.refuse(c, o.settings)
	default:
		n.accepted()
	}
	if !o.doubt && !stubborn && o.settings == nil {
		return
	}
	if o.settings == nil && n.verify == "" {
		report.TookStep(c, n.name, report.StepObject, 1)
	}
	n.verify, n.reread = "VPP refused an operation", c.Now()
	if !o.doubt {
		n.reread = c.Now().Add(n.config.Backoff) // not after every one of many
	}
}
