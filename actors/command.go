package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// CommandResult answers a command, exactly once.
type CommandResult struct {
	// Cause is the id under which the journal has the command and what followed from it.
	Cause uint64
	// Err is why nothing was done; nil = all of it was.
	Err error
}

// command is a transaction that somebody waits for.
type command struct {
	*transaction[*runtime.Context]
	object string // what it is about: a pod, a source
	text   string // what it does, for the journal
	method messages.Method
	after  func(c *runtime.Context, err error) // is told the outcome; may be nil

	cause  uint64
	to     *actor.PID // nil: it has been answered, or nobody asked
	cancel func()     // of the timer
}

// commandExpired ends the patience with a command.
type commandExpired struct{ of *command }

// commands are those of one actor, which embeds it: they are carried out one after the other, so that each finds what the one before has left
// behind. Every one is answered exactly once: when it has ended, when its deadline passes, or when the actor goes down.
type commands struct {
	running *command
	waiting []*command
	last    uint64 // cause of the last one
}

// submit takes a command from the sender of the present message.
func (q *commands) submit(c *runtime.Context, cmd *command, patience time.Duration) {
	q.last = max(q.last+1, uint64(c.Now().UnixMicro()))
	cmd.cause, cmd.to = q.last, c.Sender()
	cmd.cancel = c.After(patience, &commandExpired{cmd})
	record(c, &messages.Event{
		Kind: "command", Object: cmd.object, Text: cmd.text, Cause: cmd.cause, Method: cmd.method, Operations: cmd.planned(),
	})
	q.waiting = append(q.waiting, cmd)
	q.next(c)
}

// next carries out what waits.
func (q *commands) next(c *runtime.Context) {
	for q.running == nil && len(q.waiting) > 0 {
		q.running, q.waiting = q.waiting[0], q.waiting[1:]
		q.running.begin(c)
		q.settle(c)
	}
}

// ticket is that of the step under way, which its result is reported with; 0 = none is waited for.
func (q *commands) ticket() uint64 {
	if q.running == nil {
		return 0
	}
	return q.running.ticket
}

// finish reports the result of the step under way.
func (q *commands) finish(c *runtime.Context, ticket uint64, err error) {
	if q.running != nil {
		q.running.finish(c, ticket, err)
		q.settle(c)
		q.next(c)
	}
}

// expired ends the patience with a command: it is answered, and what was done of it is taken back; that, too, has its time.
func (q *commands) expired(c *runtime.Context, m *commandExpired, patience time.Duration) {
	cmd := m.of
	if cmd != q.running {
		for i, waiting := range q.waiting {
			if waiting == cmd {
				q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
				q.close(c, cmd, errTooLate, nil)
			}
		}
		return
	}
	cmd.reply(c, fmt.Errorf("%w: %s", errTooLate, cmd.waitsFor()))
	cmd.cancel = c.After(patience, &commandExpired{cmd})
	cmd.abandon(c, errTooLate)
	q.settle(c)
	q.next(c)
}

// waitsFor names the step under way.
func (cmd *command) waitsFor() string {
	if cmd.ended() {
		return cmd.text
	}
	return cmd.steps[cmd.at].name
}

// settle concludes the command that has ended.
func (q *commands) settle(c *runtime.Context) {
	cmd := q.running
	if cmd == nil || !cmd.ended() {
		return
	}
	q.running = nil
	q.close(c, cmd, cmd.err(), cmd.executed)
}

// close answers a command and writes down what became of it.
func (q *commands) close(c *runtime.Context, cmd *command, err error, executed []string) {
	cmd.cancel()
	cmd.reply(c, err)
	e := &messages.Event{
		Kind: "command", Object: cmd.object, Text: "done: " + cmd.text, Cause: cmd.cause, Method: cmd.method, Operations: cmd.planned(),
		Executed: executed,
	}
	if err != nil {
		e.Text, e.Error = "failed: "+cmd.text, err.Error()
	}
	record(c, e)
	if cmd.after != nil {
		cmd.after(c, err)
	}
}

// reply answers, unless that has been done.
func (cmd *command) reply(c *runtime.Context, err error) {
	if cmd.to != nil {
		c.Send(cmd.to, &CommandResult{Cause: cmd.cause, Err: err})
		cmd.to = nil
	}
}

// release answers everybody who waits, because the actor goes down; what was done is not taken back. It is called in Stop.
func (q *commands) release(c *runtime.Context) {
	if q.running != nil {
		q.running.reply(c, fmt.Errorf("%w: %s", errInterrupted, q.running.waitsFor()))
	}
	for _, cmd := range q.waiting {
		cmd.reply(c, errInterrupted)
	}
	q.running, q.waiting = nil, nil
}
