package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// shell is the protoactor actor around a Behaviour: one value per incarnation. It translates the life cycle, contains panics of Stop, and
// hands failures and ends of children to a Behaviour that is a supervisor.
type shell struct {
	sys       *System
	behaviour Behaviour // nil when Spec.New panicked
	ctx       Context
	life      life // its mailbox is nil until the actor starts
	down      bool // restarting or stopping; it must not start children any more (pitfall P1)
}

// supervisor is a Behaviour with children. All methods run in its actor.
type supervisor interface {
	// childFailed is told that the present incarnation of a child failed; the child is suspended.
	childFailed(c *Context, child *Mailbox, f *Failure)
	// childEnded is told that a child has stopped; its name is free again.
	childEnded(c *Context, child *actor.PID)
}

var (
	_ actor.Actor              = (*shell)(nil)
	_ actor.SupervisorStrategy = (*shell)(nil)
)

// Receive satisfies actor.Actor.
func (s *shell) Receive(ac actor.Context) {
	switch msg := ac.Message().(type) {
	case *actor.Started:
		s.start(ac)
	case *actor.Restarting, *actor.Stopping:
		s.end()
	case *actor.Stopped:
		s.life.box.finish()
	case *actor.Terminated:
		s.childEnded(msg)
	default:
		switch {
		case s.down:
			s.life.box.drop() // never reached as long as the mailbox keeps its gate closed meanwhile (pitfall P6)
		case isInspect(msg):
			s.inspect(msg)
		case isRestart(msg):
			s.ctx.Fail(fmt.Errorf("%w: %s", ErrRestart, msg.(*messages.Restart).GetReason()))
		default:
			s.behaviour.Receive(&s.ctx, msg)
		}
	}
}

// start begins the incarnation.
func (s *shell) start(ac actor.Context) {
	if s.life.box == nil { // of a restart; the first shell gets its mailbox in RegisterHandlers
		s.life.box = s.sys.lookup(ac.Self().GetId())
	}
	s.life.incarnation = s.life.box.begin(&s.life)
	s.ctx = Context{ac: ac, shell: s}
	s.behaviour = s.life.box.spec.New()
	s.sys.fault(s.life.box, Starting)
	s.behaviour.Start(&s.ctx)
	s.life.box.begun()
}

// end finishes the incarnation. It is called twice when a stop overtakes a restart that waits for children.
func (s *shell) end() {
	if s.down {
		return
	}
	s.down = true
	s.life.end()
	if s.behaviour == nil {
		return
	}
	defer func() { // pitfalls P2, P3: protoactor must never see a panic here
		if reason := recover(); reason != nil {
			s.life.box.contained(newFailure(reason, "Stop", debug.Stack()))
		}
	}()
	s.sys.fault(s.life.box, Stopping)
	s.behaviour.Stop(&s.ctx)
}

func (s *shell) childEnded(msg *actor.Terminated) {
	if sup, ok := s.behaviour.(supervisor); ok && !s.ctx.over() {
		sup.childEnded(&s.ctx, msg.GetWho())
	}
}

// HandleFailure satisfies actor.SupervisorStrategy. protoactor prefers an actor that is its own strategy and calls it in the actor's
// goroutine.
func (s *shell) HandleFailure(
	_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any,
) {
	box := s.sys.lookup(child.GetId())
	if box == nil || box.pid != child {
		return // it has stopped in the meantime
	}
	var f *Failure
	if err, ok := reason.(error); !ok || !errors.As(err, &f) {
		f = newFailure(reason, "", nil)
	}
	sup, ok := s.behaviour.(supervisor)
	switch {
	case s.ctx.over(): // the child will be stopped with its supervisor
		s.sys.report(box, f, decisionStop)
	case f.Incarnation < box.plan(): // restarted meanwhile for another reason
		s.sys.report(box, f, decisionRestart)
	case !ok:
		s.sys.report(box, f, decisionRestart)
		box.restart()
	default:
		sup.childFailed(&s.ctx, box, f)
	}
}

func isRestart(msg any) bool {
	_, ok := msg.(*messages.Restart)
	return ok
}

func isInspect(msg any) bool {
	_, ok := msg.(*messages.Inspect)
	return ok
}

// inspect answers *messages.Inspect for the Behaviour unless it does so itself.
func (s *shell) inspect(msg any) {
	var state any
	if i, ok := s.behaviour.(Inspector); ok {
		state = i.Inspect()
	} else {
		s.ctx.replied = false
		s.behaviour.Receive(&s.ctx, msg)
		if s.ctx.replied {
			return
		}
		state = struct {
			Kind        string `json:"kind"`
			Incarnation uint64 `json:"incarnation"`
		}{s.life.box.spec.Kind, s.life.incarnation}
	}
	text, err := json.Marshal(state)
	if err != nil {
		text, _ = json.Marshal(map[string]string{"error": fmt.Sprintf("encode state of %s: %v", s.life.box.Path(), err)}) // strings always encode
	}
	s.ctx.Reply(&messages.State{Json: string(text)})
}
