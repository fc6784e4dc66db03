package render

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// readDone is the result of a read.
type readDone struct {
	exchange *exchange
	reading  any
	err      error
}

// startRead reads what VPP holds.
func (d *Driver[K]) startRead(c *runtime.Context) {
	x := &exchange{connection: d.connection.number(), began: c.Now(), reason: d.connection.reading(d.known)}
	d.exchange = x
	post, vpp, read := c.Post(), d.config.VPP, d.kind.Reader(d.known)
	c.Go("read", func(ctx context.Context) {
		reading, err := read(purpose(ctx, x.reason), vpp)
		post(&readDone{x, reading, err})
	})
}

// read adopts the content of VPP and puts every object that differs into the queue.
func (d *Driver[K]) read(c *runtime.Context, m *readDone) {
	d.exchange = nil
	if m.exchange.connection != d.connection.number() {
		return
	}
	if m.err != nil {
		d.connection.readFailed(c, d.known, m.exchange.reason, m.err)
		return
	}
	if d.connection.readRefused { // refused settings stay refused
		d.connection.accepted()
	}
	known := d.known
	drifted, settings := d.kind.Adopt(m.reading, known)
	d.known, d.swept = true, Rendering
	changed, services := d.touched("")
	for _, k := range drifted {
		// objects that were refused because of the drift are tried again at once
		if d.queue.failed[k] != nil {
			d.queue.touch(k, "")
		}
	}
	differing := d.differing(d.mayDiffer)
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
		d.connection.damaged = d.connection.damaged || differences > 0
		if differences > 0 {
			d.config.Observer.Drifted(d.name, differences)
		}
	} else {
		d.connection.full = m.exchange.began
	}
	if differences > 0 || m.exchange.reason != reasonDriftCheck {
		report.Event(c, &messages.Event{
			Kind: "resync", Object: d.name, Method: d.connection.method(),
			Text: fmt.Sprintf("VPP read (%s): %s, %d differ", m.exchange.reason, d.kind.State().Summary(), differences),
		})
	}
	took := c.Now().Sub(m.exchange.began)
	d.connection.checkAfter(c, d.connection.rest(took))
	verified := &messages.Verified{
		Renderer: d.name, Epoch: c.Incarnation(), Differences: uint32(differences), Reason: m.exchange.reason,
		Began: m.exchange.began.UnixNano(), Took: int64(took),
	}
	if differences > 0 {
		d.connection.repair = proto.CloneOf(verified)
	}
	c.Send(c.PID(address.Introspect), verified)
	if !known || d.warned() {
		d.answerAll(c)
		return
	}
	d.answerEach(c, slices.Concat(services, slices.Collect(maps.Keys(d.queue.leaving))))
	d.answerFor(c, slices.Concat(changed, settled, drifted))
}

// mostFirst is the number of operations of a repair that operators see.
const mostFirst = 5

// repairing adds the operations of a batch to the repair.
func repairing[K Key](repair *messages.Verified, results []Result[K]) {
	for i := range results {
		if r := &results[i]; repair != nil && !r.Idle && r.Err == nil {
			if repair.Operations++; len(repair.First) < mostFirst {
				repair.First = append(repair.First, r.Op.Describe())
			}
		}
	}
}

// repaired tells introspection that the differences of the last reading are repaired.
func (d *Driver[K]) repaired(c *runtime.Context) {
	if done := d.connection.repair; done != nil && d.known {
		d.connection.repair = nil
		done.Repaired = c.Now().UnixNano()
		c.Send(c.PID(address.Introspect), done)
	}
}

// mayDiffer reports whether an object is compared with the wanted one. Objects that no service
// wants wait for the barrier.
func (d *Driver[K]) mayDiffer(_ K, s *Step) bool { return d.barrier.passed() || s.Wanted }

// differing returns the objects for which asked is true and which VPP does not hold as wanted.
func (d *Driver[K]) differing(asked func(K, *Step) bool) (keys []K) {
	seen := map[K]bool{}
	for _, all := range []iter.Seq[K]{d.kind.State().Held, d.wishes.Keys()} {
		for k := range all {
			if seen[k] {
				continue
			}
			seen[k] = true
			if s := d.kind.Next(k); s.Cost > 0 && asked(k, &s) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// warned reports whether the kind's warning has changed since the services were acknowledged.
func (d *Driver[K]) warned() bool {
	before := d.warning
	d.warning = d.kind.State().Warning
	return d.warning != before
}
