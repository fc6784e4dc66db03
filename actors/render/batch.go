package render

import (
	"context"
	"slices"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
)

// applied is the result of a batch.
type applied[K Key] struct {
	*work
	keys    []K
	results []Result[K]
}

// startBatch sends the operations for the objects in the queue, and settings that are not in VPP.
// Objects that need none are passed over.
func (d *Driver[K]) startBatch(c *runtime.Context) {
	var keys, quiet []K
	messages := batchMessages
	for len(keys) < batchSize && messages > 0 && !d.queue.next.empty() {
		taken, needed := d.queue.take(batchSize-len(keys), messages)
		messages -= needed
		for _, k := range taken {
			if d.queue.inSync(k) {
				d.queue.clean(k)
				quiet = append(quiet, k)
				continue
			}
			switch d.adapter.Gate(k, d.phase()) {
			case Open:
				if d.admit(c, k) {
					keys = append(keys, k)
				} else {
					quiet = append(quiet, k)
				}
			case Blocked:
				d.queue.hold(k)
				d.queue.blocked[k] = true
			case Closed: // it is listed again when the barrier has been passed
				d.queue.hold(k)
			}
		}
	}
	todo := d.adapter.Work(keys)
	if d.adapter.Settings() {
		d.settingsDone()
	}
	d.answerFor(c, quiet)
	if todo == nil {
		if d.queue.Pending() == 0 && !d.full.IsZero() {
			d.synced(c, d.full, 0) // VPP held everything already
		}
		return
	}
	w := &work{session: d.link.GetSession(), began: c.Now()}
	d.work = w
	report.TookStep(c, d.name, report.StepKey, d.queue.retries(keys))
	post, vpp := c.Post(), d.config.VPP
	c.Go("apply", func(ctx context.Context) { post(&applied[K]{w, keys, todo(ctx, vpp)}) })
}

// settingsDone notes that the settings and roles of the present interface set are in VPP.
func (d *Driver[K]) settingsDone() {
	d.Interfaces, d.RefusedSet, d.RefusedWhy = d.set.GetGeneration(), 0, ""
	if d.refused != nil && !d.unread {
		d.accepted() // what was refused is not wanted any more
	}
}

// applied takes the results of a batch.
func (d *Driver[K]) applied(c *runtime.Context, m *applied[K]) {
	d.work = nil
	d.record(c, m.results)
	if m.session != d.link.GetSession() || !d.known {
		return // VPP was away meanwhile, everything is read again
	}
	d.adapter.Record(m.results)
	changed, services := d.touched("")
	if why := d.adapter.RolesRefused(); why != "" {
		d.RefusedSet, d.RefusedWhy = d.set.GetGeneration(), why
	}
	o := sum(m.results)
	d.advanced = d.queue.conclude(m.keys, o.refused, c.Now(), d.config.backoff()) || d.advanced
	if o.unknown > 0 {
		d.known = false // some of it may have happened
	}
	conclude(c, &d.session, &o, d.queue.stubborn(m.keys))
	d.synced(c, m.began, d.queue.Pending())
	if d.warned() {
		d.answerAll(c)
		return
	}
	d.answerEach(c, services)
	d.answerFor(c, slices.Concat(changed, m.keys))
	d.answerOwed(c)
}
