package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/messages"
)

// adapter is the protoactor actor that hosts a Behaviour: one value for each incarnation. It
// translates the life cycle, contains panics of Stop, and hands failures and ends of children to a
// Behaviour that is a supervisor.
type adapter struct {
	sys       *System
	behaviour Behaviour // nil when Spec.New panicked
	ctx       Context
	inc       incarnation // its mailbox is nil until the actor starts
	// restarting or stopping; the actor must not start children any more (pitfall P1)
	down bool
}

// supervisor is a Behaviour with children. All methods run in its actor.
type supervisor interface {
	// childFailed says that the present incarnation of a child failed; the child is suspended.
	childFailed(c *Context, child *Mailbox, f *Failure)
	// childEnded says that a child has stopped; its name is free again.
	childEnded(c *Context, child *actor.PID)
}

var (
	_ actor.Actor              = (*adapter)(nil)
	_ actor.SupervisorStrategy = (*adapter)(nil)
)

func (a *adapter) Receive(ac actor.Context) {
	switch msg := ac.Message().(type) {
	case *actor.Started:
		a.start(ac)
	case *actor.Restarting, *actor.Stopping:
		a.end()
	case *actor.Stopped:
		a.inc.box.finish()
	case *actor.Terminated:
		if sup, ok := a.behaviour.(supervisor); ok && !a.ctx.over() {
			sup.childEnded(&a.ctx, msg.GetWho())
		}
	default:
		a.receive(msg)
	}
}

// receive handles a user message.
func (a *adapter) receive(msg any) {
	if a.down {
		// never reached as long as the mailbox keeps its gate closed meanwhile (pitfall P6)
		a.inc.box.drop()
		return
	}
	switch m := msg.(type) {
	case inspect:
		a.ctx.Reply(a.described())
	case *messages.Restart:
		a.ctx.Fail(fmt.Errorf("%w: %s", ErrRestart, m.GetReason()))
	default:
		a.behaviour.Receive(&a.ctx, msg)
	}
}

// start begins the incarnation.
func (a *adapter) start(ac actor.Context) {
	if a.inc.box == nil {
		// after a restart; the first adapter of an actor gets its mailbox in RegisterHandlers
		a.inc.box = a.sys.lookup(ac.Self().GetId())
	}
	a.inc.number = a.inc.box.begin(&a.inc)
	a.ctx = Context{ac: ac, adapter: a}
	a.behaviour = a.inc.box.spec.New()
	a.sys.fault(a.inc.box, Starting)
	a.behaviour.Start(&a.ctx)
	a.inc.box.begun()
}

// end finishes the incarnation. It is called twice when a stop overtakes a restart that waits for
// children.
func (a *adapter) end() {
	if a.down {
		return
	}
	a.down = true
	a.inc.end()
	if a.behaviour == nil {
		return
	}
	defer func() { // pitfalls P2, P3: protoactor must never see a panic here
		if reason := recover(); reason != nil {
			a.inc.box.contained(newFailure(reason, "Stop", debug.Stack()))
		}
	}()
	a.sys.fault(a.inc.box, Stopping)
	a.behaviour.Stop(&a.ctx)
}

// HandleFailure satisfies actor.SupervisorStrategy. protoactor prefers an actor that is its own
// strategy and calls it in the actor's goroutine.
func (a *adapter) HandleFailure(
	_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any,
) {
	box := a.sys.lookup(child.GetId())
	if box == nil || box.pid != child {
		return // it has stopped in the meantime
	}
	// The reason is a *Failure unless protoactor itself escalated.
	var f *Failure
	if err, ok := reason.(error); !ok || !errors.As(err, &f) {
		f = newFailure(reason, "", nil)
	}
	sup, ok := a.behaviour.(supervisor)
	switch {
	case a.ctx.over(): // the child will be stopped with its supervisor
		a.sys.report(box, f, decisionStop)
	case f.Incarnation < box.planned(): // restarted meanwhile for another reason
		a.sys.report(box, f, decisionRestart)
	case !ok:
		a.sys.report(box, f, decisionRestart)
		box.restart()
	default:
		sup.childFailed(&a.ctx, box, f)
	}
}

// described is the state of the actor as JSON.
func (a *adapter) described() string {
	var state any = struct {
		Kind        string `json:"kind"`
		Incarnation uint64 `json:"incarnation"`
	}{a.inc.box.spec.Kind, a.inc.number}
	if i, ok := a.behaviour.(Inspector); ok {
		state = contained(i)
	}
	text, err := json.Marshal(state)
	if err != nil {
		// strings always encode
		text, _ = json.Marshal(map[string]string{"error": fmt.Sprintf("encode state of %s: %v", a.inc.box.Path(), err)})
	}
	return string(text)
}

// contained is the state of a Behaviour, or why there is none: one that has failed may be in any
// state.
func contained(i Inspector) (state any) {
	defer func() {
		if reason := recover(); reason != nil {
			state = map[string]string{"error": fmt.Sprintf("inspect: %v", reason)}
		}
	}()
	return i.Inspect()
}
