package render

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Limits of one batch: several request windows of VPP, short enough that a change of another
// service waits for two batches only.
const (
	// batchSize is the number of objects.
	batchSize = 1024
	// batchMessages is about how many messages a batch has at most; a turn may exceed it.
	batchMessages = 2048
	// slowBatch is how long VPP may take for a batch. After a slower one the next has half as
	// many messages, at least a turn. With many sessions, VPP takes a thousand times longer for
	// a message that ends some of them.
	slowBatch = 200 * time.Millisecond
)

// Driver makes VPP equal to what the services want, by means of a Kind. It owns the work queue,
// the barrier, the acknowledgements and the connection to VPP. The difference between desired and
// actual objects goes to VPP in batches, one at a time, over one stream.
//
// The driver reads VPP at the start, after VPP was away and after an operation without an answer.
// It removes nothing of an earlier run before every service has rendered. Requests of a predecessor
// cannot interfere: they stand before the read in the same stream.
type Driver[K Key] struct {
	// Set by New, read-only.
	config     *Config
	name, noun string // of the renderer, of its objects
	givesRoles bool
	wishes     wishes[K]
	kind       Kind[K]
	mail       Mail                     // nil = none
	statistics stats.Source[heap.State] // nil = none

	// The services: changed by barrier.go, services.go, largeviews.go and acks.go only.
	barrier     barrier
	views       views
	subscribers map[string]*subscriber
	owed        map[string]bool // to be acknowledged when their last object has left the queue

	// Work: changed wherever an object has to be compared, or is done.
	queue   *queue[K]
	set     *messages.InterfaceSet // complete; nil = none yet
	ticking bool                   // a tick is under way

	// VPP: changed by read.go, batch.go, memory.go and barrier.go, and by linkChanged.
	connection connection
	exchange   *exchange // under way; nil = none
	known      bool      // the content of VPP is known
	heap       heap.Reserve
	budget     int   // messages of a batch, TurnMessages to batchMessages
	swept      Phase // since the last read: objects that waited for this phase are in the queue
	opened     bool  // the barrier has been passed once

	// Last reports: changed by condition.go and batch.go, cleared where a report is due again.
	health   report.Health
	warning  string // of the kind, when the services were acknowledged
	told     string // the kind's warning at the last report
	cause    string // of the last condition that was reported
	advanced bool   // since the last heartbeat an object has reached VPP
	advances bool   // the same in the heartbeat interval before
}

// tick tries again what VPP refused.
type tick struct{}

// New returns the actor of a renderer.
func New[K Key](config *Config, r Renderer[K]) runtime.Behaviour {
	d := &Driver[K]{
		health: report.Health{Part: r.Name}, config: config, name: r.Name, noun: r.Noun, wishes: r.Claims, kind: r.Kind, mail: r.Mail,
		givesRoles: r.Roles,
		queue:      newQueue(r.Claims, r.Kind.Next), heap: heap.Reserve{Percent: config.HeapReserve, Granted: &config.Granted},
		subscribers: map[string]*subscriber{}, owed: map[string]bool{}, barrier: barrier{awaited: map[string]uint64{}}, budget: batchMessages,
		connection: connection{config: config, name: r.Name, link: &messages.LinkState{}, untold: true},
	}
	if config.Heap != nil {
		d.statistics = config.Heap()
	}
	if d.givesRoles {
		d.health.Also = address.Interfaces
	}
	r.progress(d.queue, &d.connection, &d.heap)
	return d
}

// Start satisfies runtime.Behaviour: the registry, the link and the interfaces actor are asked for
// what the renderer needs.
func (d *Driver[K]) Start(c *runtime.Context) {
	c.Send(c.PID(address.Registry), &messages.RenderUp{Renderer: d.name})
	d.askSiblings(c)
	d.health.Start(c)
	d.connection.checkAfter(c, d.config.DriftCheckLeast)
	d.report(c)
	c.Ready()
}

// askSiblings asks the earlier siblings, and the actors on which the kind depends, for their
// state.
func (d *Driver[K]) askSiblings(c *runtime.Context) {
	paths := []string{address.Link, address.Interfaces}
	if d.mail != nil {
		paths = append(paths, d.mail.Asks()...)
	}
	for _, path := range paths {
		c.Send(c.PID(path), &messages.Resync{Sibling: d.name, Incarnation: c.Incarnation()})
	}
}

// Stop satisfies runtime.Behaviour: nothing is removed from VPP.
func (*Driver[K]) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (d *Driver[K]) Receive(c *runtime.Context, msg any) {
	d.queue.now = c.Now().UnixNano()
	switch m := msg.(type) {
	case *messages.Render:
		if d.postpone(c, m) {
			return
		}
		d.render(c, m)
	case *nextView:
		d.adoptNext(c)
	case *messages.Begin:
		d.adoptAll(c)
		d.begin(c, m)
	case *messages.LinkState:
		d.linkChanged(c, m)
	case *messages.InterfaceSet:
		d.interfaces(c, m)
	case *messages.Verify:
		if d.connection.ask(m, c.Now()); m.GetRoutine() {
			d.connection.checkAfter(c, d.config.DriftCheckMost) // unless VPP is read before
		}
	case *messages.Resync: // an earlier sibling has a new incarnation
		d.askSiblings(c)
	case *readDone:
		d.read(c, m)
	case *applied[K]:
		d.applied(c, m)
	case *memoryRead:
		d.memoryRead(c, m)
	case *tick:
		d.tick(c)
	case *report.Ask:
		d.health.Repeat(c)
		return
	case *report.Beat:
		d.cause = "" // the numbers in the reason may have changed
		d.health.Waiting = d.queue.waiting()
		d.advances, d.advanced = d.advanced, false
		d.report(c)
		d.health.Beat(c)
		return
	case *RowsQuery:
		c.Reply(d.rows(m))
		return
	case *DiffQuery:
		d.diff(c)
		return
	case *diffRead:
		d.diffed(c, m)
		return
	default:
		if d.mail != nil {
			d.mail.Handle(c, msg)
			d.changed(c)
		}
	}
	d.pump(c)
	d.answerOwed(c)
	d.report(c)
	if d.mail != nil {
		d.mail.After(c, d.known)
	}
}

// touched puts the objects whose wanted value has changed, or which have to be compared again, into
// the queue. An object that no service wants has its turn with the service by.
func (d *Driver[K]) touched(by string) (changed []K, services []string) {
	changed, services = d.wishes.News()
	for _, k := range slices.Concat(changed, d.wishes.Again()) {
		d.queue.touch(k, by)
	}
	return changed, services
}

// changed puts the objects whose wanted value has changed into the queue, and acknowledges the
// services concerned.
func (d *Driver[K]) changed(c *runtime.Context) {
	changed, services := d.touched("")
	concerned := map[string]bool{}
	for _, name := range services {
		concerned[name] = true
	}
	for _, k := range changed {
		d.concern(k, concerned)
	}
	d.answerEach(c, slices.Collect(maps.Keys(concerned)))
}

// linkChanged takes the state of the connection: what VPP holds is not known on another one, and
// what it refused means nothing when it has restarted.
func (d *Driver[K]) linkChanged(c *runtime.Context, m *messages.LinkState) {
	lost, restarted := d.connection.linkChanged(m)
	if lost || restarted {
		d.known = false
		d.kind.Forget(restarted)
	}
	if restarted {
		d.queue.resetAll()
		d.memoryLost(c)
	}
	d.settle(c) // the interfaces may have become known while the connection was down
}

// pump starts the next piece of work, if there is any and VPP is there.
func (d *Driver[K]) pump(c *runtime.Context) {
	now := c.Now()
	switch {
	case d.exchange != nil || !d.connection.open(now):
	case !d.known || d.connection.doubtful(now):
		d.startRead(c)
	case d.located() && d.barrier.begun != nil:
		if d.barrier.phase() > d.swept {
			d.sweep(c)
		}
		d.startNext(c)
		if d.exchange == nil && !d.connection.driftCheckDue.IsZero() {
			d.startRead(c)
		}
	}
	d.tickLater(c)
}

// startNext starts the next batch. If none was needed, it tries once more: objects that turned out
// to be in sync may unblock others.
func (d *Driver[K]) startNext(c *runtime.Context) {
	for range 2 {
		d.settle(c)
		if d.heap.Due() && (!d.queue.next.empty() || d.heap.Level() > heap.Enough) {
			d.startMemoryRead(c)
			return
		}
		d.startBatch(c)
		for d.exchange == nil && d.queue.unblock() {
			d.startBatch(c)
		}
		if d.exchange != nil {
			return
		}
	}
}

// tickLater schedules the next tick while a retry waits.
func (d *Driver[K]) tickLater(c *runtime.Context) {
	s := &d.connection
	waits := len(d.queue.failed) > 0 || d.rereads() || s.link.GetUp() && (s.refused != nil || s.verify != "" || s.delayed.After(c.Now()))
	if waits && !d.ticking {
		d.ticking = true
		c.After(max(d.config.Tick, d.config.Backoff), &tick{})
	}
}

// tick retries refused objects: the due ones, and a half-open probe for each kind of refusal.
func (d *Driver[K]) tick(c *runtime.Context) {
	d.ticking = false
	if d.rereads() {
		d.heap.Again()
	}
	d.queue.retry(c.Now())
	d.queue.probe()
}

// Inspect satisfies runtime.Inspector.
func (d *Driver[K]) Inspect() any {
	now := d.kind.State()
	state := map[string]any{
		"services": len(d.subscribers), "awaited": len(d.barrier.awaited), "barrierPassed": d.barrier.passed(), "knowsVPP": d.known,
		"notInSync": len(d.queue.dirty), "refused": len(d.queue.failed), "working": d.exchange != nil, "settingsInVPP": now.Settings,
		"connected": d.connection.link.GetUp(), "draining": now.Draining,
	}
	if d.known {
		state["holds"] = now.Summary()
	}
	return state
}

// Config is the configuration of a Driver. All renderers share it. It is read-only, except Granted.
type Config struct {
	// VPP is the connection.
	VPP link.Caller
	// Observer counts.
	Observer report.Observer
	// Tick is the interval at which refused objects are tried again, if there are any.
	Tick time.Duration
	// Backoff is the first delay after VPP refused something; it doubles up to 30 s.
	Backoff time.Duration
	// HeapReserve is how many percent of VPP's main heap rows leave free; 0 = none.
	HeapReserve int
	// Heap makes a reader of VPP's statistics about its heap; nil = VPP is asked, at a higher
	// cost.
	Heap func() stats.Source[heap.State]
	// Granted counts the bytes of VPP's heap that all renderers have granted to rows.
	Granted atomic.Int64
	// DriftCheckLeast and DriftCheckMost bound the time between two drift checks, and
	// DriftCheckOverdue is how long one waits for work to end.
	DriftCheckLeast, DriftCheckMost, DriftCheckOverdue time.Duration
}

// backoff is the delay after refusals of objects and settings: up to 30 s, a fifth longer or
// shorter.
func (g *Config) backoff() runtime.Backoff {
	const longest, jitter = 30 * time.Second, 0.2
	return runtime.Backoff{Min: g.Backoff, Max: longest, Jitter: jitter}
}
