package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// linkActor owns the connection to VPP and tells everybody in the dataplane when it comes and goes. A VPP that is down is state, not a
// failure: nobody is restarted because of it.
type linkActor struct {
	reporter
	deps  *Deps
	state *messages.LinkState
}

// linkEnded is posted when the connection loop ended, which it only does when the agent stops.
type linkEnded struct{ err error }

// sessionBits is how many sessions one incarnation of the link can have.
const sessionBits = 32

func newLink(d *Deps) runtime.Behaviour {
	return &linkActor{reporter: reporter{part: "link"}, deps: d, state: &messages.LinkState{Reason: "not connected yet"}}
}

// Start satisfies runtime.Behaviour. A link counts the sessions of one run; ours never repeat, because whoever sees the number of a session
// that he knows goes on to believe what he has read in it.
func (l *linkActor) Start(c *runtime.Context) {
	post, link, lane, base := c.Post(), l.deps.Link, l.deps.lanes.link, c.Incarnation()<<sessionBits
	on := func(s *messages.LinkState) {
		s.Session += base
		post(s)
	}
	c.Go("link", func(ctx context.Context) {
		if ran, err := lane.run(ctx, func() error { return link.Run(ctx, on) }); ran && ctx.Err() == nil {
			post(&linkEnded{err})
		}
	})
	l.state.Session = base
	l.report(c, false, l.state.GetReason(), 0)
	l.keep(c)
	c.Ready() // able to work, whether VPP is there or not
}

// Stop satisfies runtime.Behaviour; the connection is closed with the incarnation.
func (*linkActor) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (l *linkActor) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.LinkState:
		l.changed(c, m)
	case *linkEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		c.Fail(fmt.Errorf("link failed: %w", m.err)) // the supervisor restarts us, with back-off
	case *messages.Resync: // somebody has just started
		l.tell(c)
	case *healthBeat:
		l.keep(c)
		l.repeat(c)
		l.tell(c)
	}
}

func (l *linkActor) changed(c *runtime.Context, m *messages.LinkState) {
	if m.GetUp() != l.state.GetUp() || m.GetBoot() != l.state.GetBoot() {
		text := "VPP " + m.GetVersion() + " connected"
		if !m.GetUp() {
			text = "VPP disconnected"
		}
		record(c, &messages.Event{Kind: "link", Object: m.GetBoot(), Text: text, Error: m.GetReason()})
		c.Logger().Info("link", "up", m.GetUp(), "boot", m.GetBoot(), "session", m.GetSession(), "reason", m.GetReason())
	}
	l.state = m
	l.report(c, m.GetUp(), m.GetReason(), 0)
	l.tell(c)
}

func (l *linkActor) tell(c *runtime.Context) {
	l.deps.tellRenderers(c, l.state)
	for _, path := range []string{PathInterfaces, PathSessions, PathIntrospect} {
		c.Send(c.PID(path), l.state)
	}
}
