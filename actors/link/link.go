// Package link is the actor that owns the connection to VPP and reports it to the dataplane.
//
// The connection runs in a goroutine of the actor and ends with the incarnation. Requests to VPP do
// not pass through the actor: other actors call Link.Do from their own goroutines. The state goes
// to Config.Receivers when it changes, and when one of them asks (Resync).
package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Config is the configuration of the actor. It is read-only.
type Config struct {
	// Link is the connection. A restarted actor runs it again, when the run before has
	// returned.
	Link link.Runner
	// Runs lets one run of Link in at a time.
	Runs *runtime.Exclusive
	// Receivers are the paths of the actors that get the state.
	Receivers []string
	// Renderers are the names of the renderers that run. Messages that they need and VPP lacks
	// are a warning.
	Renderers []string
}

// linkActor owns the connection to VPP. A VPP that is down is state, not a failure: no actor is
// restarted because of it.
type linkActor struct {
	report.Health
	config *Config
	state  *messages.LinkState
	// boot is the VPP of the last connection that ended, lost why it ended.
	boot, lost string
	ended      time.Time // when it ended
	// trusted is when the loss of the last session is no warning any more; zero = it is none.
	trusted time.Time
}

// distrust is how long the end of a connection stays a warning on the next connection to the same
// VPP. It is longer than a connection that VPP breaks again in the same way (Config.DumpTimeout of
// package vpp/link). So readiness shows the reason all the time, and not only between connections.
const distrust = time.Minute

// linkEnded is posted when Link.Run has returned, which it should do only when the agent stops.
type linkEnded struct{ err error }

// connectionBits bounds the connections of one incarnation of the link: it has 2^connectionBits
// numbers.
const connectionBits = 32

// New returns the actor.
func New(config *Config) runtime.Behaviour {
	return &linkActor{Health: report.Health{Part: "link", Lost: true}, config: config, state: &messages.LinkState{Reason: "not connected yet"}}
}

// Start satisfies runtime.Behaviour. Link.Run numbers its connections from 1. The actor makes the
// numbers unique over its incarnations, because receivers keep what they have read over a
// connection of the same number.
func (l *linkActor) Start(c *runtime.Context) {
	post, link, runs, base := c.Post(), l.config.Link, l.config.Runs, c.Incarnation()<<connectionBits
	on := func(s *messages.LinkState) {
		s.Session += base
		post(s)
	}
	c.Go("link", func(ctx context.Context) {
		if ran, err := runs.Run(ctx, func() error { return link.Run(ctx, on) }); ran && ctx.Err() == nil {
			post(&linkEnded{err})
		}
	})
	l.state.Session = base
	l.Report(c, false, l.state.GetReason(), 0)
	l.Health.Start(c)
	c.Ready() // able to work, with or without VPP
}

// Stop satisfies runtime.Behaviour; the connection is closed with the incarnation.
func (*linkActor) Stop(*runtime.Context) {}

func (l *linkActor) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.LinkState:
		l.changed(c, m)
	case *linkEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		// the supervisor restarts the actor, with back-off
		c.Fail(fmt.Errorf("link failed: %w", m.err))
	case *messages.Resync:
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
	case l.state.GetUp() && (!m.GetUp() || m.GetBoot() != l.state.GetBoot()):
		l.boot, l.lost, l.ended, l.trusted = l.state.GetBoot(), m.GetReason(), c.Now(), time.Time{}
	case m.GetUp() && l.lost != "" && l.boot == m.GetBoot():
		l.trusted = c.Now().Add(distrust)
	}
	m.Lost, m.Back = l.state.GetLost(), l.state.GetBack()
	if m.GetUp() && l.boot != "" && l.boot != m.GetBoot() {
		m.Lost, m.Back, l.boot = l.ended.UnixNano(), c.Now().UnixNano(), ""
	}
	l.state = m
	l.report(c)
	l.send(c)
}

// report reports the connection. While VPP is disconnected, it says why. Shortly after a
// reconnection to the same VPP, it warns why the last connection ended, otherwise which messages
// VPP lacks.
func (l *linkActor) report(c *runtime.Context) {
	reason := l.state.GetReason()
	if !l.trusted.IsZero() {
		reason = "connected again; the connection before ended: " + l.lost
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

func (l *linkActor) Inspect() any {
	return map[string]any{"up": l.state.GetUp(), "version": l.state.GetVersion(), "boot": l.state.GetBoot(), "session": l.state.GetSession(), "reason": l.state.GetReason()}
}
