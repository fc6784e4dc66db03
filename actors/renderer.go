package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// Limits of one round trip of the renderer.
const (
	batchRows    = 1024 // rows that are brought to VPP in one batch; several of its windows, short enough to stay responsive
	missingAtOne = 1024 // services asked again in one message
	journalOps   = 32   // operations written into one journal entry
)

// renderer makes VPP's NAT44 equal to what the services want. It owns what it believes VPP holds (have) and what the services want
// (ledger); the difference goes to VPP in batches, one at a time, over one stream.
//
// What VPP holds is unknown at the start, after VPP was away and after an operation without an answer; then it is read back. Nothing that
// an earlier run put there is removed before every service of the epoch has spoken. Requests of a dead predecessor cannot interfere: they
// stand before our dump in the same stream.
type renderer struct {
	reporter
	deps *Deps
	name string
	*ledger

	epoch   uint64
	began   bool
	awaited map[string]bool // services of the epoch that have not spoken
	swept   bool            // the barrier has been passed and the leftovers of earlier runs were put on the list

	link *messages.LinkState
	set  *messages.InterfaceSet
	node *messages.NodeContext

	have    *nat44.State // nil = unknown
	verify  string       // why a read of VPP is wanted although we believe to know it; "" = it is not
	globals bool         // settings and interface roles must be looked at
	delayed time.Time    // nothing is sent to VPP before, after it refused something global
	refused error        // the last global operation that VPP refused
	refusal int          // how often in a row
	work    *work        // under way
}

// work is one read or one batch.
type work struct {
	session uint64
	keys    []nat44.Key
	rows    map[nat44.Key]*nat44.Row // wanted when the batch was made
	ops     []nat44.Op
	began   time.Time
	reason  string // of a read
	cause   uint64 // highest generation of the services in it
}

// readDone and applied are the results of work.
type (
	readDone struct {
		*work
		state *nat44.State
		err   error
	}
	applied struct {
		*work
		results []nat44.OpResult
	}
)

// rendererTick repeats what was not answered and retries what failed.
type rendererTick struct{}

func newRenderer(d *Deps) runtime.Behaviour {
	return &renderer{
		reporter: reporter{part: "nat44"}, deps: d, name: "nat44", ledger: newLedger(d.NAT44), link: &messages.LinkState{},
		awaited: map[string]bool{},
	}
}

// Start satisfies runtime.Behaviour. Epochs grow over restarts, because the clock does.
func (r *renderer) Start(c *runtime.Context) {
	r.epoch = uint64(c.Now().UnixNano())
	r.ask(c)
	r.health(c)
	r.tick(c)
	c.Ready()
}

// ask has the earlier siblings repeat what they know.
func (r *renderer) ask(c *runtime.Context) {
	for _, path := range []string{PathLink, PathInterfaces} {
		c.Send(c.PID(path), &messages.Resync{Sibling: r.name, Incarnation: c.Incarnation()})
	}
}

// Stop satisfies runtime.Behaviour: VPP keeps what it has.
func (*renderer) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (r *renderer) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Render:
		r.render(c, m)
	case *messages.Begin:
		r.begin(c, m)
	case *messages.NodeContext:
		r.nodeChanged(c, m)
	case *messages.LinkState:
		r.linkChanged(c, m)
	case *messages.InterfaceSet:
		r.set, r.globals = m, r.globals || r.set.GetGeneration() != m.GetGeneration() || r.set.GetBoot() != m.GetBoot()
	case *messages.Verify:
		r.verify = m.GetReason()
	case *messages.Resync: // an earlier sibling has a new incarnation, or the registry has
		if m.GetSibling() == registryName {
			r.rise(c)
		} else {
			r.ask(c)
		}
	case *readDone:
		r.read(c, m)
	case *applied:
		r.applied(c, m)
	case *rendererTick:
		r.tick(c)
	case *RowsQuery:
		c.Reply(r.rows(m))
		return
	case *DiffQuery:
		r.diff(c)
		return
	case *diffDone:
		c.Send(m.to, m.page)
		return
	}
	r.pump(c)
	r.health(c)
}

// render adopts what a service wants and answers at once with what is known.
func (r *renderer) render(c *runtime.Context, m *messages.Render) {
	key := m.GetKey()
	if m.GetEpoch() == r.epoch && r.began {
		delete(r.awaited, key)
	}
	a := r.accounts[key]
	switch {
	case a != nil && m.GetGeneration() < a.generation:
		return // overtaken by itself; the service's latest word has been heard
	case a == nil && m.GetView() == nil:
		c.Send(c.PID(PathService(key)), &messages.RenderAck{
			Key: key, Generation: m.GetGeneration(), Renderer: r.name, State: messages.RenderState_RENDER_RETIRED,
		})
		return
	case a != nil && a.hash == m.GetHash() && (a.view == nil) == (m.GetView() == nil):
		a.generation, a.acked = m.GetGeneration(), nil
		r.answer(c, key)
		return
	}
	for _, name := range r.put(key, m.GetGeneration(), m.GetHash(), m.GetView()) {
		r.answer(c, name)
	}
}

// answer tells a service where it stands, if that is news.
func (r *renderer) answer(c *runtime.Context, key string) {
	a := r.accounts[key]
	if a == nil {
		return
	}
	ack := r.ack(r.name, key, r.have)
	if a.acked != nil && sameAck(a.acked, ack) {
		return
	}
	a.acked = ack
	c.Send(c.PID(PathService(key)), ack)
	if ack.GetState() == messages.RenderState_RENDER_RETIRED {
		r.close(key)
	}
}

// begin opens the barrier of the epoch, or renews the list of the services of a restarted registry.
func (r *renderer) begin(c *runtime.Context, m *messages.Begin) {
	if m.GetEpoch() != r.epoch {
		return
	}
	if m.GetNode() != nil {
		r.nodeChanged(c, m.GetNode())
	}
	members := map[string]bool{}
	for _, key := range m.GetKeys() {
		members[key] = true
		if !r.began && r.accounts[key] == nil {
			r.awaited[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.accounts)) {
		if !members[key] { // it went while nobody could tell us
			a := r.accounts[key]
			r.put(key, a.generation, 0, nil)
		}
	}
	for key := range r.awaited {
		if !members[key] {
			delete(r.awaited, key)
		}
	}
	if !r.began {
		r.began = true
		record(c, &messages.Event{
			Kind: "resync", Object: r.name, Text: fmt.Sprintf("epoch begun with %d services, %d still silent", len(members), len(r.awaited)),
		})
	}
}

// nodeChanged derives the hairpin address from the node unless it was configured.
func (r *renderer) nodeChanged(c *runtime.Context, m *messages.NodeContext) {
	r.node = m
	config := r.deps.NAT44
	if !config.TwiceNAT.IsValid() {
		config.TwiceNAT = hairpinAddress(m.GetNode())
	}
	if config.Equal(r.planned) {
		return
	}
	r.replan(config)
	r.globals = true
	c.Logger().Info("hairpin address", "vip", config.TwiceNAT.String())
}

// linkChanged forgets what VPP holds when the connection is another one.
func (r *renderer) linkChanged(_ *runtime.Context, m *messages.LinkState) {
	if m.GetSession() != r.link.GetSession() || !m.GetUp() {
		r.have = nil
	}
	r.link = m
}

// pump starts the next piece of work, if there is any and VPP is there.
func (r *renderer) pump(c *runtime.Context) {
	switch {
	case r.work != nil || !r.link.GetUp() || r.delayed.After(c.Now()):
		return
	case r.have == nil || r.verify != "":
		r.startRead(c)
		return
	case r.set == nil || r.set.GetBoot() != r.link.GetBoot():
		return // roles come before rows, or every row is walked for every role
	case r.passed() && !r.swept:
		r.sweep(c)
	}
	r.startBatch(c)
}

// passed reports whether every service of the epoch has spoken.
func (r *renderer) passed() bool { return r.began && len(r.awaited) == 0 }

// sweep puts everything on the list that VPP holds of us and that nobody wants.
func (r *renderer) sweep(c *runtime.Context) {
	r.swept = true
	leftovers := 0
	for k := range r.have.Rows {
		if r.wanted(k) == nil {
			r.dirty[k] = true
			leftovers++
		}
	}
	r.globals = true
	record(c, &messages.Event{
		Kind: "resync", Object: r.name, Text: fmt.Sprintf("every service has spoken; %d rows of earlier runs are not wanted any more", leftovers),
	})
}

// held is the row that VPP holds under a key; nil = none of ours. What VPP holds must be known.
func (r *renderer) held(k nat44.Key) *nat44.Row {
	if row, ok := r.have.Rows[k]; ok {
		return &row
	}
	return nil
}

func (r *renderer) startRead(c *runtime.Context) {
	reason := r.verify
	if r.have == nil {
		reason = "what VPP holds is not known"
	}
	r.verify = ""
	w := &work{session: r.link.GetSession(), began: c.Now(), reason: reason}
	r.work = w
	post, caller, reject := c.Post(), r.deps.Link, r.planned.Reject
	c.Go("read", func(ctx context.Context) {
		state, err := nat44.Read(ctx, caller, reject...)
		post(&readDone{w, state, err})
	})
}

// read adopts what VPP holds and puts every row that may differ on the list.
func (r *renderer) read(c *runtime.Context, m *readDone) {
	r.work = nil
	if m.session != r.link.GetSession() {
		return
	}
	if m.err != nil {
		r.refuse(c, fmt.Errorf("read VPP: %w", m.err))
		return
	}
	r.refused, r.refusal = nil, 0
	fresh := r.have == nil
	m.state.Inherit(r.have)
	r.have, r.globals, r.swept = m.state, true, false
	for _, k := range r.claims.SetForeign(m.state.Foreign) {
		r.touch(k)
	}
	differences := r.compare()
	record(c, &messages.Event{
		Kind: "resync", Object: r.name, Error: "",
		Text: fmt.Sprintf("VPP read (%s): %d rows of ours, %d of others, %d differ", m.reason, len(r.have.Rows), len(r.have.Foreign), differences),
	})
	if fresh || differences > 0 {
		for _, key := range slices.Sorted(maps.Keys(r.accounts)) {
			r.answer(c, key)
		}
	}
	c.Send(c.PID(PathIntrospect), &messages.Verified{Renderer: r.name, Epoch: r.epoch, Differences: uint32(differences)})
}

// compare lists every row that is not as wanted and returns their number.
func (r *renderer) compare() int {
	clear(r.dirty)
	keys := map[nat44.Key]bool{}
	for k := range r.have.Rows {
		keys[k] = true
	}
	for k := range r.claims.Rows() {
		keys[k] = true
	}
	for k := range keys {
		if want := r.wanted(k); (want != nil || r.passed()) && len(nat44.DiffRow(r.held(k), want)) > 0 {
			r.dirty[k] = true
		} else if want != nil {
			delete(r.failed, k)
		}
	}
	for k := range r.failed {
		if !r.dirty[k] {
			delete(r.failed, k)
		}
	}
	return len(r.dirty)
}

// refuse waits a growing while before VPP is asked for anything again.
func (r *renderer) refuse(c *runtime.Context, err error) {
	const longest = 30 * time.Second
	delay := min(r.deps.Timing.Backoff<<min(r.refusal, 10), longest)
	r.refused, r.delayed = err, c.Now().Add(delay)
	r.refusal++
	c.Logger().Warn("VPP refused", "err", err, "retry", delay)
	record(c, &messages.Event{Kind: "render", Object: r.name, Text: "VPP refused, retrying in " + delay.String(), Error: err.Error()})
}

// tick repeats and retries.
func (r *renderer) tick(c *runtime.Context) {
	c.After(r.deps.Timing.Retry, &rendererTick{})
	r.repeat(c)
	switch {
	case !r.began:
		r.rise(c)
	case len(r.awaited) > 0:
		c.Send(c.PID(PathRegistry), &messages.Missing{Renderer: r.name, Epoch: r.epoch, Keys: missing(r.awaited, missingAtOne)})
	}
}

// rise tells the registry of this epoch. A restarted registry must know it, too, whether the epoch has begun or not: its Begin renews the
// list of the services.
func (r *renderer) rise(c *runtime.Context) {
	c.Send(c.PID(PathRegistry), &messages.RenderUp{Renderer: r.name, Epoch: r.epoch})
}

// health says whether VPP holds what it should, and if not why.
func (r *renderer) health(c *runtime.Context) {
	ok, reason := true, ""
	set := func(text string) { ok, reason = false, text }
	key, failed := r.firstFailure()
	switch {
	case !r.link.GetUp():
		set("no connection to VPP")
	case r.have == nil:
		set("what VPP holds is not known")
	case r.refused != nil:
		set(r.refused.Error())
	case !r.began:
		set("the services are not known yet")
	case len(r.awaited) > 0:
		set(fmt.Sprintf("%d services have not spoken", len(r.awaited)))
	case r.set == nil || r.set.GetBoot() != r.link.GetBoot():
		set("VPP's interfaces are not known yet")
	case failed != nil:
		set(fmt.Sprintf("%d rows refused by VPP, first %s: %v", len(r.failed), key, failed))
	case r.pending() > 0 && !r.last.GetOk():
		set(fmt.Sprintf("%d rows are being programmed", r.pending())) // once in sync, ordinary changes do not take readiness away
	}
	if r.last == nil || r.last.GetOk() != ok || r.last.GetReason() != reason || r.last.GetEpoch() != r.epoch {
		r.report(c, ok, reason, r.epoch)
	}
}
