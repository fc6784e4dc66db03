// Package external is the actor for configuration from outside of Kubernetes. Files, etcd and
// commands have layers of NAT mappings, addresses and interface roles; dynamic SNAT is the lowest
// layer. vpp/external decodes and merges the layers, as pure functions.
//
// The actor owns the layers and their saved documents. It sends the merged layers to one renderer
// (Wants), which answers with a Status. Sources are watched in a goroutine of the actor and end
// with the incarnation. Stop answers the commands under way; nothing leaves VPP.
package external

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
)

// Sources is where external configuration comes from, and where it is saved. Saved documents must
// survive restarts of the actor. Configuration applied at the
// control socket survives a restart of the process if its document does.
type Sources interface {
	// Families are the kinds of sources that Run watches: "file", "etcd:".
	Families() []string
	// Load returns the documents that were saved last, by source, as JSON.
	Load(ctx context.Context) (map[string][]byte, error)
	// Save saves the document of a source; nil = it has none any more.
	Save(ctx context.Context, source string, document []byte) error
	// Run watches every family until ctx ends; out gets all documents of a family each time
	// something changed, never two at a time.
	Run(ctx context.Context, out func(Update)) error
}

// Update is the present state of a family of sources.
type Update struct {
	// Family is one of Sources.Families. A family that ends with a colon has all layers with
	// that prefix; any other family has the layer of its own name. So "file" does not have the
	// layer "fileserver" of the control socket.
	Family string
	// Documents by source, as JSON; complete.
	Documents map[string][]byte
	// Unreadable are sources whose document exists and cannot be read; their last good one
	// stays.
	Unreadable map[string]error
	// Err is why the family cannot be read; then its last documents stay.
	Err error
}

// has reports whether a layer belongs to the family.
func (u *Update) has(source string) bool {
	return source == u.Family || strings.HasSuffix(u.Family, ":") && strings.HasPrefix(source, u.Family)
}

// Config is the configuration of the actor. It is read-only.
type Config struct {
	// Sources may be nil: then only commands change layers, and nothing is saved.
	Sources Sources
	// Runs lets one run of Sources in at a time.
	Runs *runtime.Exclusive
	// SNAT are the settings of dynamic SNAT, a layer beneath the others.
	SNAT external.SNAT
	// Renderer is the path of the renderer that carries out the merged layers.
	Renderer string
}

// externals keeps external configuration: a layer per source, merged by priority, sent to the
// renderer. Layers come from the watched families of sources, and from commands. A command is a
// transaction: its layer is in VPP and saved, or nothing changes and the answer says why.
//
// A document with an error changes nothing: the last good layer of its source stays.
type externals struct {
	report.Health
	command.Queue
	config *Config

	// Layers: changed by adopt, updated, replace and begin.
	loaded   bool // the documents of an earlier run are layers
	layers   map[string]*layered
	problems map[string]string // by source or family: why its present document is not taken
	read     map[string]bool   // families
	snat     snatState         // changed by snat.go

	// The renderer: changed by publish and statusChanged.
	issued  uint64  // generation of the last Wants
	wants   *Wants  // nil before everything is loaded
	retired Retired // what earlier layers wanted
	status  *Status // answer of the renderer
	waits   *wait   // for the operation under way; nil = VPP is not waited for

	// Saves: changed by save, saveNext and saved.
	saves  []save
	saving bool
}

// generationBits is how many generations one incarnation can give out.
const generationBits = 40

// layered is one layer with the document that it was made of.
type layered struct {
	*external.Layer
	document []byte
	since    time.Time
}

// wait is a wait until VPP holds the present Wants.
type wait struct {
	ticket uint64
	source string // its entries must not be refused; "" = entries may be refused
}

// save is one document to be saved.
type save struct {
	source   string
	document []byte
	ticket   uint64 // of the command that waits for the save; 0 = none waits
}

// Results of work in goroutines.
type (
	loadedDocuments struct {
		documents map[string][]byte
		err       error
	}
	savedDocument struct {
		save
		err error
	}
	sourcesEnded struct{ err error }
)

// New returns the actor.
func New(config *Config) runtime.Behaviour {
	return &externals{
		Health: report.Health{Part: "external"}, config: config, layers: map[string]*layered{}, problems: map[string]string{}, read: map[string]bool{},
	}
}

// Start satisfies runtime.Behaviour. Generations grow over restarts, because incarnations do.
func (x *externals) Start(c *runtime.Context) {
	c.Ready()
	x.issued = (c.Incarnation() - 1) << generationBits
	x.Report(c, true, "", 0)
	x.Health.Start(c)
	sources := x.config.Sources
	if sources == nil { // nothing to load
		x.begin(c, &loadedDocuments{})
		return
	}
	post, runs := c.Post(), x.config.Runs
	c.Go("external", func(ctx context.Context) {
		ran, err := runs.Run(ctx, func() error {
			documents, err := sources.Load(ctx)
			post(&loadedDocuments{documents, err})
			return sources.Run(ctx, func(u Update) { post(&u) })
		})
		if ran && ctx.Err() == nil {
			post(&sourcesEnded{err})
		}
	})
}

// Stop satisfies runtime.Behaviour: what is in VPP stays.
func (x *externals) Stop(c *runtime.Context) { x.Interrupt(c) }

func (x *externals) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *loadedDocuments:
		x.begin(c, m)
	case *Update:
		x.updated(c, m)
	case *Status:
		x.statusChanged(c, m)
		x.forgetSNAT(c)
	case *Place:
		x.placed(c, m)
	case *Apply:
		x.apply(c, m)
	case *command.Expired:
		if m.Of == x.Running() {
			x.waits = nil // the rollback sets another one
		}
		x.Expire(c, m, Deadline)
	case *savedDocument:
		x.saved(c, m)
	case *messages.Resync:
		x.send(c)
	case *sourcesEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		// the supervisor restarts the actor, with back-off
		c.Fail(fmt.Errorf("external configuration: %w", m.err))
	case *Query:
		c.Reply(x.page())
		return
	case *report.Ask:
		x.Repeat(c)
		return
	case *report.Beat:
		x.Beat(c)
		return
	}
	x.warn(c)
}

// acknowledged reports whether the renderer has answered to the present Wants.
func (x *externals) acknowledged() bool {
	return x.status != nil && x.status.Generation == x.wants.Generation
}

// begin adopts the saved documents.
func (x *externals) begin(c *runtime.Context, m *loadedDocuments) {
	x.loaded = true
	if m.err != nil {
		c.Logger().Warn("cannot load external configuration of an earlier run", "err", m.err)
		x.problems[problemSaved] = m.err.Error()
	}
	for _, source := range slices.Sorted(maps.Keys(m.documents)) {
		x.adopt(c, source, m.documents[source])
	}
	x.beginSNAT(c)
	x.publish(c)
}

// problemSaved is the key in problems for saved documents that cannot be loaded.
const problemSaved = "saved"

// adopt makes the document of a source its layer; nil removes the layer. It reports whether the
// layer has changed. A document with an error changes nothing.
func (x *externals) adopt(c *runtime.Context, source string, document []byte) bool {
	delete(x.problems, source)
	before := x.layers[source]
	if document == nil {
		delete(x.layers, source)
		return before != nil
	}
	if before != nil && string(before.document) == string(document) {
		// sources repeat everything when they start
		return false
	}
	layer, err := external.Decode(document, source)
	if err != nil {
		x.problems[source] = err.Error()
		c.Logger().Warn("external configuration refused", "source", source, "err", err)
		report.Event(c, &messages.Event{Kind: "external", Object: source, Text: "refused, the last good one stays", Error: err.Error()})
		return false
	}
	x.layers[source] = &layered{layer, document, c.Now()}
	return true
}

// updated takes the state of a family of sources. Commands change other layers, so neither waits
// for the other.
func (x *externals) updated(c *runtime.Context, m *Update) {
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
		if m.has(source) && m.Unreadable[source] == nil {
			// without a document in the update: it is gone
			sources[source] = true
		}
	}
	changed := false
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		if x.adopt(c, source, m.Documents[source]) {
			changed = true
			x.save(c, save{source: source, document: m.Documents[source]})
			report.Event(c, &messages.Event{Kind: "external", Object: source, Text: fmt.Sprintf("%d entries", x.layers[source].size())})
		}
	}
	for source, err := range m.Unreadable {
		x.problems[source] = err.Error()
	}
	for source := range x.problems { // of sources that are gone
		if m.has(source) && m.Documents[source] == nil && m.Unreadable[source] == nil {
			delete(x.problems, source)
		}
	}
	// A source without a good document so far may own entries in VPP.
	sources = map[string]bool{}
	for _, source := range slices.Concat(slices.Sorted(maps.Keys(m.Documents)), slices.Sorted(maps.Keys(m.Unreadable))) {
		sources[source] = x.layers[source] == nil
	}
	good := !slices.Contains(slices.Collect(maps.Values(sources)), true)
	if first := good && !x.read[m.Family]; first || changed {
		x.read[m.Family] = x.read[m.Family] || good
		x.publish(c)
	}
}

func (l *layered) size() int {
	if l == nil {
		return 0
	}
	return l.Size()
}

// merge merges all layers.
func (x *externals) merge() *external.Merged {
	var layers []*external.Layer
	for _, source := range slices.Sorted(maps.Keys(x.layers)) {
		layers = append(layers, x.layers[source].Layer)
	}
	return external.Merge(layers)
}

// publish sends the merged layers to the renderer.
func (x *externals) publish(c *runtime.Context) {
	x.issued++
	merged := x.merge()
	x.retire(merged)
	x.wants = &Wants{Generation: x.issued, Merged: merged, Complete: x.complete(), Retired: x.retired}
	x.send(c)
}

// complete reports whether every source has been read.
func (x *externals) complete() bool {
	if x.config.SNAT.Enabled && !x.snat.known {
		return false
	}
	if x.config.Sources == nil {
		return true
	}
	for _, family := range x.config.Sources.Families() {
		if !x.read[family] {
			return false
		}
	}
	return x.problems[problemSaved] == ""
}

// retire notes addresses and roles, because VPP does not say whose they are when no layer wants
// them any more.
func (x *externals) retire(merged *external.Merged) {
	x.retired = x.retired.With(merged.Addresses(), merged.Roles())
}

// send sends the Wants, if there are any.
func (x *externals) send(c *runtime.Context) {
	if x.wants != nil {
		c.Send(c.PID(x.config.Renderer), x.wants)
	}
}

// save saves a document. Saves follow each other in their order.
func (x *externals) save(c *runtime.Context, s save) {
	x.saves = append(x.saves, s)
	x.saveNext(c)
}

func (x *externals) saveNext(c *runtime.Context) {
	if x.saving || len(x.saves) == 0 {
		return
	}
	next := x.saves[0]
	x.saves, x.saving = x.saves[1:], true
	post, sources := c.Post(), x.config.Sources
	c.Go("external-save", func(ctx context.Context) { post(&savedDocument{next, sources.Save(ctx, next.source, next.document)}) })
}

func (x *externals) saved(c *runtime.Context, m *savedDocument) {
	x.saving = false
	switch {
	case m.ticket != 0:
		x.Finish(c, m.ticket, m.err)
	case m.err != nil:
		c.Logger().Warn("cannot save external configuration", "source", m.source, "err", m.err)
	}
	x.saveNext(c)
}

// warn reports the health of the part. It is always good, because the node serves what it should,
// and may have a warning.
func (x *externals) warn(c *runtime.Context) {
	reason := ""
	if len(x.problems) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(x.problems)))
		reason = strings.TrimSuffix(first, ":") + ": " + x.problems[first]
	} else if n, e, why := x.failed(); n > 0 {
		reason = fmt.Sprintf("%d entries are not in VPP, first %s of %s: %s", n, e.Name, e.Source, why)
	}
	if x.Last.GetReason() != reason {
		x.Report(c, true, reason, 0)
	}
}

// failed counts the failed and refused entries, and returns the first one.
func (x *externals) failed() (n int, first external.Entry, why string) {
	if x.wants == nil {
		return 0, first, ""
	}
	for _, e := range x.wants.Merged.Entries {
		s := x.state(&e)
		if s.State != Failed && s.State != Refused {
			continue
		}
		if n++; n == 1 {
			first, why = e, s.Why
		}
	}
	return n, first, why
}

// state is the known state of an entry.
func (x *externals) state(e *external.Entry) State {
	switch {
	case e.Shadowed:
		return State{Shadowed, e.Owner, e.Why}
	case e.Owner != "":
		return State{Refused, e.Owner, e.Why}
	case !x.acknowledged():
		return State{State: Pending}
	default:
		return x.status.Entries[e.Name]
	}
}
