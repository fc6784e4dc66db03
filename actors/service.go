package actors

import (
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// serviceActor is one service: it turns what Kubernetes says of it into what this node serves and sees to it that every renderer has it.
// It keeps nothing that it could not ask for again; after a crash it pulls its spec and repeats its Renders, which cost VPP nothing when
// nothing changed.
type serviceActor struct {
	deps     *Deps
	key      string
	spec     *messages.ServiceSpec // nil until the registry has answered
	view     *messages.ServiceView // nil when the service is gone
	hash     uint64
	renders  map[string]*rendered // by renderer
	triggers triggers
	cancel   func() // of the retry timer; nil = none is running
	tries    uint8  // how often it fired since there was news
	traced   bool   // what becomes of the present spec is written down
}

// rendered is what one renderer knows of this service.
type rendered struct {
	epoch uint64 // of the last Replay
	ack   *messages.RenderAck
}

// serviceRetry repeats what was not answered.
type serviceRetry struct{}

func newService(d *Deps, key string) runtime.Behaviour {
	s := &serviceActor{deps: d, key: key, renders: map[string]*rendered{}}
	for _, name := range d.renderers() {
		s.renders[name] = &rendered{}
	}
	return s
}

// Start satisfies runtime.Behaviour.
func (s *serviceActor) Start(c *runtime.Context) {
	s.pull(c)
	s.retryLater(c)
}

// Stop satisfies runtime.Behaviour: whoever stops us knows why, nothing is taken out of VPP here.
func (*serviceActor) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (s *serviceActor) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.ServiceSpec:
		s.take(c, m)
	case *messages.RenderAck:
		s.acknowledged(c, m)
	case *messages.Replay:
		s.replay(c, m)
	case *messages.Resync: // somebody has not heard of us, or not of the end of what he heard
		if s.spec != nil {
			s.publish(c)
		}
		if s.spec == nil || s.view == nil || s.unsettled() {
			s.retry(c)
		}
	case *serviceRetry:
		s.cancel = nil
		s.retry(c)
	}
}

func (s *serviceActor) pull(c *runtime.Context) {
	c.Send(c.PID(PathRegistry), &messages.PullSpec{Key: s.key, Incarnation: c.Incarnation()})
}

// take adopts a spec. A repeated one is acknowledged again, because the acknowledgement may have been lost.
func (s *serviceActor) take(c *runtime.Context, spec *messages.ServiceSpec) {
	if spec.GetGeneration() < s.spec.GetGeneration() {
		return
	}
	c.Send(c.PID(PathRegistry), &messages.Have{Key: s.key, Generation: spec.GetGeneration()})
	for name, epoch := range spec.GetEpochs() {
		if r := s.renders[name]; r != nil && epoch > r.epoch {
			r.epoch, r.ack = epoch, nil
		}
	}
	if s.spec != nil && spec.GetGeneration() == s.spec.GetGeneration() {
		s.retry(c) // the epoch may be new
		return
	}
	before, first := s.hash, s.spec == nil
	s.spec, s.traced = spec, spec.GetTraced()
	s.news()
	s.resolve()
	s.triggers.take(spec.GetInput(), first)
	if !first && s.hash == before && !s.unsettled() {
		s.triggers.drop()
		s.trace(c, "nothing that this node serves has changed")
		s.traced = false
		s.publish(c) // it is another generation
		if s.view == nil {
			s.retire(c) // the registry has not released us, so it has not heard it for this generation
		}
		return // nothing that this node serves has changed
	}
	s.trace(c, s.served())
	for _, name := range s.deps.renderers() {
		s.renders[name].ack = nil
		s.render(c, name)
	}
	s.publish(c)
}

// trace writes down what became of a change, under its id.
func (s *serviceActor) trace(c *runtime.Context, text string) {
	if s.traced {
		record(c, &messages.Event{
			Kind: "service", Object: s.key, Cause: s.spec.GetGeneration(), Method: messages.Method_METHOD_UPDATE, Text: text,
		})
	}
}

// served sums up what this node serves.
func (s *serviceActor) served() string {
	switch {
	case s.view == nil:
		return "nothing of it is served any more"
	case s.view.GetNotServed() != "":
		return "not served: " + s.view.GetNotServed()
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
	s.view = service.Resolve(s.spec.GetInput(), s.spec.GetNode(), s.deps.Serving)
	s.hash = service.Hash(s.view)
}

// replay speaks again for a new epoch; one that is overtaken means nothing.
func (s *serviceActor) replay(c *runtime.Context, m *messages.Replay) {
	r := s.renders[m.GetRenderer()]
	if r == nil || m.GetEpoch() < r.epoch {
		return
	}
	r.epoch, r.ack = m.GetEpoch(), nil
	if s.spec == nil {
		return // it has been asked for, and goes on to be
	}
	s.news()
	s.render(c, m.GetRenderer())
}

// render sends the present view to one renderer.
func (s *serviceActor) render(c *runtime.Context, renderer string) {
	c.Send(c.PID(PathRenderer(renderer)), &messages.Render{
		Key: s.key, Generation: s.spec.GetGeneration(), Epoch: s.renders[renderer].epoch, View: s.view, Hash: s.hash,
	})
	s.retryLater(c)
}

// acknowledged takes the answer of a renderer. An answer to an earlier word says nothing; one that is not about the present view means
// that the renderer has lost it, for example because a registry that did not know of us has disowned us.
func (s *serviceActor) acknowledged(c *runtime.Context, ack *messages.RenderAck) {
	r := s.renders[ack.GetRenderer()]
	if r == nil || s.spec == nil {
		return
	}
	switch {
	case ack.GetHash() == s.hash && (s.view == nil || ack.GetState() != messages.RenderState_RENDER_RETIRED):
		if ack.GetState() != r.ack.GetState() {
			s.news()
		}
		r.ack = ack
	case ack.GetGeneration() < s.spec.GetGeneration() && r.ack == nil:
		return
	default:
		r.ack = nil
	}
	s.publish(c) // also when it is the same again: introspection may have missed the last one
	if s.unsettled() {
		s.retryLater(c)
		return
	}
	s.triggers.report(s.deps.Observer, c.Now())
	s.trace(c, "VPP holds what is wanted")
	s.traced = false
	if s.view == nil {
		s.retire(c)
	}
}

// retire tells the registry that nothing is left, until it has us stopped.
func (s *serviceActor) retire(c *runtime.Context) {
	c.Send(c.PID(PathRegistry), &messages.Retired{Key: s.key, Generation: s.spec.GetGeneration()})
	s.retryLater(c)
}

// unsettled reports whether a renderer has not brought the present view into VPP, as far as we have been told.
func (s *serviceActor) unsettled() bool {
	for _, r := range s.renders {
		if !settled(r.ack) {
			return true
		}
	}
	return false
}

func settled(ack *messages.RenderAck) bool {
	state := ack.GetState()
	return state == messages.RenderState_RENDER_IN_SYNC || state == messages.RenderState_RENDER_RETIRED
}

// retry repeats whatever is not settled. A renderer tells by itself when something changes, so the question becomes rarer and rarer: it is
// only there because an answer may be lost.
func (s *serviceActor) retry(c *runtime.Context) {
	if s.spec == nil {
		s.pull(c)
		s.retryLater(c)
		return
	}
	for _, name := range s.deps.renderers() {
		if !settled(s.renders[name].ack) {
			s.render(c, name)
		}
	}
	if s.view == nil && !s.unsettled() {
		s.retire(c)
	}
}

// retryLater waits for one to two times the patience, which doubles; where in between depends on the service, so that not all of them come
// at once.
func (s *serviceActor) retryLater(c *runtime.Context) {
	if s.cancel != nil {
		return
	}
	patience := s.deps.Timing.Retry << min(s.tries, mostDoublings)
	spread := time.Duration(kube.DigestHash(s.key, uint64(s.tries)) % uint64(patience))
	s.tries = min(s.tries+1, mostDoublings)
	s.cancel = c.After(patience+spread, &serviceRetry{})
}

// news ends whatever is waited for, and the growth of the patience.
func (s *serviceActor) news() {
	s.tries = 0
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
}

// publish tells introspection what this service looks like now.
func (s *serviceActor) publish(c *runtime.Context) {
	c.Send(c.PID(PathIntrospect), s.status(c))
}

func (s *serviceActor) status(c *runtime.Context) *messages.ServiceStatus {
	status := &messages.ServiceStatus{
		Key: s.key, Generation: s.spec.GetGeneration(), View: s.view, Changed: c.Now().UnixNano(),
		Gone:   s.spec != nil && s.view == nil && !s.unsettled(),
		Errors: s.view.GetErrors(), // those of the input are among them
	}
	for _, name := range s.deps.renderers() {
		if ack := s.renders[name].ack; ack != nil {
			status.Renders = append(status.Renders, ack)
		}
	}
	return status
}

// Inspect describes the actor for introspection.
func (s *serviceActor) Inspect() any {
	state := map[string]any{"key": s.key, "generation": s.spec.GetGeneration(), "hash": fmt.Sprintf("%016x", s.hash)}
	for name, r := range s.renders {
		state[name] = map[string]any{"epoch": r.epoch, "state": r.ack.GetState().String(), "error": r.ack.GetError()}
	}
	return state
}
