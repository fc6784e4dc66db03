package render

import (
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Limits of what one batch writes into the journal.
const (
	mostRecords = 32 // services with a record each; more services share one record
	mostLines   = 32 // operations in one record
)

// oplog collects the operations of a batch for the journal. Each operation is recorded under the
// cause of the change that it follows from.
type oplog[K Key] struct {
	causes map[string]uint64      // by service, or name of the renderer for settings
	groups map[string][]Result[K] // likewise
	names  []string               // in the order in which they come
}

// record writes the operations of a batch into the journal, without half-open probes that were
// refused as before.
func (d *Driver[K]) record(c *runtime.Context, results []Result[K]) {
	log := oplog[K]{causes: map[string]uint64{}, groups: map[string][]Result[K]{}}
	var all []Result[K]
	for _, r := range results {
		if !r.Idle && (r.Setting || !d.queue.asBefore(r.Object, r.Err)) {
			log.add(d, r)
			all = append(all, r)
		}
	}
	if len(log.names) > mostRecords {
		report.Event(c, d.event(d.name, 0, all))
		return
	}
	for _, name := range log.names {
		report.Event(c, d.event(name, log.causes[name], log.groups[name]))
	}
}

// add enters an operation under the service for which it is carried out.
func (l *oplog[K]) add(d *Driver[K], r Result[K]) {
	name, cause := d.name, d.set.GetCause()
	if !r.Setting {
		if service := d.beneficiary(r.Object); service != "" {
			name, cause = service, d.subscribers[service].generation
		}
	}
	if l.groups[name] == nil {
		l.names = append(l.names, name)
	}
	l.groups[name], l.causes[name] = append(l.groups[name], r), cause
}

// beneficiary is the service for which an object is changed: its owner, the first service that
// wants it, or one that leaves it; "" = none.
func (d *Driver[K]) beneficiary(k K) string {
	for _, name := range slices.Concat([]string{d.wishes.Owner(k)}, d.wishes.Services(k), d.queue.leavers[k]) {
		if d.subscribers[name] != nil {
			return name
		}
	}
	return ""
}

// event is the record of some operations: the planned ones and, if one failed, the executed ones.
func (d *Driver[K]) event(object string, cause uint64, list []Result[K]) *messages.Event {
	e := &messages.Event{Kind: "render", Object: object, Cause: cause, Method: d.connection.method()}
	objects := map[K]bool{}
	var planned, executed []string
	var failures int
	var first error
	for _, r := range list {
		planned = append(planned, r.Op.Describe())
		if !r.Setting {
			objects[r.Object] = true
		}
		if r.Err == nil {
			executed = append(executed, r.Op.Describe())
			continue
		}
		if failures++; first == nil {
			first = r.Err
		}
	}
	e.Text = fmt.Sprintf("%d operations on %d %s", len(list), len(objects), d.noun)
	e.Operations = shortened(planned)
	if first != nil {
		e.Executed = shortened(executed)
		e.Error = fmt.Sprintf("%d operations not carried out, first: %v", failures, first)
	}
	return e
}

// shortened cuts a list for the journal.
func shortened(lines []string) []string {
	if len(lines) <= mostLines {
		return lines
	}
	return append(slices.Clone(lines[:mostLines]), fmt.Sprintf("and %d more", len(lines)-mostLines))
}
