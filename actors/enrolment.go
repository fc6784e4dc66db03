package actors

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// missingAtOnce is how many services are asked again in one message.
const missingAtOnce = 1024

// customer is what every renderer knows of one service.
type customer struct {
	generation, hash uint64
	view             *messages.ServiceView // nil: it is gone, and is forgotten when nothing of it is left in VPP
	acked            *messages.RenderAck   // last one sent
}

// ack is the answer to a service of which everything is in VPP; known says whether VPP is known at all.
func (a *customer) ack(renderer, key string, known bool) *messages.RenderAck {
	ack := &messages.RenderAck{
		Key: key, Generation: a.generation, Hash: a.hash, Renderer: renderer, State: messages.RenderState_RENDER_IN_SYNC,
	}
	if !known {
		ack.State, ack.Error = messages.RenderState_RENDER_PENDING, "waiting for VPP"
	}
	return ack
}

// bookkeeper is what an enrolment needs of the renderer that it belongs to.
type bookkeeper interface {
	// customer is a service that the renderer knows; nil = it does not.
	customer(key string) *customer
	// customers are the keys of all services that it knows, ordered.
	customers() []string
	// count is how many they are.
	count() int
	// adopt changes what a service wants; nil = nothing any more.
	adopt(c *runtime.Context, key string, generation, hash uint64, view *messages.ServiceView)
	// standing is what became of a service in VPP, as far as it is known.
	standing(key string) *messages.RenderAck
	// close forgets a service that is gone.
	close(key string)
}

// enrolment is how a renderer and the services come together; every renderer embeds one. It knows which services there are, which of them
// have spoken in this epoch, and what each was told last. Nothing that an earlier run put into VPP may be removed before all have spoken.
type enrolment struct {
	name    string // of the renderer
	books   bookkeeper
	epoch   uint64
	begun   *messages.Begin // last list of the services; nil = none in this epoch
	awaited map[string]bool // services of the epoch that have not spoken
}

func newEnrolment(name string, books bookkeeper) enrolment {
	return enrolment{name: name, books: books, awaited: map[string]bool{}}
}

// enrol begins an epoch. Epochs grow over restarts, because incarnations do.
func (e *enrolment) enrol(c *runtime.Context) {
	e.epoch = c.Incarnation()
	e.ask(c)
}

// ask has the earlier siblings repeat what they know.
func (e *enrolment) ask(c *runtime.Context) {
	for _, path := range []string{PathLink, PathInterfaces} {
		c.Send(c.PID(path), &messages.Resync{Sibling: e.name, Incarnation: c.Incarnation()})
	}
}

// resync speaks to somebody who has a new incarnation.
func (e *enrolment) resync(c *runtime.Context, m *messages.Resync) {
	if m.GetSibling() == "registry" {
		e.up(c)
	} else {
		e.ask(c)
	}
}

// up tells the registry where we are; it answers when it knows more. This goes on for ever, so that neither a lost Begin nor a restarted
// registry nor a late word of a service that is gone leaves us with it.
func (e *enrolment) up(c *runtime.Context) {
	c.Send(c.PID(PathRegistry), &messages.RenderUp{Renderer: e.name, Epoch: e.epoch, Begun: e.begun.GetGeneration(), Services: uint64(e.books.count())})
}

// remind repeats what was not answered.
func (e *enrolment) remind(c *runtime.Context) {
	e.up(c)
	if len(e.awaited) > 0 {
		c.Send(c.PID(PathRegistry), &messages.Missing{Renderer: e.name, Epoch: e.epoch, Keys: missing(e.awaited, missingAtOnce)})
	}
}

// missing are the services of an epoch that have not spoken.
func missing(awaited map[string]bool, most int) []string {
	keys := sortedKeys(awaited)
	return keys[:min(len(keys), most)]
}

// renews reports whether a list of the services is for us and not overtaken.
func (e *enrolment) renews(m *messages.Begin) bool {
	return m.GetEpoch() == e.epoch && m.GetGeneration() >= e.begun.GetGeneration()
}

// begin opens the barrier of the epoch, or renews the list of the services. After a provisional list all of them are awaited again: what they
// have said so far came from the local mirror.
func (e *enrolment) begin(c *runtime.Context, m *messages.Begin) {
	final := e.begun.GetProvisional() && !m.GetProvisional()
	first := e.begun == nil || final
	e.begun = m
	if first {
		for _, key := range m.GetKeys() {
			if final || e.books.customer(key) == nil {
				e.awaited[key] = true
			}
		}
	}
	for _, key := range e.books.customers() {
		a := e.books.customer(key)
		if a != nil && a.view != nil && a.generation < m.GetGeneration() && !listed(m, key) { // it went while nobody could tell us
			e.books.adopt(c, key, m.GetGeneration(), 0, nil)
		}
	}
	for key := range e.awaited {
		if !listed(m, key) {
			delete(e.awaited, key)
		}
	}
	if first {
		record(c, &messages.Event{
			Kind: "resync", Object: e.name, Method: messages.Method_METHOD_FULL_RESYNC,
			Text: fmt.Sprintf("epoch begun with %d services, %d still silent", len(m.GetKeys()), len(e.awaited)),
		})
	}
}

// listed reports whether a service is in the list.
func listed(m *messages.Begin, key string) bool {
	_, found := slices.BinarySearch(m.GetKeys(), key)
	return found
}

// passed reports whether every service of the epoch has spoken. On a provisional list it never is: there may be others.
func (e *enrolment) passed() bool {
	return e.begun != nil && !e.begun.GetProvisional() && len(e.awaited) == 0
}

// departed reports whether what a service says is older than a list that does not have it any more.
func (e *enrolment) departed(m *messages.Render) bool {
	return e.begun != nil && m.GetView() != nil && m.GetGeneration() < e.begun.GetGeneration() && !listed(e.begun, m.GetKey())
}

// outdated reports whether a service that has not spoken to this renderer said it to a predecessor: it may have been held up on the way, and be less
// than VPP holds already.
func (e *enrolment) outdated(m *messages.Render) bool {
	return m.GetView() != nil && m.GetEpoch() < e.epoch
}

// render adopts what a service wants and answers at once with what is known.
func (e *enrolment) render(c *runtime.Context, m *messages.Render) {
	key := m.GetKey()
	a := e.books.customer(key)
	switch {
	case a == nil && e.outdated(m):
		c.Send(c.PID(PathService(key)), &messages.Replay{Renderer: e.name, Epoch: e.epoch})
		return
	case a != nil && m.GetGeneration() < a.generation, a == nil && e.departed(m):
		return // overtaken by itself or by the list of services; its latest word has been heard
	case m.GetEpoch() == e.epoch && e.begun != nil:
		delete(e.awaited, key)
	}
	switch {
	case a == nil && m.GetView() == nil:
		c.Send(c.PID(PathService(key)), &messages.RenderAck{
			Key: key, Generation: m.GetGeneration(), Hash: m.GetHash(), Renderer: e.name, State: messages.RenderState_RENDER_RETIRED,
		})
	case a != nil && a.hash == m.GetHash() && (a.view == nil) == (m.GetView() == nil):
		a.generation, a.acked = m.GetGeneration(), nil
		e.answer(c, key)
	default:
		e.books.adopt(c, key, m.GetGeneration(), m.GetHash(), m.GetView())
	}
}

// answer tells a service where it stands, if that is news.
func (e *enrolment) answer(c *runtime.Context, key string) {
	a := e.books.customer(key)
	if a == nil {
		return
	}
	ack := e.books.standing(key)
	if a.acked != nil && proto.Equal(a.acked, ack) {
		return
	}
	a.acked = ack
	c.Send(c.PID(PathService(key)), ack)
	if ack.GetState() == messages.RenderState_RENDER_RETIRED {
		e.books.close(key)
	}
}

// tellAll tells every service where it stands, even if it has been told: that may have been lost.
func (e *enrolment) tellAll(c *runtime.Context) {
	for _, key := range e.books.customers() {
		e.books.customer(key).acked = nil
		e.answer(c, key)
	}
}
