package render

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// memoryRead is the state of VPP's heap.
type memoryRead struct {
	exchange *exchange
	state    heap.State
	err      error
}

// startMemoryRead reads how much memory of VPP is free.
func (d *Driver[K]) startMemoryRead(c *runtime.Context) {
	x := &exchange{connection: d.connection.number(), began: c.Now()}
	d.exchange = x
	post, statistics, vpp := c.Post(), d.statistics, d.config.VPP
	c.Go("memory", func(ctx context.Context) {
		state, err := readHeap(ctx, statistics, vpp)
		post(&memoryRead{x, state, err})
	})
}

// readHeap reads VPP's statistics, and asks VPP if they do not answer within a second.
func readHeap(ctx context.Context, statistics stats.Source[heap.State], vpp link.Caller) (heap.State, error) {
	if statistics != nil {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if state, err := statistics.Read(short); err == nil {
			return state, nil
		}
	}
	return heap.Read(ctx, vpp)
}

// memoryRead takes the state of VPP's heap. If VPP does not report it, rows are added without a
// reserve.
func (d *Driver[K]) memoryRead(c *runtime.Context, m *memoryRead) {
	d.exchange = nil
	if m.exchange.connection != d.connection.number() {
		return
	}
	switch {
	case m.err == nil:
		before := d.heap.Level()
		d.heap.Took(m.state)
		d.observeMemory()
		if d.known && d.heap.Level() < before {
			d.regrow()
		}
	case !link.Lost(m.err):
		d.heap = heap.Reserve{Granted: &d.config.Granted}
		c.Logger().Warn("VPP does not say how much memory is free, rows are added without a reserve", "err", m.err)
	}
}

// rereads reports whether a tick reads the heap again, so that objects that wait for memory do not
// wait for a change. Without statistics that would stop VPP for too long.
func (d *Driver[K]) rereads() bool { return d.statistics != nil && d.heap.Level() > heap.Enough }

// regrow puts the objects into the queue that are not as wanted for lack of memory.
func (d *Driver[K]) regrow() {
	for _, k := range d.differing(func(k K, s *Step) bool { return !d.queue.Dirty(k) && d.mayDiffer(k, s) }) {
		d.queue.list(k)
	}
}

// observeMemory reports the state of VPP's heap, and the number of objects that wait for memory.
func (d *Driver[K]) observeMemory() {
	now := d.heap.State()
	d.config.Observer.Memory(d.name, now.Total, now.Free, d.queue.short)
}

// admit reports whether VPP has memory for an object as it is wanted. An object in VPP may grow,
// because an outdated row does more harm; while memory is critical, the kind wants no larger
// one.
func (d *Driver[K]) admit(c *runtime.Context, k K, s *Step) bool {
	if s.Held > 0 || s.Bytes == 0 {
		d.heap.Grow(max(0, s.Bytes-s.Held))
		return true
	}
	if err := d.heap.Admit(s.Bytes); err != nil {
		d.queue.fail(k, err, c.Now(), d.config.backoff())
		return false
	}
	return true
}

// memoryLost notes that VPP has ended.
func (d *Driver[K]) memoryLost(c *runtime.Context) {
	if free := d.heap.State().Free; d.heap.Lost() {
		text := fmt.Sprintf("VPP ended with %d MiB of memory free; now %d %% are kept free", free>>20, d.heap.Percent)
		c.Logger().Warn("VPP may have ended of its memory, keeping more of it free", "free", free, "percent", d.heap.Percent)
		report.Event(c, &messages.Event{Kind: "render", Object: d.name, Text: text})
	}
}

// shortage is the warning about rows for which VPP has no memory; "" = there are none.
func (d *Driver[K]) shortage() string {
	if d.queue.short == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s are not in VPP, because its memory is nearly used up: see main-heap-size in VPP's startup.conf",
		d.queue.short, d.noun)
}
