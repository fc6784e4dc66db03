package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
)

// External is where external configuration comes from, and where it is kept. Load and Save must survive restarts of actors; where they survive
// those of the process as well, so does what was given at the control socket.
type External interface {
	// Families are the kinds of sources that Run watches: "file", "etcd:".
	Families() []string
	// Load returns the documents that were saved last, by source, as JSON.
	Load(ctx context.Context) (map[string][]byte, error)
	// Save keeps the document of a source; nil = it has none any more.
	Save(ctx context.Context, source string, document []byte) error
	// Run watches every family until ctx ends; out gets all documents of a family each time something changed, never two at a time.
	Run(ctx context.Context, out func(ExternalUpdate)) error
}

// ExternalUpdate is what a family of sources says now.
type ExternalUpdate struct {
	// Family is one of External.Families. One that ends with a colon has the layers whose source begins like that, any other one only the layer
	// of its own name: "file" is not "fileserver", which somebody may have called his layer at the control socket.
	Family string
	// Documents by source, as JSON; complete.
	Documents map[string][]byte
	// Unreadable are sources whose document is there and cannot even be read; their last good one stays.
	Unreadable map[string]error
	// Err is why the family cannot be read: what it said last goes on being true.
	Err error
}

// speaksFor reports whether a layer belongs to the family.
func (u *ExternalUpdate) speaksFor(source string) bool {
	return source == u.Family || strings.HasSuffix(u.Family, ":") && strings.HasPrefix(source, u.Family)
}

// externals keeps external configuration: a layer per source, merged by priority, told to the nat44 renderer. Layers come from the families of
// sources, which are watched, and from commands. A command is a transaction: its layer is in VPP and kept, or nothing of it is, and the answer
// says why.
//
// A document with an error changes nothing: the last good layer of its source stays.
type externals struct {
	reporter
	commands
	deps     *Deps
	loaded   bool
	layers   map[string]*layered
	problems map[string]string // by source or family: what is wrong with what it says now
	spoken   map[string]bool   // families
	retired  retiredExternal
	wants    *externalWants // nil before everything is loaded
	status   *externalStatus
	issued   uint64
	waits    *externalWait // for the step under way; nil = VPP is not waited for
	saves    []externalSave
	saving   bool
	snat     snatState
}

// layered is one layer with the document that it was made of.
type layered struct {
	*external.Layer
	document []byte
	since    time.Time
}

// externalWait waits until VPP holds what is wanted now.
type externalWait struct {
	ticket uint64
	source string // whose entries have to be had; "" = it does not matter
}

// externalSave is one document to be kept.
type externalSave struct {
	source   string
	document []byte
	ticket   uint64 // of the command that waits for it; 0 = none does
}

// Results of what externals does, and its timer.
type (
	externalLoaded struct {
		documents map[string][]byte
		err       error
	}
	externalSaved struct {
		externalSave
		err error
	}
	externalEnded struct{ err error }
	externalTick  struct{}
)

func newExternal(d *Deps) runtime.Behaviour {
	return &externals{
		reporter: reporter{part: "external"}, deps: d, layers: map[string]*layered{}, problems: map[string]string{}, spoken: map[string]bool{},
	}
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, because incarnations do.
func (x *externals) Start(c *runtime.Context) {
	c.Ready() // nobody waits for us
	x.issued = (c.Incarnation() - 1) << generationBits
	x.report(c, true, "", 0)
	x.keep(c)
	x.tick(c)
	sources := x.deps.External
	if sources == nil {
		x.begin(c, &externalLoaded{})
		return
	}
	post, lane := c.Post(), x.deps.lanes.external
	c.Go("external", func(ctx context.Context) {
		ran, err := lane.run(ctx, func() error {
			documents, err := sources.Load(ctx)
			post(&externalLoaded{documents, err})
			return sources.Run(ctx, func(u ExternalUpdate) { post(&u) })
		})
		if ran && ctx.Err() == nil {
			post(&externalEnded{err})
		}
	})
}

// Stop satisfies runtime.Behaviour: what is in VPP stays.
func (x *externals) Stop(c *runtime.Context) { x.release(c) }

// Receive satisfies runtime.Behaviour.
func (x *externals) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *externalLoaded:
		x.begin(c, m)
	case *ExternalUpdate:
		x.heard(c, m)
	case *externalStatus:
		x.became(c, m)
		x.keepSNAT(c)
	case *snatPlace:
		x.placed(c, m)
	case *ExternalApply:
		x.apply(c, m)
	case *commandExpired:
		if m.of == x.running {
			x.waits = nil
		}
		x.expired(c, m, ExternalPatience)
	case *externalSaved:
		x.saved(c, m)
	case *messages.Resync:
		x.tell(c)
	case *externalTick:
		x.tick(c)
	case *externalEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		c.Fail(fmt.Errorf("external configuration: %w", m.err)) // the supervisor restarts us, with back-off
	case *ExternalQuery:
		c.Reply(x.page())
		return
	case *healthBeat:
		x.keep(c)
		x.repeat(c)
		return
	}
	x.warn(c)
}

// tick repeats what was not answered.
func (x *externals) tick(c *runtime.Context) {
	c.After(x.deps.Timing.Retry, &externalTick{})
	if x.wants != nil && (x.status == nil || x.status.generation != x.wants.generation) {
		x.tell(c)
	}
}

// begin adopts what an earlier run has kept.
func (x *externals) begin(c *runtime.Context, m *externalLoaded) {
	x.loaded = true
	if m.err != nil {
		c.Logger().Warn("external configuration of an earlier run cannot be read", "err", m.err)
		x.problems["kept"] = m.err.Error()
	}
	for _, source := range sortedKeys(m.documents) {
		x.adopt(c, source, m.documents[source])
	}
	x.beginSNAT(c)
	x.publish(c)
}

// adopt makes the document of a source its layer; nil removes it. It reports whether that changed anything. A document with an error leaves
// the layer as it is.
func (x *externals) adopt(c *runtime.Context, source string, document []byte) bool {
	delete(x.problems, source)
	before := x.layers[source]
	if document == nil {
		delete(x.layers, source)
		return before != nil
	}
	if before != nil && string(before.document) == string(document) {
		return false
	}
	layer, err := external.Decode(document, source)
	if err != nil {
		x.problems[source] = err.Error()
		c.Logger().Warn("external configuration is not taken", "source", source, "err", err)
		record(c, &messages.Event{Kind: "external", Object: source, Text: "not taken, the last good one stays", Error: err.Error()})
		return false
	}
	x.layers[source] = &layered{layer, document, c.Now()}
	return true
}

// heard takes what a family of sources says. Commands change other layers, so neither waits for the other.
func (x *externals) heard(c *runtime.Context, m *ExternalUpdate) {
	delete(x.problems, m.Family)
	if m.Err != nil {
		x.problems[m.Family] = m.Err.Error()
		return
	}
	sources := map[string]bool{}
	for source := range m.Documents {
		sources[source] = true
	}
	for source := range x.layers {
		if m.speaksFor(source) && m.Unreadable[source] == nil {
			sources[source] = true
		}
	}
	changed := false
	for _, source := range sortedKeys(sources) {
		if x.adopt(c, source, m.Documents[source]) {
			changed = true
			x.save(c, externalSave{source: source, document: m.Documents[source]})
			record(c, &messages.Event{Kind: "external", Object: source, Text: fmt.Sprintf("%d entries", x.layers[source].size())})
		}
	}
	for source, err := range m.Unreadable {
		x.problems[source] = err.Error()
	}
	for source := range x.problems {
		if m.speaksFor(source) && m.Documents[source] == nil && m.Unreadable[source] == nil {
			delete(x.problems, source)
		}
	}
	// Who has never said anything good may be the owner of what is in VPP.
	sources = map[string]bool{}
	for _, source := range slices.Concat(sortedKeys(m.Documents), sortedKeys(m.Unreadable)) {
		sources[source] = x.layers[source] == nil
	}
	good := !slices.Contains(slices.Collect(maps.Values(sources)), true)
	if first := good && !x.spoken[m.Family]; first || changed {
		x.spoken[m.Family] = x.spoken[m.Family] || good
		x.publish(c)
	}
}

func (l *layered) size() int {
	if l == nil {
		return 0
	}
	return l.Size()
}

// merge is what all layers want together.
func (x *externals) merge() *external.Merged {
	var layers []*external.Layer
	for _, source := range sortedKeys(x.layers) {
		layers = append(layers, x.layers[source].Layer)
	}
	return external.Merge(layers)
}

// publish tells the renderer what all layers want together.
func (x *externals) publish(c *runtime.Context) {
	x.issued++
	merged := x.merge()
	x.retire(merged)
	x.wants = &externalWants{generation: x.issued, merged: merged, complete: x.complete(), retired: x.retired}
	x.tell(c)
}

// complete reports whether every source has spoken.
func (x *externals) complete() bool {
	if x.deps.SNAT.Enabled && !x.snat.known {
		return false
	}
	if x.deps.External == nil {
		return true
	}
	for _, family := range x.deps.External.Families() {
		if !x.spoken[family] {
			return false
		}
	}
	return x.problems["kept"] == ""
}

// retire notes what is wanted, because VPP will not tell whose it was when it is not any more.
func (x *externals) retire(merged *external.Merged) {
	x.retired = x.retired.with(merged.Addresses(), merged.Roles())
}

func (x *externals) tell(c *runtime.Context) {
	if x.wants != nil {
		c.Send(c.PID(PathRenderer("nat44")), x.wants)
	}
}

// save keeps a document; one after the other, in their order.
func (x *externals) save(c *runtime.Context, s externalSave) {
	x.saves = append(x.saves, s)
	x.saveNext(c)
}

func (x *externals) saveNext(c *runtime.Context) {
	if x.saving || len(x.saves) == 0 {
		return
	}
	next := x.saves[0]
	x.saves, x.saving = x.saves[1:], true
	post, sources := c.Post(), x.deps.External
	c.Go("external-save", func(ctx context.Context) { post(&externalSaved{next, sources.Save(ctx, next.source, next.document)}) })
}

func (x *externals) saved(c *runtime.Context, m *externalSaved) {
	x.saving = false
	switch {
	case m.ticket != 0:
		x.finish(c, m.ticket, m.err)
	case m.err != nil:
		c.Logger().Warn("external configuration is not kept", "source", m.source, "err", m.err)
	}
	x.saveNext(c)
}

// warn reports the health of the part, which is always good: the node serves what it should. A warning stands beside it.
func (x *externals) warn(c *runtime.Context) {
	reason := ""
	if len(x.problems) > 0 {
		first := sortedKeys(x.problems)[0]
		reason = strings.TrimSuffix(first, ":") + ": " + x.problems[first]
	} else if n, e, why := x.troubled(); n > 0 {
		reason = fmt.Sprintf("%d entries are not in VPP, first %s of %s: %s", n, e.Name, e.Source, why)
	}
	if x.reporter.last.GetReason() != reason {
		x.report(c, true, reason, 0)
	}
}

// troubled counts the entries that cannot be had, and returns the first one.
func (x *externals) troubled() (n int, first external.Entry, why string) {
	if x.wants == nil {
		return 0, first, ""
	}
	for _, e := range x.wants.merged.Entries {
		s := x.state(&e)
		if s.State != externalFailed && s.State != externalRefused {
			continue
		}
		if n++; n == 1 {
			first, why = e, s.Why
		}
	}
	return n, first, why
}

// state is what became of an entry, as far as it is known.
func (x *externals) state(e *external.Entry) externalState {
	switch {
	case e.Shadowed:
		return externalState{externalShadowed, e.Owner, e.Why}
	case e.Owner != "":
		return externalState{externalRefused, e.Owner, e.Why}
	case x.status == nil || x.status.generation != x.wants.generation:
		return externalState{State: externalPending}
	default:
		return x.status.entries[e.Name]
	}
}
