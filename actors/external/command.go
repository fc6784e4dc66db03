package external

import (
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

// Deadline is how long a command about external configuration may take, and as long again its
// rollback. Requests of the API have to wait longer, or the reason does not reach their caller.
const Deadline = 8 * time.Second

// Apply is a command: the document of a source replaces what the source said before. It is answered
// with a command.Result when VPP holds what it wants and the document is saved; with an error
// nothing of it is. The error may be of type external.Errors.
type Apply struct {
	// Source names the layer.
	Source string
	// Document as JSON; nil = the layer of the source is removed.
	Document []byte
}

// Query asks for external configuration. The answer is a Page.
type Query struct{}

// Page answers a Query. Its values are shared and must not be modified.
type Page struct {
	// Layers by source.
	Layers []Layer
	// Entries of all layers, ordered by name.
	Entries []Entry
	// Complete says that every source that is watched has been read.
	Complete bool
}

// Layer is what one source says.
type Layer struct {
	// Source names the layer, Priority decides between layers, Entries is the number of things that
	// it wants.
	Source   string
	Priority int
	Entries  int
	// Document as JSON; nil = there is no good one.
	Document []byte
	// Since when it says that.
	Since time.Time
	// Problem says why what the source says now is not taken; "" = it is.
	Problem string
}

// Entry is one thing that a layer wants.
type Entry struct {
	// Name, Kind and Source as in external.Entry.
	Name, Kind, Source string
	// State is in-sync, pending, failed, refused or shadowed.
	State string
	// Owner has it where State is refused or shadowed: another source, a service, or something in
	// VPP.
	Owner string
	// Why says more about a state that is not in-sync.
	Why string
}

// page shows everything.
func (x *externals) page() *Page {
	page := &Page{Complete: x.loaded && x.complete()}
	sources := map[string]bool{}
	for source := range x.layers {
		sources[source] = true
	}
	for source := range x.problems {
		sources[source] = true
	}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		l := Layer{Source: source, Problem: x.problems[source], Priority: external.DefaultPriority(source)}
		if has := x.layers[source]; has != nil {
			l.Priority, l.Entries, l.Document, l.Since = has.Priority, has.Size(), has.document, has.since
		}
		page.Layers = append(page.Layers, l)
	}
	if x.wants == nil {
		return page
	}
	for i := range x.wants.Merged.Entries {
		e := &x.wants.Merged.Entries[i]
		s := x.state(e)
		page.Entries = append(page.Entries, Entry{e.Name, e.Kind(), e.Source, s.State, s.Owner, s.Why})
	}
	return page
}

// apply begins a command, unless its document cannot be good.
func (x *externals) apply(c *runtime.Context, m *Apply) {
	var next *layered
	err := command.ErrNotLoaded
	switch {
	case m.Source == external.SourceSNAT:
		err = errReserved
	case x.loaded:
		err = nil
	}
	if err == nil && m.Document != nil {
		var layer *external.Layer
		if layer, err = external.Decode(m.Document, m.Source); err == nil {
			next = &layered{layer, m.Document, c.Now()}
		}
	}
	if err != nil { // no transaction: nothing of it could be carried out
		report.Event(c, &messages.Event{Kind: "external", Object: m.Source, Text: "a command is refused", Error: err.Error()})
		c.Reply(&command.Result{Err: err})
		return
	}
	text := fmt.Sprintf("apply %d entries of %s", next.size(), m.Source)
	if next == nil {
		text = "remove the layer " + m.Source
	}
	x.Submit(c, &command.Command{
		Object: m.Source, Text: text, Method: messages.Method_METHOD_UPDATE, Transaction: command.NewTransaction(x.steps(m.Source, next)...),
	}, Deadline)
}

// step is a step of a command of this actor.
type step = command.Step[*runtime.Context]

// steps are those of a command: the layer is in VPP, then it is saved for the next run.
func (x *externals) steps(source string, next *layered) []step {
	var before *layered
	steps := []step{{
		Name: "bring " + source + " into VPP",
		Do: func(c *runtime.Context) (bool, error) {
			before = x.layers[source]
			return false, x.replace(c, source, next, source)
		},
		Undo: func(c *runtime.Context) (bool, error) { return false, x.replace(c, source, before, "") },
	}}
	if x.config.Sources == nil {
		return steps
	}
	store := func(c *runtime.Context, l *layered) (bool, error) {
		s := save{source: source, ticket: x.Ticket()}
		if l != nil {
			s.document = l.document
		}
		x.save(c, s)
		return false, nil
	}
	return append(steps, step{
		Name: "save " + source,
		Do:   func(c *runtime.Context) (bool, error) { return store(c, next) },
		Undo: func(c *runtime.Context) (bool, error) { return store(c, before) },
	})
}

// replace puts a layer in the place of the one of its source, and has the step under way wait for
// VPP. It fails at once, and changes nothing, when entries of the source required contradict those
// of layers with a higher rank.
func (x *externals) replace(c *runtime.Context, source string, l *layered, required string) error {
	before := x.layers[source]
	set := func(l *layered) {
		if l == nil {
			delete(x.layers, source)
		} else {
			x.layers[source] = l
		}
	}
	set(l)
	if err := contradictions(x.merge(), required); err != nil {
		set(before) // the renderer has not got it
		return err
	}
	delete(x.problems, source)
	x.publish(c)
	x.waits = &wait{x.Ticket(), required}
	return nil
}

// contradictions are entries of a source that contradict those of other layers.
func contradictions(merged *external.Merged, source string) error {
	var texts []string
	for _, e := range merged.Entries {
		if e.Source == source && e.Owner != "" && !e.Shadowed {
			texts = append(texts, e.Name+": "+e.Why)
		}
	}
	return refusal(texts)
}

// refusal is the error about entries that cannot be had; nil = there are none.
func refusal(texts []string) error {
	const most = 10
	if len(texts) == 0 {
		return nil
	}
	if n := len(texts) - most; n > 0 {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", n))
	}
	return fmt.Errorf("%w: %s", errRefused, strings.Join(texts, "; "))
}

// statusChanged takes what became of external configuration, and ends the step that waits for it.
func (x *externals) statusChanged(c *runtime.Context, m *Status) {
	if x.wants == nil || m.Generation != x.wants.Generation {
		return // of an earlier generation
	}
	x.status = m
	w := x.waits
	if w == nil {
		return
	}
	var texts []string
	waiting := !m.Settled // also for what has to leave VPP
	for i := range x.wants.Merged.Entries {
		e := &x.wants.Merged.Entries[i]
		if s := x.state(e); e.Source == w.source && (s.State == Failed || s.State == Refused) {
			texts = append(texts, e.Name+": "+s.Why)
		}
	}
	if err := refusal(texts); err != nil || !waiting {
		x.waits = nil
		x.Finish(c, w.ticket, err)
	}
}
