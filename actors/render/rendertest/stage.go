package rendertest

import (
	"fmt"
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
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Renderer is the one that is real.
type Renderer struct {
	// Name is that of the actor.
	Name string
	// New returns an incarnation of it.
	New func(config *render.Config) runtime.Behaviour
	// View is a service that wants one object for each address.
	View func(key string, created int64, addresses ...string) *messages.ServiceView
}

// Adapted is the renderer of a package.
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
	// Renderer is the one that is real.
	Renderer
	// VPP is at the other end of the connection.
	VPP *virtual.Stream
	// Config is that of the renderer.
	Config *render.Config
	// Observed is what the renderer counts.
	Observed Observed
	// Before is called instead of handing a message to the renderer, which it does by calling
	// handle; nil = it is handed over.
	Before func(msg any, handle func(msg any))
	// Refuse answers a change in VPP's place; nil, and nil as its answer, mean that VPP does.
	Refuse func(api.Message) error
	// Unreadable ends every dump of these messages, by the beginning of the name; "" = none.
	Unreadable string
	// Lacks is the beginning of the names of messages that VPP does not know; "" = none.
	Lacks string

	// Free is how many percent of VPP's memory are free, where Memory was called.
	Free int

	// Draining are the lists of backends that drain, as the renderer has sent them. Unless Keeps is
	// set, VPP is said to have no session to any of them.
	Draining []*messages.Draining
	Keeps    bool

	refused int // changes that VPP was asked for and has not seen
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

// veto has VPP fail as the test says.
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

// RefuseAfter has every change refused after the next n.
func (s *Stage) RefuseAfter(n int, err error) {
	s.Refuse = func(api.Message) error {
		if n--; n >= 0 {
			return nil
		}
		return err
	}
}

// Writes counts the changes that VPP was asked for, also those that it has refused.
func (s *Stage) Writes() int { return s.VPP.Writes + s.refused }

// Crash ends VPP and starts it again, empty; the connection is lost.
func (s *Stage) Crash() {
	s.Helper()
	if err := s.VPP.Crash(); err != nil {
		s.Fatal(err)
	}
}

// watched is the renderer, whose messages the test may change.
type watched struct {
	runtime.Behaviour
	stage *Stage
}

// counter stands in for the actor that counts sessions.
type counter struct {
	stage    *Stage
	renderer string
}

// Start satisfies runtime.Behaviour.
func (*counter) Start(*runtime.Context) {}

// Stop satisfies runtime.Behaviour.
func (*counter) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (n *counter) Receive(c *runtime.Context, msg any) {
	m, list := msg.(*messages.Draining)
	if !list {
		return
	}
	n.stage.Draining = append(n.stage.Draining, m)
	if n.stage.Keeps || len(m.GetEndpoints()) == 0 {
		return
	}
	answer := &messages.DrainingSessions{Generation: m.GetGeneration()}
	for _, e := range m.GetEndpoints() {
		answer.Counts = append(answer.Counts, &messages.DrainingCount{Endpoint: e})
	}
	c.Send(c.PID(n.renderer), answer)
}

// later is a message that was held back.
type later struct{ msg any }

// Receive satisfies runtime.Behaviour.
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

// Later has the renderer receive a message after a while, past Before.
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
	// Names are those of the renderers that have counted.
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
