package actors

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
)

// ExternalPatience is how long a command about external configuration may take, and as long again to take it back. Requests of the API have to
// be more patient, or nobody hears the reason.
const ExternalPatience = 8 * time.Second

// ExternalApply is a command: the document of a source replaces what the source said before. It is answered with a CommandResult when VPP holds
// what it wants and the document is kept; with an error nothing of it is. The error may be of type external.Errors.
type ExternalApply struct {
	// Source names the layer.
	Source string
	// Document as JSON; nil = the source has nothing to say any more.
	Document []byte
}

// ExternalQuery asks for external configuration. The answer is an ExternalPage.
type ExternalQuery struct{}

// ExternalPage answers an ExternalQuery. Its values are shared and must not be modified.
type ExternalPage struct {
	// Layers by source.
	Layers []ExternalLayer
	// Entries of all layers, ordered by name.
	Entries []ExternalEntry
	// Complete says that every source that is watched has spoken.
	Complete bool
}

// ExternalLayer is what one source says.
type ExternalLayer struct {
	// Source names the layer, Priority decides between layers, Entries is the number of things that it wants.
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

// ExternalEntry is one thing that a layer wants.
type ExternalEntry struct {
	// Name, Kind and Source as in external.Entry.
	Name, Kind, Source string
	// State is in-sync, pending, failed, refused or shadowed.
	State string
	// Owner has it where State is refused or shadowed: another source, a service, or something in VPP.
	Owner string
	// Why says more about a state that is not in-sync.
	Why string
}

// page shows everything.
func (x *externals) page() *ExternalPage {
	page := &ExternalPage{Complete: x.loaded && x.complete()}
	sources := map[string]bool{}
	for source := range x.layers {
		sources[source] = true
	}
	for source := range x.problems {
		sources[source] = true
	}
	for _, source := range sortedKeys(sources) {
		l := ExternalLayer{Source: source, Problem: x.problems[source], Priority: external.DefaultPriority(source)}
		if has := x.layers[source]; has != nil {
			l.Priority, l.Entries, l.Document, l.Since = has.Priority, has.Size(), has.document, has.since
		}
		page.Layers = append(page.Layers, l)
	}
	if x.wants == nil {
		return page
	}
	for i := range x.wants.merged.Entries {
		e := &x.wants.merged.Entries[i]
		s := x.state(e)
		page.Entries = append(page.Entries, ExternalEntry{e.Name, e.Kind(), e.Source, s.State, s.Owner, s.Why})
	}
	return page
}

// apply begins a command, unless its document cannot be good.
func (x *externals) apply(c *runtime.Context, m *ExternalApply) {
	var next *layered
	err := errNotLoaded
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
	if err != nil {
		record(c, &messages.Event{Kind: "external", Object: m.Source, Text: "a command is refused", Error: err.Error()})
		c.Reply(&CommandResult{Err: err})
		return
	}
	text := fmt.Sprintf("apply %d entries of %s", next.size(), m.Source)
	if next == nil {
		text = "remove the layer " + m.Source
	}
	x.submit(c, &command{object: m.Source, text: text, method: messages.Method_METHOD_UPDATE, transaction: newTransaction(x.steps(m.Source, next)...)}, ExternalPatience)
}

// steps are those of a command: the layer is in VPP, then it is kept for the next run.
func (x *externals) steps(source string, next *layered) []step[*runtime.Context] {
	var before *layered
	steps := []step[*runtime.Context]{{
		name: "bring " + source + " into VPP",
		do: func(c *runtime.Context) (bool, error) {
			before = x.layers[source]
			return false, x.replace(c, source, next, source)
		},
		undo: func(c *runtime.Context) (bool, error) { return false, x.replace(c, source, before, "") },
	}}
	if x.deps.External == nil {
		return steps
	}
	keep := func(c *runtime.Context, l *layered) (bool, error) {
		s := externalSave{source: source, ticket: x.ticket()}
		if l != nil {
			s.document = l.document
		}
		x.save(c, s)
		return false, nil
	}
	return append(steps, step[*runtime.Context]{
		name: "keep " + source,
		do:   func(c *runtime.Context) (bool, error) { return keep(c, next) },
		undo: func(c *runtime.Context) (bool, error) { return keep(c, before) },
	})
}

// replace puts a layer in the place of the one of its source, and has the step under way wait for VPP. Where entries of whom have to be had, it
// fails at once, and changes nothing, when they contradict those of layers with a higher rank.
func (x *externals) replace(c *runtime.Context, source string, l *layered, whose string) error {
	before := x.layers[source]
	set := func(l *layered) {
		if l == nil {
			delete(x.layers, source)
		} else {
			x.layers[source] = l
		}
	}
	set(l)
	if err := contradictions(x.merge(), whose); err != nil {
		set(before) // the renderer never hears of it
		return err
	}
	delete(x.problems, source)
	x.publish(c)
	x.waits = &externalWait{x.ticket(), whose}
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
	return fmt.Errorf("%w: %s", errExternalRefused, strings.Join(texts, "; "))
}

// became takes what became of external configuration, and ends the step that waits for it.
func (x *externals) became(c *runtime.Context, m *externalStatus) {
	if x.wants == nil || m.generation != x.wants.generation {
		return // overtaken
	}
	x.status = m
	w := x.waits
	if w == nil {
		return
	}
	var texts []string
	waiting := !m.settled
	for i := range x.wants.merged.Entries {
		e := &x.wants.merged.Entries[i]
		if s := x.state(e); e.Source == w.source && (s.State == externalFailed || s.State == externalRefused) {
			texts = append(texts, e.Name+": "+s.Why)
		}
	}
	if err := refusal(texts); err != nil || !waiting {
		x.waits = nil
		x.finish(c, w.ticket, err)
	}
}
