package actors

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Limits of what one batch writes into the journal.
const (
	servicesApart = 32 // up to so many services have a record each, of more there is one for all
	linesKept     = 32 // operations in one record
)

// deed is one operation on VPP and what became of it.
type deed[K thing] struct {
	of   *K // what it was about; nil = settings
	text string
	err  error
}

// deeds are those of one batch, for the journal.
type deeds[K thing] struct {
	object string // the renderer
	method messages.Method
	noun   string                                 // what the things are
	owner  func(K) (service string, cause uint64) // for whom a thing is changed, and by which change of the input
	cause  uint64                                 // of the settings
	list   []deed[K]
	groups map[string][]deed[K]
	causes map[string]uint64
}

// record writes down what was done for whom: an operation has the id of the change of the input that it follows from. So many services that
// nobody would read it are summed up.
func (d *deeds[K]) record(c *runtime.Context) {
	names := d.sort()
	if len(names) > servicesApart {
		record(c, d.event(d.object, 0, d.list))
		return
	}
	for _, name := range names {
		record(c, d.event(name, d.causes[name], d.groups[name]))
	}
}

// sort puts together what was done for each service and returns their names in the order in which they come.
func (d *deeds[K]) sort() (names []string) {
	d.groups, d.causes = map[string][]deed[K]{}, map[string]uint64{d.object: d.cause}
	for _, one := range d.list {
		name, cause := d.object, d.cause
		if one.of != nil {
			if service, at := d.owner(*one.of); service != "" {
				name, cause = service, at
			}
		}
		if d.groups[name] == nil {
			names = append(names, name)
		}
		d.groups[name], d.causes[name] = append(d.groups[name], one), cause
	}
	return names
}

// event is the record of some of the operations: those that were planned, and where one failed those that were carried out.
func (d *deeds[K]) event(object string, cause uint64, list []deed[K]) *messages.Event {
	e := &messages.Event{Kind: "render", Object: object, Cause: cause, Method: d.method}
	things := map[K]bool{}
	var planned, executed []string
	var failures int
	var first error
	for _, one := range list {
		planned = append(planned, one.text)
		if one.of != nil {
			things[*one.of] = true
		}
		if one.err == nil {
			executed = append(executed, one.text)
			continue
		}
		if failures++; first == nil {
			first = one.err
		}
	}
	e.Text = fmt.Sprintf("%d operations on %d %s", len(list), len(things), d.noun)
	e.Operations = shortList(planned)
	if first != nil {
		e.Executed = shortList(executed)
		e.Error = fmt.Sprintf("%d operations not carried out, first: %v", failures, first)
	}
	return e
}

// shortList cuts a list for the journal.
func shortList(lines []string) []string {
	if len(lines) <= linesKept {
		return lines
	}
	return append(slices.Clone(lines[:linesKept]), fmt.Sprintf("and %d more", len(lines)-linesKept))
}

// method says what kind of event the renderer is at.
func (o *outlet) method() messages.Method {
	switch {
	case !o.once:
		return messages.Method_METHOD_FULL_RESYNC
	case !o.full.IsZero() || o.damaged:
		return messages.Method_METHOD_DOWNSTREAM_RESYNC
	}
	return messages.Method_METHOD_UPDATE
}
