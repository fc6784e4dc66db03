package events

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// Bounds of the events of one status. The status itself, which the agent shows, has everything.
const (
	mostPerReason = 5 // events
	mostListed    = 8 // frontends in one note
)

// foreignOwner begins the owner of a conflict that is not a service: a row in VPP from outside
// troupe (messages.Conflict of package nat44).
const foreignOwner = "VPP: "

// Diff returns the events between the previous and the current status of a service: the problems
// that are new, and the problems that are over. A nil previous status, or one without this
// renderer, means that the earlier state is unknown; the problems of the current status are
// Standing then. A service that is gone, or has no object, has no events.
//
// The state of a renderer that has not finished (no ack, or a pending one) counts as unknown and
// gives no event. Therefore the previous status should be the result of Settled, not the last
// status that was seen; a Tracker takes care of that.
func Diff(previous, current *messages.ServiceStatus) []Event {
	if current.GetGone() || current.GetView() == nil {
		return nil
	}
	// kubectl describe shows the events of a UID, so a new object needs events of its own.
	if previous.GetGone() || previous.GetView().GetUid() != current.GetView().GetUid() {
		previous = nil // another object of the same name
	}
	d := differ{view: current.GetView(), object: ServiceObject(current.GetKey(), current.GetView().GetUid())}
	d.standing = previous == nil
	d.input(previous.GetErrors(), current.GetErrors())
	for _, ack := range current.GetRenders() {
		if settled(ack) {
			before := ackOf(previous, ack.GetRenderer())
			d.standing = before == nil
			d.render(before, ack)
		}
	}
	return d.events
}

// differ collects the events of one status.
type differ struct {
	view   *messages.ServiceView
	object Object
	// standing is true when no earlier status is known.
	standing bool
	events   []Event
}

// warn adds a part of the service that is not served.
func (d *differ) warn(reason, action, note string, shared bool) {
	d.add(Warning, reason, action, note, shared)
}

// add adds a state of the service.
func (d *differ) add(kind, reason, action, note string, shared bool) {
	d.events = append(d.events, Event{
		Object: d.object, Type: kind, Reason: reason, Action: action, Note: note, Standing: d.standing, Shared: shared,
	})
}

// inform adds the end of a problem.
func (d *differ) inform(reason, action, note string) {
	d.events = append(d.events, Event{Object: d.object, Type: Normal, Reason: reason, Action: action, Note: note})
}

// addEach adds one event per note, up to mostPerReason events; the last one counts the rest.
func (d *differ) addEach(kind, reason, action string, notes []string, shared bool) {
	for i, note := range notes {
		if rest := len(notes) - i; i == mostPerReason-1 && rest > 1 {
			note = fmt.Sprintf("%s (and %d more)", note, rest-1)
		} else if i == mostPerReason {
			return
		}
		d.add(kind, reason, action, note, shared)
	}
}

// input adds new problems of the input. All nodes read the same input.
func (d *differ) input(previous, current []*messages.ObjectError) {
	known := map[string]bool{}
	for _, e := range previous {
		known[problemText(e, d.object)] = true
	}
	var notes []string
	for _, e := range current {
		if text := problemText(e, d.object); !known[text] {
			known[text] = true
			notes = append(notes, text)
		}
	}
	d.addEach(Warning, ReasonInvalidInput, actionResolve, notes, true)
}

// problemText names the field of a problem. It names the object as well if the event is about
// another object.
func problemText(e *messages.ObjectError, about Object) string {
	var b strings.Builder
	if e.GetKind() != about.Kind || e.GetObject() != about.Namespace+"/"+about.Name {
		b.WriteString(strings.TrimSpace(e.GetKind()+" "+e.GetObject()) + ": ")
	}
	if e.GetField() != "" {
		b.WriteString(e.GetField() + ": ")
	}
	return b.String() + e.GetMessage()
}

// render adds the events of one renderer.
func (d *differ) render(previous, current *messages.RenderAck) {
	d.state(previous, current)
	d.conflicts(previous.GetConflicts(), current.GetConflicts())
	d.approximations(current.GetRenderer(), previous.GetApproximations(), current.GetApproximations())
}

// state adds errors and their end. A service in a state other than failed can have parts that the
// renderer cannot serve on any node (SCTP).
func (d *differ) state(previous, current *messages.RenderAck) {
	before, text := unserved(previous), unserved(current)
	failed := current.GetState() == messages.RenderState_RENDER_FAILED
	switch {
	case text != "" && (text != before || previous.GetState() != current.GetState()):
		d.warn(ReasonFailedToRender, actionRender, current.GetRenderer()+": "+text, !failed)
	case before != "" && text == "" && current.GetState() == messages.RenderState_RENDER_IN_SYNC:
		d.inform(ReasonRendered, actionRender, current.GetRenderer()+": VPP holds everything that this service needs")
	}
}

// frontendName matches the start of the message, after the field, of each frontend that is not
// rendered. It is removed from notes, because a node port has another frontend on each node.
var frontendName = regexp.MustCompile(`^: frontend \S+`)

// unserved describes the parts of a service that a renderer does not serve, without parts that it
// serves for no service; "" = none.
func unserved(ack *messages.RenderAck) string {
	if ack.GetState() == messages.RenderState_RENDER_FAILED {
		return cmp.Or(ack.GetError(), "the reason is not known")
	}
	var parts []string
	for _, e := range ack.GetUnrendered() {
		if e.GetGeneral() == "" {
			parts = append(parts, e.GetField()+frontendName.ReplaceAllString(": "+e.GetMessage(), ""))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	if len(parts) == 1 {
		return parts[0]
	}
	return fmt.Sprintf("%s (and %d more)", parts[0], len(parts)-1)
}

// conflicts adds frontends that another service owns, one event per owner, and frontends that this
// service has won back.
func (d *differ) conflicts(previous, current []*messages.Conflict) {
	if len(previous)+len(current) == 0 {
		return
	}
	before, now := byOwner(previous), byOwner(current)
	var services, foreign []string
	for _, owner := range ownersOf(current) {
		lost := without(now[owner], before[owner])
		if len(lost) == 0 {
			continue
		}
		if name, is := strings.CutPrefix(owner, foreignOwner); is {
			foreign = append(foreign, fmt.Sprintf("a row in VPP from outside troupe (%s) has %s", name, list(lost)))
		} else {
			services = append(services, fmt.Sprintf("service %s, which is older or has the smaller name, has %s", owner, list(lost)))
		}
	}
	d.addEach(Warning, ReasonConflictingExternalIP, actionRender, services, true)
	d.addEach(Warning, ReasonConflictingExternalIP, actionRender, foreign, false)

	contested := map[string]bool{}
	for _, c := range current {
		contested[c.GetFrontend()] = true
	}
	wanted := map[string]bool{}
	for _, f := range d.view.GetFrontends() {
		wanted[service.FrontendText(f)] = true
	}
	var won []string
	for _, c := range previous {
		if f := c.GetFrontend(); wanted[f] && !contested[f] && !slices.Contains(won, f) {
			won = append(won, f)
		}
	}
	if len(won) > 0 {
		d.inform(ReasonRecovered, actionRender, "this service has "+list(won)+" now")
	}
}

// byOwner groups the frontends of conflicts.
func byOwner(conflicts []*messages.Conflict) map[string][]string {
	out := map[string][]string{}
	for _, c := range conflicts {
		out[c.GetOwner()] = append(out[c.GetOwner()], c.GetFrontend())
	}
	return out
}

// ownersOf lists the owners, ordered.
func ownersOf(conflicts []*messages.Conflict) []string {
	var owners []string
	for _, c := range conflicts {
		owners = append(owners, c.GetOwner())
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// without returns the texts of the first list that are not in the second.
func without(all, taken []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(taken, s) })
}

// list joins up to mostListed frontends and counts the rest.
func list(frontends []string) string {
	if n := len(frontends); n > mostListed {
		return fmt.Sprintf("%s and %d more", strings.Join(frontends[:mostListed], ", "), n-mostListed)
	}
	return strings.Join(frontends, ", ")
}

// approximations adds the special requests of the service that are not served exactly. Each is one
// event, however many frontends it concerns, so that every node writes the same. Everything is
// served, so the events are Normal.
func (d *differ) approximations(renderer string, previous, current []*messages.Approximation) {
	if !slices.ContainsFunc(current, (*messages.Approximation).GetParticular) {
		return // nearly always
	}
	known := map[string]bool{}
	for _, a := range previous {
		known[approximationText(a)] = true
	}
	var notes []string
	for _, a := range current {
		if text := approximationText(a); a.GetParticular() && !known[text] {
			known[text] = true
			notes = append(notes, renderer+": "+text)
		}
	}
	d.addEach(Normal, ReasonApproximated, actionRender, notes, true)
}

// endpointCount matches the number of endpoints, which changes all the time.
var endpointCount = regexp.MustCompile(`\b[0-9]+ endpoints?\b`)

// approximationText describes an approximation without the number of endpoints. One more endpoint
// is no news, and texts with different numbers would be different events.
func approximationText(a *messages.Approximation) string {
	wanted := endpointCount.ReplaceAllString(a.GetWanted(), "all its endpoints")
	text := fmt.Sprintf("%s instead of %s", endpointCount.ReplaceAllString(a.GetRendered(), "some endpoints"), wanted)
	if a.GetWhy() != "" {
		text += ": " + a.GetWhy()
	}
	return text
}

// Tracker remembers the last settled status of each service and finds the events of the next one.
// It belongs to one goroutine. It needs one pointer of memory per service, because other packages
// hold the messages anyway.
type Tracker struct {
	last map[string]*messages.ServiceStatus
}

// NewTracker returns a tracker without services: the first status of a service is Standing.
func NewTracker() *Tracker { return &Tracker{last: map[string]*messages.ServiceStatus{}} }

// Observe returns the events of a new status. The status must not be modified any more.
func (t *Tracker) Observe(status *messages.ServiceStatus) []Event {
	if status.GetGone() {
		delete(t.last, status.GetKey())
		return nil
	}
	if status.GetView() == nil {
		return nil // the service has no view yet
	}
	events := Diff(t.last[status.GetKey()], status)
	t.last[status.GetKey()] = Settled(t.last[status.GetKey()], status)
	return events
}

// Len returns how many services are known.
func (t *Tracker) Len() int { return len(t.last) }

// UID returns the UID of a service that was observed; "" if it was not.
func (t *Tracker) UID(key string) string { return t.last[key].GetView().GetUid() }

// Settled returns the current status with the last finished ack of each renderer that is at work,
// as a later Diff should see it. Without this, "failed, pending, failed" would be two failures, and
// "failed, pending, in sync" no recovery. Neither status is modified. If nothing is pending, the
// current status itself is returned.
func Settled(previous, current *messages.ServiceStatus) *messages.ServiceStatus {
	if previous.GetGone() || previous.GetView().GetUid() != current.GetView().GetUid() {
		previous = nil
	}
	var renders []*messages.RenderAck
	changed := false
	for _, ack := range current.GetRenders() {
		if !settled(ack) {
			changed = true
			ack = ackOf(previous, ack.GetRenderer())
			if ack == nil {
				continue
			}
		}
		renders = append(renders, ack)
	}
	for _, ack := range previous.GetRenders() {
		if ackOf(current, ack.GetRenderer()) == nil {
			changed = true
			renders = append(renders, ack)
		}
	}
	if !changed {
		return current
	}
	return &messages.ServiceStatus{
		Key: current.GetKey(), Generation: current.GetGeneration(), View: current.GetView(), Renders: renders, Errors: current.GetErrors(),
		Changed: current.GetChanged(),
	}
}

// settled reports whether a renderer has finished.
func settled(ack *messages.RenderAck) bool {
	return ack.GetState() != messages.RenderState_RENDER_PENDING
}

// ackOf returns the ack of a renderer; nil = none.
func ackOf(status *messages.ServiceStatus, renderer string) *messages.RenderAck {
	for _, ack := range status.GetRenders() {
		if ack.GetRenderer() == renderer {
			return ack
		}
	}
	return nil
}
