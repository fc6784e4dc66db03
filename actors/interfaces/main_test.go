package interfaces

import (
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receivers are the actors that the interfaces actor tells its set.
var receivers = []string{address.Renderer("nat44"), address.Nodes, address.Registry, address.Introspect}

// stage has the interfaces actor in a tree of probes.
type stage struct {
	*probe.Stage
	config       *Config
	vpp          *virtual.Stream
	store        *probe.Store
	dumps, lists int // dumps that VPP has made, and dumps of its interfaces among them
}

// perform plays with an interfaces actor that has not been told of a connection.
func perform(t *testing.T, play func(s *stage)) {
	t.Helper()
	s := &stage{Stage: probe.New(t), store: &probe.Store{}}
	s.vpp = s.VPP()
	s.vpp.Veto = func(request api.Message) error {
		name := request.GetMessageName()
		if strings.HasSuffix(name, "_dump") {
			s.dumps++
		}
		if name == "sw_interface_dump" {
			s.lists++
		}
		return nil
	}
	s.config = &Config{
		NodeName: probe.Node, VPP: s.vpp, Attachments: s.store, Saves: runtime.NewExclusive(s.Sim.Park), Receivers: receivers, RoleGivers: []string{"nat44"},
		Rediscover: time.Minute, RediscoverSoon: time.Second, Command: 5 * time.Second,
	}
	s.Start(address.Interfaces, probe.Actors{address.Interfaces: func() runtime.Behaviour { return New(s.config) }})
	play(s)
}

// withInterfaces plays with an interfaces actor that is connected to VPP.
func withInterfaces(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, func(s *stage) {
		s.connected()
		play(s)
	})
}

// connected tells the actor the state of the connection, as the link would, and lets a discovery
// end.
func (s *stage) connected() {
	s.Helper()
	s.tell(s.vpp.State())
}

// tell sends messages and lets a discovery end.
func (s *stage) tell(msgs ...any) {
	s.Helper()
	s.Tell(msgs...)
	s.Run(100 * time.Millisecond)
}

// set is the last interface set that the renderer was told.
func (s *stage) set() *messages.InterfaceSet {
	return probe.Latest[*messages.InterfaceSet](s.Stage, address.Renderer("nat44"))
}

// health is what the healer was told last.
func (s *stage) health() *messages.Health {
	return probe.Latest[*messages.Health](s.Stage, address.Healer)
}

// named finds an interface of a set.
func named(set *messages.InterfaceSet, name string) *messages.Interface {
	for _, i := range set.GetInterfaces() {
		if i.GetName() == name {
			return i
		}
	}
	return nil
}

// nodeWith is what Kubernetes says of this node; pods are "NAME ADDRESS".
func nodeWith(pods ...string) *messages.NodeChanged {
	in := &messages.NodeInput{Self: probe.ThisNode()}
	for _, text := range pods {
		name, address, _ := strings.Cut(text, " ")
		in.Pods = append(in.Pods, probe.Pod(name, address))
	}
	return &messages.NodeChanged{Input: in}
}
