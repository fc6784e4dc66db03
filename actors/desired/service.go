package desired

import (
	"fmt"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// serviceActor is one service. It resolves its input into the view of this node and sends the view
// to every renderer until it is acknowledged. After a crash it pulls its spec and repeats its
// Renders, which cost VPP nothing if nothing has changed.
type serviceActor struct {
	config   *Config
	key      string
	spec     *messages.ServiceSpec // nil until the registry has answered
	view     *messages.ServiceView // nil when the service is gone
	hash     uint64
	acks     map[string]*messages.RenderAck // by renderer, for the present view
	status   *messages.ServiceStatus        // published last
	triggers triggers
	traced   bool // the outcome of the present spec is recorded
	waiting  waiting
}

// NewService returns the actor of the service "namespace/name".
func NewService(config *Config, key string) runtime.Behaviour {
	return &serviceActor{config: config, key: key, acks: map[string]*messages.RenderAck{}}
}

func (s *serviceActor) Start(c *runtime.Context) {
	// a message that came before this incarnation may be lost with the one that was handling it
	c.Send(c.PID(address.Registry), &messages.PullSpec{Key: s.key, Incarnation: c.Incarnation()})
}

// Stop satisfies runtime.Behaviour: nothing is taken out of VPP here.
func (*serviceActor) Stop(*runtime.Context) {}

func (s *serviceActor) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.ServiceSpec:
		s.take(c, m)
	case *messages.RenderAck:
		s.acknowledged(c, m)
	case *messages.Replay:
		if s.spec != nil { // otherwise it renders when the registry answers
			s.render(c, m.GetRenderer())
		}
	case *messages.Resync: // introspection has started again
		if s.status != nil {
			c.Send(c.PID(address.Introspect), s.status)
		}
	}
}

// take adopts a spec.
func (s *serviceActor) take(c *runtime.Context, spec *messages.ServiceSpec) {
	if s.spec != nil && spec.GetGeneration() <= s.spec.GetGeneration() {
		return // asked for twice, or of an earlier incarnation of the registry
	}
	before, first, refused := s.hash, s.spec == nil, s.view.GetRefused()
	s.spec, s.traced = spec, spec.GetTraced()
	s.resolve()
	s.triggers.take(spec.GetInput(), first)
	s.waiting.take(spec.GetGeneration(), c.Now())
	if why := s.view.GetRefused(); why != "" && why != refused {
		c.Logger().Warn("service not served", "service", s.key, "err", why)
	}
	// Endpoints of other nodes mostly change nothing in the view of this one: then the
	// acknowledgements stay valid.
	if unchanged := !first && s.hash == before && !s.unsettled(); unchanged {
		s.triggers.drop() // VPP holds the view already: the latency of this change means nothing
		s.trace(c, "nothing that this node serves has changed")
		s.traced = false
	} else {
		s.trace(c, s.served())
		clear(s.acks) // the acknowledgements are about another view
	}
	for _, name := range s.config.Renderers {
		// also if nothing has changed: the barrier of a renderer counts generations
		s.render(c, name)
	}
	s.publish(c)
}

// trace records the outcome of a change, under its cause.
func (s *serviceActor) trace(c *runtime.Context, text string) {
	if s.traced {
		report.Event(c, &messages.Event{
			Kind: "service", Object: s.key, Cause: s.spec.GetGeneration(), Method: messages.Method_METHOD_UPDATE, Text: text,
		})
	}
}

// served summarises the view.
func (s *serviceActor) served() string {
	switch {
	case s.view == nil:
		return "nothing of it is served any more"
	case s.view.GetNotServed()+s.view.GetRefused() != "":
		return "not served: " + s.view.GetNotServed() + s.view.GetRefused()
	}
	backends := 0
	for _, f := range s.view.GetFrontends() {
		backends += len(f.GetBackends())
	}
	return fmt.Sprintf("served at %d frontends with %d backends in all", len(s.view.GetFrontends()), backends)
}

func (s *serviceActor) resolve() {
	if s.spec.GetInput().GetService() == nil {
		s.view, s.hash = nil, 0
		return
	}
	if why := s.spec.GetRefused(); why != "" {
		s.view = service.Refuse(s.spec.GetInput(), why)
	} else {
		s.view = service.Resolve(s.spec.GetInput(), s.spec.GetNode(), s.config.Serving)
	}
	s.hash = service.Hash(s.view)
}

// render sends the present view to one renderer.
func (s *serviceActor) render(c *runtime.Context, renderer string) {
	c.Send(c.PID(address.Renderer(renderer)), &messages.Render{
		Key: s.key, Generation: s.spec.GetGeneration(), View: s.view, Hash: s.hash,
	})
}

// acknowledged takes the answer of a renderer. An answer to an earlier Render is ignored. Another
// answer about an earlier view means that the renderer has lost the present one, for example
// because a list of the registry lacked the service.
func (s *serviceActor) acknowledged(c *runtime.Context, ack *messages.RenderAck) {
	name := ack.GetRenderer()
	before := s.acks[name]
	moved := s.spec != nil && s.waiting.answered(ack, s.config.Renderers, s.spec.GetGeneration(), c.Now())
	if s.spec == nil || ack == before {
		return
	}
	switch {
	case ack.GetHash() == s.hash && (s.view == nil || ack.GetState() != messages.RenderState_RENDER_RETIRED):
		s.acks[name] = ack
	case ack.GetGeneration() < s.spec.GetGeneration() && before == nil:
		if moved {
			s.publish(c)
		}
		return
	default:
		delete(s.acks, name)
		s.render(c, name)
	}
	s.publish(c)
	if s.unsettled() {
		return
	}
	s.triggers.report(s.config.Observer, c.Now(), s.spec.GetGeneration())
	s.trace(c, "VPP holds what is wanted")
	s.traced = false
	if s.view == nil { // nothing of the service is left in VPP
		c.Send(c.PID(address.Registry), &messages.Retired{Key: s.key, Generation: s.spec.GetGeneration()})
	}
}

// unsettled reports whether a renderer has not acknowledged that VPP holds the present view.
func (s *serviceActor) unsettled() bool {
	for _, name := range s.config.Renderers {
		if !settled(s.acks[name]) {
			return true
		}
	}
	return false
}

func settled(ack *messages.RenderAck) bool {
	state := ack.GetState()
	return state == messages.RenderState_RENDER_IN_SYNC || state == messages.RenderState_RENDER_RETIRED
}

// publish sends introspection the present status.
func (s *serviceActor) publish(c *runtime.Context) {
	s.status = &messages.ServiceStatus{
		Key: s.key, Generation: s.spec.GetGeneration(), View: s.view, Changed: c.Now().UnixNano(),
		Gone:       s.spec != nil && s.view == nil && !s.unsettled(),
		Errors:     s.view.GetErrors(), // including the errors of the input
		Unanswered: s.waiting.since,
		Spec:       s.spec,
	}
	for _, name := range s.config.Renderers {
		if ack := s.acks[name]; ack != nil {
			s.status.Renders = append(s.status.Renders, ack)
		}
	}
	c.Send(c.PID(address.Introspect), s.status)
}

// Inspect describes the actor for introspection.
func (s *serviceActor) Inspect() any {
	state := map[string]any{"key": s.key, "generation": s.spec.GetGeneration(), "hash": fmt.Sprintf("%016x", s.hash)}
	for _, name := range s.config.Renderers {
		state[name] = map[string]any{"state": s.acks[name].GetState().String(), "error": s.acks[name].GetError()}
	}
	return state
}
