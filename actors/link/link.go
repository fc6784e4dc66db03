package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/gate"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Link is what the dataplane actors need of vpp/link; *link.Link satisfies it.
type Link interface {
	link.Caller
	// Run keeps VPP connected until ctx ends; on gets every change, from one goroutine.
	Run(ctx context.Context, on func(*messages.LinkState)) error
}

// Config is what the actor is given. It is read-only.
type Config struct {
	// Link is the connection. A restarted actor runs it again, when the run before has returned.
	Link Link
	// Gate lets one run of it in at a time.
	Gate *gate.Gate
	// Receivers are the paths of the actors that get the state.
	Receivers []string
	// Renderers are the names of the renderers that run. What they need and VPP lacks is a warning.
	Renderers []string
}

// linkActor owns the connection to VPP. A VPP that is down is state, not a failure: no actor is
// restarted because of it.
type linkActor struct {
	report.Health
	config *Config
	state  *messages.LinkState
	// boot is the VPP of the last session that ended, lost why it ended.
	boot, lost string
	// trusted is when the loss of the last session is no warning any more; zero = there is none.
	trusted time.Time
}

// distrust is how long the reason for the end of a session stays a warning in the next session with
// the same VPP. It is longer than a session that VPP breaks again in the same way
// (Config.DumpTimeout of package vpp/link), so that readiness says why all the time, and not only
// between sessions.
const distrust = time.Minute

// linkEnded is posted when the connection loop ended, which it only does when the agent stops.
type linkEnded struct{ err error }

// sessionBits is how many sessions one incarnation of the link can have.
const sessionBits = 32

// New returns the actor.
func New(config *Config) runtime.Behaviour {
	return &linkActor{Health: report.Health{Part: "link"}, config: config, state: &messages.LinkState{Reason: "not connected yet"}}
}

// Start satisfies runtime.Behaviour. A link counts the sessions of one run; the actor makes them
// unique over its incarnations, because a receiver goes on to believe what it has read in a session
// that it knows.
func (l *linkActor) Start(c *runtime.Context) {
	post, link, gate, base := c.Post(), l.config.Link, l.config.Gate, c.Incarnation()<<sessionBits
	on := func(s *messages.LinkState) {
		s.Session += base
		post(s)
	}
	c.Go("link", func(ctx context.Context) {
		if ran, err := gate.Run(ctx, func() error { return link.Run(ctx, on) }); ran && ctx.Err() == nil {
			post(&linkEnded{err})
		}
	})
	l.state.Session = base
	l.Report(c, false, l.state.GetReason(), 0)
	l.Health.Start(c)
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
	case *messages.Resync, *messages.RollCall:
		l.send(c)
	case *report.Ask:
		l.Repeat(c)
	case *report.Beat:
		if !l.trusted.IsZero() && !c.Now().Before(l.trusted) {
			l.trusted = time.Time{}
			l.report(c)
		}
		l.Beat(c)
	}
}

func (l *linkActor) changed(c *runtime.Context, m *messages.LinkState) {
	if m.GetUp() != l.state.GetUp() || m.GetBoot() != l.state.GetBoot() {
		text := "VPP " + m.GetVersion() + " connected"
		if !m.GetUp() {
			text = "VPP disconnected"
		}
		report.Event(c, &messages.Event{Kind: "link", Object: m.GetBoot(), Text: text, Error: m.GetReason()})
		c.Logger().Info("VPP connection changed", "up", m.GetUp(), "boot", m.GetBoot(), "session", m.GetSession(), "reason", m.GetReason())
	}
	switch {
	case l.state.GetUp() && !m.GetUp():
		l.boot, l.lost, l.trusted = l.state.GetBoot(), m.GetReason(), time.Time{}
	case m.GetUp() && l.lost != "" && l.boot == m.GetBoot():
		l.trusted = c.Now().Add(distrust)
	}
	l.state = m
	l.report(c)
	l.send(c)
}

// report reports the connection: without one why, with a new one to the same VPP for a while why
// the one before ended, then what VPP lacks.
func (l *linkActor) report(c *runtime.Context) {
	reason := l.state.GetReason()
	if !l.trusted.IsZero() {
		reason = "connected again; the session before ended: " + l.lost
	} else if lacks := features.Lacks(l.state.GetFeatures(), l.config.Renderers); lacks != "" {
		reason = "VPP " + l.state.GetVersion() + " lacks messages: " + lacks
	}
	l.Report(c, l.state.GetUp(), reason, 0)
}

func (l *linkActor) send(c *runtime.Context) {
	for _, path := range l.config.Receivers {
		c.Send(c.PID(path), l.state)
	}
}

// Inspect satisfies runtime.Inspector.
func (l *linkActor) Inspect() any {
	return map[string]any{"up": l.state.GetUp(), "version": l.state.GetVersion(), "boot": l.state.GetBoot(), "session": l.state.GetSession(), "reason": l.state.GetReason()}
}
