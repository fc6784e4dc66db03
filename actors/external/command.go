package external

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
)

// Deadline is how long a command about external configuration may take, and its rollback again.
// Requests of the API have to wait longer, or the reason does not reach their caller.
const Deadline = 8 * time.Second

// Apply is a command: the document replaces the earlier one of its source. The command.Result comes
// when VPP holds the entries and the document is saved; with an error, nothing has changed. The
// error may be of type external.Errors.
type Apply struct {
	// Source names the layer.
	Source string
	// Document as JSON; nil = the layer of the source is removed.
	Document []byte
}

// apply begins a command, unless its document has an error.
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
	if err != nil { // no transaction: there is nothing to carry out
		report.Event(c, &messages.Event{Kind: "external", Object: m.Source, Text: "a command is refused", Error: err.Error()})
		c.Reply(&command.Result{Err: err})
		return
	}
	text := fmt.Sprintf("apply %d entries of %s", next.size(), m.Source)
	if next == nil {
		text = "remove the layer " + m.Source
	}
	x.Submit(c, &command.Command{
		Object: m.Source, Text: text, Method: messages.Method_METHOD_UPDATE, Transaction: command.NewTransaction(x.operations(m.Source, next)...),
	}, Deadline)
}

// operation is an operation of a command of this actor.
type operation = command.Operation[*runtime.Context]

// operations are the parts of a command: bring the layer into VPP, then save it for the next run.
func (x *externals) operations(source string, next *layered) []operation {
	var before *layered
	operations := []operation{{
		Name: "bring " + source + " into VPP",
		Do: func(c *runtime.Context) (bool, error) {
			before = x.layers[source]
			return false, x.replace(c, source, next, source)
		},
		Undo: func(c *runtime.Context) (bool, error) { return false, x.replace(c, source, before, "") },
	}}
	if x.config.Sources == nil {
		return operations
	}
	store := func(c *runtime.Context, l *layered) (bool, error) {
		s := save{source: source, ticket: x.Ticket()}
		if l != nil {
			s.document = l.document
		}
		x.save(c, s)
		return false, nil
	}
	return append(operations, operation{
		Name: "save " + source,
		Do:   func(c *runtime.Context) (bool, error) { return store(c, next) },
		Undo: func(c *runtime.Context) (bool, error) { return store(c, before) },
	})
}

// replace replaces the layer of a source. The operation under way then waits for VPP. replace fails
// at once, and changes nothing, if entries of the source required contradict layers of a higher
// rank.
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
		set(before) // the renderer did not get it
		return err
	}
	delete(x.problems, source)
	x.publish(c)
	x.waits = &wait{x.Ticket(), required}
	return nil
}

// contradictions is the error about entries of a source that contradict other layers; nil = there
// are none.
func contradictions(merged *external.Merged, source string) error {
	var texts []string
	for _, e := range merged.Entries {
		if e.Source == source && e.Owner != "" && !e.Shadowed {
			texts = append(texts, e.Name+": "+e.Why)
		}
	}
	return refusal(texts)
}

// refusal is the error about refused entries; nil = there are none.
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

// statusChanged takes the status from the renderer, and ends the operation that waits for it.
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
	waiting := !m.Settled // also for entries that have to leave VPP
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

// Errors of commands about external configuration.
var (
	// errRefused says that entries are refused.
	errRefused = command.Refusal("refused")
	// errReserved says that a layer belongs to the agent.
	errReserved = command.Refusal("snat is the layer of dynamic SNAT, which the configuration of the agent decides")
)
