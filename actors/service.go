package actors

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// serviceActor is one service: it turns what Kubernetes says of it into what this node serves and sees to it that every renderer has it.
// It keeps nothing that it could not ask for again; after a crash it pulls its spec and repeats its Renders, which cost VPP nothing when
// nothing changed.
type serviceActor struct {
	deps    *Deps
	key     string
	spec    *messages.ServiceSpec // nil until the registry has answered
	view    *messages.ServiceView // nil when the service is gone
	hash    uint64
	renders map[string]*rendered // by renderer
	waiting bool                 // a retry timer is running
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
		if r := s.renders[m.GetRenderer()]; r != nil {
			r.epoch, r.ack = m.GetEpoch(), nil
			s.render(c, m.GetRenderer())
		}
	case *messages.Resync:
		if s.spec != nil {
			s.publish(c)
		}
	case *serviceRetry:
		s.waiting = false
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
	s.spec = spec
	s.resolve()
	if !first && s.hash == before && s.settled() {
		return // nothing that this node serves has changed
	}
	for _, name := range slices.Sorted(maps.Keys(s.renders)) {
		s.renders[name].ack = nil
		s.render(c, name)
	}
	s.publish(c)
}

func (s *serviceActor) resolve() {
	if s.spec.GetInput().GetService() == nil {
		s.view, s.hash = nil, 0
		return
	}
	s.view = service.Resolve(s.spec.GetInput(), s.spec.GetNode(), s.deps.Serving)
	s.hash = service.Hash(s.view)
}

// render sends the present view to one renderer.
func (s *serviceActor) render(c *runtime.Context, renderer string) {
	if s.spec == nil {
		return // Start has asked for it
	}
	c.Send(c.PID(PathRenderer(renderer)), &messages.Render{
		Key: s.key, Generation: s.spec.GetGeneration(), Epoch: s.renders[renderer].epoch, View: s.view, Hash: s.hash,
	})
	s.retryLater(c)
}

func (s *serviceActor) acknowledged(c *runtime.Context, ack *messages.RenderAck) {
	r := s.renders[ack.GetRenderer()]
	if r == nil || s.spec == nil {
		return
	}
	if ack.GetHash() != s.hash || (ack.GetState() == messages.RenderState_RENDER_RETIRED && s.view != nil) {
		s.retryLater(c) // it speaks of something else than we want; the retry tells it again
		return
	}
	changed := !proto.Equal(r.ack, ack)
	r.ack = ack
	if changed {
		s.publish(c)
	}
	if s.view == nil && s.settled() {
		c.Send(c.PID(PathRegistry), &messages.Retired{Key: s.key, Generation: s.spec.GetGeneration()})
		s.retryLater(c)
	}
}

// settled reports whether every renderer has answered for the present view.
func (s *serviceActor) settled() bool {
	for _, r := range s.renders {
		if r.ack == nil || r.ack.GetState() == messages.RenderState_RENDER_PENDING {
			return false
		}
	}
	return true
}

// retry repeats whatever has not been answered.
func (s *serviceActor) retry(c *runtime.Context) {
	if s.spec == nil {
		s.pull(c)
		s.retryLater(c)
		return
	}
	for name, r := range s.renders {
		if r.ack == nil {
			s.render(c, name)
		}
	}
	if s.view == nil && s.settled() {
		c.Send(c.PID(PathRegistry), &messages.Retired{Key: s.key, Generation: s.spec.GetGeneration()})
		s.retryLater(c)
	}
}

func (s *serviceActor) retryLater(c *runtime.Context) {
	if s.waiting {
		return
	}
	s.waiting = true
	c.After(s.deps.Timing.Retry+time.Duration(c.Rand().Int64N(int64(s.deps.Timing.Retry))), &serviceRetry{})
}

// publish tells introspection what this service looks like now.
func (s *serviceActor) publish(c *runtime.Context) {
	c.Send(c.PID(PathIntrospect), s.status(c))
}

func (s *serviceActor) status(c *runtime.Context) *messages.ServiceStatus {
	status := &messages.ServiceStatus{
		Key: s.key, Generation: s.spec.GetGeneration(), View: s.view, Changed: c.Now().UnixNano(), Gone: s.spec != nil && s.view == nil,
		Errors: s.view.GetErrors(), // those of the input are among them
	}
	for _, name := range slices.Sorted(maps.Keys(s.renders)) {
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
