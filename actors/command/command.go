// Package command carries out commands as transactions: their operations are all carried out, or
// rolled back in the reverse order. The answer comes exactly once.
//
// A Queue and a Transaction belong to the actor that embeds them and neither wait nor do I/O.
// Operation.Do begins an operation that takes time, and Queue.Finish reports its result.
// Queue.Interrupt in the Stop of the actor answers the remaining commands.
package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Result answers a command, exactly once.
type Result struct {
	// Cause is the id of the command and its consequences in the journal.
	Cause uint64
	// Err is why the command failed and nothing was changed; nil = success.
	Err error
}

// Command is a transaction with a caller that waits for its Result.
type Command struct {
	*Transaction[*runtime.Context]
	// Object is the object of the command: a pod, a source. Text says what the command does,
	// for the journal.
	Object, Text string
	// Method is how much the command changes.
	Method messages.Method
	// After is called with the outcome; may be nil.
	After func(c *runtime.Context, err error)

	cause  uint64
	to     *runtime.PID // nil = answered, or there is no caller
	cancel func()       // of the timer
}

// Cause is the id of the command in the journal.
func (cmd *Command) Cause() uint64 { return cmd.cause }

// Expired is the message that ends the wait for a command.
type Expired struct {
	// Of is the command.
	Of *Command
}

// Queue holds the commands of the actor that embeds it. They are carried out one after the other,
// so that each sees the effects of the one before. Every command is answered exactly once: when it
// has ended, when its deadline passes, or when the actor goes down.
type Queue struct {
	running *Command
	waiting []*Command
	last    uint64 // cause of the last command
}

// Running is the command under way; nil = none.
func (q *Queue) Running() *Command { return q.running }

// Submit takes a command from the sender of the present message.
func (q *Queue) Submit(c *runtime.Context, cmd *Command, deadline time.Duration) {
	q.last = max(q.last+1, uint64(c.Now().UnixMicro()))
	cmd.cause, cmd.to = q.last, c.Sender()
	cmd.cancel = c.After(deadline, &Expired{cmd})
	report.Event(c, &messages.Event{
		Kind: "command", Object: cmd.Object, Text: cmd.Text, Cause: cmd.cause, Method: cmd.Method, Operations: cmd.planned(),
	})
	q.waiting = append(q.waiting, cmd)
	q.next(c)
}

// next carries out the waiting commands until one does not end at once.
func (q *Queue) next(c *runtime.Context) {
	for q.running == nil && len(q.waiting) > 0 {
		q.running, q.waiting = q.waiting[0], q.waiting[1:]
		q.running.Begin(c)
		q.settle(c)
	}
}

// Ticket identifies the operation under way when its result is reported; 0 = none is under way.
func (q *Queue) Ticket() uint64 {
	if q.running == nil {
		return 0
	}
	return q.running.ticket
}

// Finish reports the result of the operation under way.
func (q *Queue) Finish(c *runtime.Context, ticket uint64, err error) {
	if q.running != nil {
		q.running.Finish(c, ticket, err)
		q.settle(c)
		q.next(c)
	}
}

// Expire ends the wait for a command: it is answered and rolled back. The rollback has the same
// deadline again.
func (q *Queue) Expire(c *runtime.Context, m *Expired, deadline time.Duration) {
	cmd := m.Of
	if cmd != q.running {
		for i, waiting := range q.waiting {
			if waiting == cmd {
				q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
				q.close(c, cmd, ErrTooLate, nil)
			}
		}
		return
	}
	cmd.reply(c, fmt.Errorf("%w: %s", ErrTooLate, cmd.waitsFor()))
	cmd.cancel = c.After(deadline, &Expired{cmd})
	cmd.Abandon(c, ErrTooLate)
	q.settle(c)
	q.next(c)
}

// waitsFor names the operation under way.
func (cmd *Command) waitsFor() string {
	if cmd.ended() {
		return cmd.Text
	}
	return cmd.operations[cmd.at].Name
}

// settle concludes the command that has ended.
func (q *Queue) settle(c *runtime.Context) {
	cmd := q.running
	if cmd == nil || !cmd.ended() {
		return
	}
	q.running = nil
	q.close(c, cmd, cmd.err(), cmd.executed)
}

// close answers a command and records its outcome.
func (q *Queue) close(c *runtime.Context, cmd *Command, err error, executed []string) {
	cmd.cancel()
	cmd.reply(c, err)
	e := &messages.Event{
		Kind: "command", Object: cmd.Object, Text: "done: " + cmd.Text, Cause: cmd.cause, Method: cmd.Method, Operations: cmd.planned(),
		Executed: executed,
	}
	if err != nil {
		e.Text, e.Error = "failed: "+cmd.Text, err.Error()
	}
	report.Event(c, e)
	if cmd.After != nil {
		cmd.After(c, err)
	}
}

// reply answers the command, unless it was answered before.
func (cmd *Command) reply(c *runtime.Context, err error) {
	if cmd.to != nil {
		c.Send(cmd.to, &Result{Cause: cmd.cause, Err: err})
		cmd.to = nil
	}
}

// Interrupt answers all commands because the actor goes down. Nothing is rolled back. It is called
// in Stop.
func (q *Queue) Interrupt(c *runtime.Context) {
	if q.running != nil {
		q.running.reply(c, fmt.Errorf("%w: %s", ErrInterrupted, q.running.waitsFor()))
	}
	for _, cmd := range q.waiting {
		cmd.reply(c, ErrInterrupted)
	}
	q.running, q.waiting = nil, nil
}

// Errors of commands, by what the caller can do about them.
var (
	// ErrState matches errors of commands that the state of VPP does not allow.
	ErrState = errors.New("not in this state of VPP")
	// ErrAway matches errors of commands that need something which is away.
	ErrAway = errors.New("not now")
	// ErrTooLate matches errors of commands whose deadline has passed.
	ErrTooLate = errors.New("not done in time")
)

// Errors that actors with commands share.
var (
	// ErrNotConnected answers commands and queries that need VPP while it is not connected.
	ErrNotConnected = errors.New("no connection to VPP, or its interfaces are not known yet")
	// ErrNotLoaded answers commands while the state that earlier ones have saved is still being
	// loaded.
	ErrNotLoaded = errors.New("saved state is still loading")
	// ErrInterrupted answers a command whose actor went down: its effects may or may not last.
	ErrInterrupted = errors.New("interrupted by a restart")
	// ErrNotReverted says that a command failed and that a part of it could not be rolled back.
	ErrNotReverted = errors.New("the rollback is not complete")
)

// refusal is an error that ErrState matches.
type refusal struct{ error }

func (refusal) Is(target error) bool { return target == ErrState }

// Refusal returns an error with this text that ErrState matches.
func Refusal(text string) error { return refusal{errors.New(text)} }

// Meaning returns ErrState, ErrAway or ErrTooLate for an error of a command; nil = any other error.
func Meaning(err error) error {
	for _, known := range []struct{ is, means error }{
		{ErrState, ErrState},
		{ErrNotLoaded, ErrAway},
		{ErrNotConnected, ErrAway},
		{link.ErrDown, ErrAway}, // also if the rollback failed for the same reason
		{link.ErrNotSent, ErrAway},
		{ErrInterrupted, ErrAway},
		{ErrTooLate, ErrTooLate},
	} {
		if errors.Is(err, known.is) {
			return known.means
		}
	}
	return nil
}
