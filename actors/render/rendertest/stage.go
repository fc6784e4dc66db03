// Package rendertest is the stage for tests of renderers: the stage of actorstest/probe with one
// real renderer and a simulated VPP. The test decides about faults of the connection.
package rendertest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Renderer is the one that is real.
type Renderer struct {
	// Name is the name of the actor.
	Name string
	// New returns an incarnation of the renderer.
	New func(config *render.Config) runtime.Behaviour
	// View is a service that wants one object for each address.
	View func(key string, created int64, addresses ...string) *messages.ServiceView
}

// Adapted returns the renderer of an adapter.
func Adapted[K render.Key, C any](
	renderer func(C) render.Renderer[K], settings C, view func(key string, created int64, addresses ...string) *messages.ServiceView,
) Renderer {
	return Renderer{
		renderer(settings).Name, func(config *render.Config) runtime.Behaviour { return render.New(config, renderer(settings)) }, view,
	}
}

// Stage has one real renderer among probes.
type Stage struct {
	*probe.Stage
	// Renderer is the real one.
	Renderer
	// VPP is at the other end of the connection.
	VPP *virtual.Stream
	// Config is the configuration of the renderer.
	Config *render.Config

	// Faults, set by the test.

	// Before is called instead of handing a message to the renderer. It calls handle to hand
	// the message over; nil = every message is handed over.
	Before func(msg any, handle func(msg any))
	// Refuse answers a change in VPP's place; nil, and nil as its answer, mean that VPP does.
	Refuse func(api.Message) error
	// Unreadable ends every dump of these messages, by the beginning of the name; "" = none.
	Unreadable string
	// Lacks is the beginning of the names of messages that VPP does not know; "" = none.
	Lacks string
	// Free is how many percent of VPP's memory are free, where Memory was called.
	Free int
	// Keeps says that VPP has sessions to the backends that drain. Otherwise it has none.
	Keeps bool

	// Records, written by the stage.

	// Observed is what the renderer counts.
	Observed Observed
	// Draining are the lists of backends that drain, as the renderer has sent them.
	Draining []*sessions.Wish
	refused  int // changes that the test refused, so that VPP has not seen them
}

// Play runs a test on a stage with these services. VPP is connected and its interfaces are known,
// as the sibling actors would report them.
func Play(t *testing.T, r Renderer, services []string, play func(s *Stage)) {
	t.Helper()
	s := &Stage{Stage: probe.New(t), Renderer: r}
	s.Renderers = []string{r.Name}
	s.VPP = s.Stage.VPP()
	s.VPP.Veto = s.veto
	s.Config = &render.Config{
		VPP: s.VPP, Observer: &s.Observed, Tick: 900 * time.Millisecond, Backoff: time.Second, DriftCheckOverdue: time.Minute,
		DriftCheckLeast: 24 * time.Hour, DriftCheckMost: 24 * time.Hour,
	}
	path := address.Renderer(s.Name)
	s.Start(path, probe.Actors{
		path:             func() runtime.Behaviour { return &watched{s.New(s.Config), s} },
		address.Sessions: func() runtime.Behaviour { return &counter{s, path} },
	}, services...)
	s.Connected()
	s.Found(1)
	play(s)
}

// veto makes VPP fail as the test says.
func (s *Stage) veto(req api.Message) (err error) {
	name := req.GetMessageName()
	changes := virtual.Changes(req)
	switch {
	case changes && s.Refuse != nil:
		err = s.Refuse(req)
	case s.Unreadable != "" && strings.HasPrefix(name, s.Unreadable) && strings.HasSuffix(name, "_dump"):
		err = &link.RetvalError{Message: name, Retval: -1}
	}
	if err == nil && s.Lacks != "" && strings.HasPrefix(name, s.Lacks) {
		err = fmt.Errorf("%w: %s", link.ErrUnsupported, name)
	}
	if err != nil && changes {
		s.refused++
	}
	return err
}

// RefuseAfter refuses every change after the next n.
func (s *Stage) RefuseAfter(n int, err error) {
	s.Refuse = func(api.Message) error {
		if n--; n >= 0 {
			return nil
		}
		return err
	}
}

// Writes counts the requests for changes of VPP, including the refused ones.
func (s *Stage) Writes() int { return s.VPP.Writes + s.refused }

// Crash ends VPP and starts it again, empty; the connection is lost.
func (s *Stage) Crash() {
	s.Helper()
	if err := s.VPP.Crash(); err != nil {
		s.Fatal(err)
	}
}

// watched is the renderer. The test may change its messages.
type watched struct {
	runtime.Behaviour
	stage *Stage
}

// counter stands in for the actor that counts sessions.
type counter struct {
	stage    *Stage
	renderer string
}

func (*counter) Start(*runtime.Context) {}

func (*counter) Stop(*runtime.Context) {}

func (n *counter) Receive(c *runtime.Context, msg any) {
	m, list := msg.(*sessions.Wish)
	if !list {
		return
	}
	n.stage.Draining = append(n.stage.Draining, m)
	if n.stage.Keeps || len(m.Draining) == 0 {
		return
	}
	answer := &sessions.Counted{Generation: m.Generation, Live: map[netip.AddrPort]sessions.Live{}}
	for _, at := range m.Draining {
		answer.Live[at] = nil
	}
	c.Send(c.PID(n.renderer), answer)
}

// later is a message that was held back.
type later struct{ msg any }

func (w *watched) Receive(c *runtime.Context, msg any) {
	if l, ok := msg.(*later); ok {
		w.Behaviour.Receive(c, l.msg)
		return
	}
	if w.stage.Before == nil {
		w.Behaviour.Receive(c, msg)
		return
	}
	w.stage.Before(msg, func(msg any) { w.Behaviour.Receive(c, msg) })
}

// Later sends the renderer a message after a while, past Before.
func (s *Stage) Later(d time.Duration, msg any) {
	s.Sim.AfterFunc(d, func() { s.Send(&later{msg}) })
}

// Observed counts what a renderer reports to metrics.
type Observed struct {
	// Full and Incremental count passes.
	Full, Incremental int
	// Done, Failed and Unknown count operations.
	Done, Failed, Unknown int
	// Drift counts objects that were modified outside of the agent.
	Drift int
	// Names are the names of the renderers that have counted.
	Names map[string]bool
}

func (o *Observed) by(name string) {
	if o.Names == nil {
		o.Names = map[string]bool{}
	}
	o.Names[name] = true
}

// Synced satisfies report.Observer.
func (o *Observed) Synced(renderer string, _ time.Duration, full bool) {
	o.by(renderer)
	if full {
		o.Full++
	} else {
		o.Incremental++
	}
}

// Programmed satisfies report.Observer.
func (*Observed) Programmed(report.Programming) {}

// Operations satisfies report.Observer.
func (o *Observed) Operations(renderer string, succeeded, failed, unknown int) {
	o.by(renderer)
	o.Done, o.Failed, o.Unknown = o.Done+succeeded, o.Failed+failed, o.Unknown+unknown
}

// Healed satisfies report.Observer.
func (*Observed) Healed(string, string, int) {}

// Drifted satisfies report.Observer.
func (o *Observed) Drifted(renderer string, n int) {
	o.by(renderer)
	o.Drift += n
}

// Memory satisfies report.Observer.
func (*Observed) Memory(string, int, int, int) {}

// InputErrors satisfies report.Observer.
func (*Observed) InputErrors(int) {}
