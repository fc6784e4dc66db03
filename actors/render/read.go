package render

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// work is one read or one batch.
type work struct {
	session uint64
	began   time.Time
	reason  string // of a read
}

// readDone is the result of a read.
type readDone struct {
	*work
	reading any
	err     error
}

// startRead reads what VPP holds.
func (d *Driver[K]) startRead(c *runtime.Context) {
	w := &work{session: d.session.link.GetSession(), began: c.Now(), reason: d.session.reading(d.known)}
	d.work = w
	post, vpp, read := c.Post(), d.config.VPP, d.adapter.Reader(d.known)
	c.Go("read", func(ctx context.Context) {
		reading, err := read(purpose(ctx, w.reason), vpp)
		post(&readDone{w, reading, err})
	})
}

// read adopts what VPP holds and puts every object that differs into the queue.
func (d *Driver[K]) read(c *runtime.Context, m *readDone) {
	d.work = nil
	if m.session != d.session.link.GetSession() {
		return
	}
	if m.err != nil {
		d.session.readFailed(c, d.known, m.reason, m.err)
		return
	}
	d.session.readAccepted()
	known := d.known
	drifted, settings := d.adapter.Adopt(m.reading, known)
	d.known, d.swept = true, Rendering
	changed, services := d.touched("")
	for _, k := range drifted {
		if d.queue.failed[k] != nil { // objects refused because of it are tried again at once
			d.queue.touch(k, "")
		}
	}
	differing := d.adapter.differing(d.mayDiffer)
	for _, left := range d.queue.leaving {
		for k := range left {
			if !d.queue.inSync(k) {
				differing = append(differing, k)
			}
		}
	}
	settled := d.queue.relist(differing)
	d.queue.retry(c.Now())
	differences := len(d.queue.dirty)
	if known {
		differences = len(drifted) + settings
		d.session.damaged = d.session.damaged || differences > 0
		if differences > 0 {
			d.config.Observer.Drifted(d.name, differences)
		}
	} else {
		d.session.full = m.began
	}
	if differences > 0 || m.reason != reasonDriftCheck {
		report.Event(c, &messages.Event{
			Kind: "resync", Object: d.name, Method: d.session.method(),
			Text: fmt.Sprintf("VPP read (%s): %s, %d differ", m.reason, d.adapter.Summary(), differences),
		})
	}
	verified := &messages.Verified{Renderer: d.name, Epoch: c.Incarnation(), Differences: uint32(differences), Took: int64(c.Now().Sub(m.began))}
	for _, path := range []string{address.Introspect, address.Audit} {
		c.Send(c.PID(path), verified)
	}
	if !known || d.warned() {
		d.answerAll(c)
		return
	}
	d.answerEach(c, slices.Concat(services, slices.Collect(maps.Keys(d.queue.leaving))))
	d.answerFor(c, slices.Concat(changed, settled, drifted))
}

// mayDiffer reports whether an object is compared with the wanted one: objects that no service
// wants wait for the barrier.
func (d *Driver[K]) mayDiffer(k K) bool { return d.barrier.passed() || d.adapter.Wanted(k) }

// warned reports whether the adapter's warning has changed since the services were acknowledged.
func (d *Driver[K]) warned() bool {
	before := d.warning
	d.warning = d.adapter.Warning()
	return d.warning != before
}

// sweep puts what has waited for the phase into the queue, and when the barrier has been passed
// every object of ours that no service wants.
func (d *Driver[K]) sweep(c *runtime.Context) {
	d.swept = d.barrier.phase()
	var leftovers []K
	if d.barrier.passed() {
		leftovers = d.adapter.differing(func(k K) bool { return !d.adapter.Wanted(k) })
		slices.SortFunc(leftovers, d.adapter.Compare)
	}
	for _, k := range slices.Concat(leftovers, d.queue.unfinished()) {
		d.queue.list(k)
	}
	if d.barrier.passed() && (!d.opened || len(leftovers) > 0) {
		d.opened = true
		report.Event(c, &messages.Event{
			Kind: "resync", Object: d.name, Method: d.session.method(),
			Text: fmt.Sprintf("every service has rendered; %d %s of earlier runs are not wanted any more", len(leftovers), d.noun),
		})
	}
}
