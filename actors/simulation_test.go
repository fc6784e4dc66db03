package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	aclapi "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// weather is what may happen to all components while a storm lasts.
type weather struct {
	rand   *rand.Rand
	on     bool
	loss   int // one in so many messages is lost; 0 = none
	crash  int // one in so many messages kills its receiver
	deaths int
	lost   int
}

func (w *weather) strikes(oneIn int) bool { return w.on && oneIn > 0 && w.rand.IntN(oneIn) == 0 }

// unlucky is an actor in that weather.
type unlucky struct {
	runtime.Behaviour
	weather *weather
	own     string // messages of this type are its own, and do not travel
}

func (u *unlucky) Receive(c *runtime.Context, msg any) {
	kind := fmt.Sprintf("%T", msg)
	if strings.HasPrefix(kind, "*messages.") && kind != u.own && u.weather.strikes(u.weather.loss) {
		u.weather.lost++
		return
	}
	u.Behaviour.Receive(c, msg)
}

// storm lets things happen at random: to the cluster, to actors, to VPP, to messages. Which kinds
// of trouble there are, and how much of them, is a matter of the seed.
type storm struct {
	*actorstest.World
	*weather
	kinds []func()
}

func newStorm(world *actorstest.World, w *weather) *storm {
	s := &storm{World: world, weather: w}
	kinds := []func(){s.kill, s.kill, s.breakConnection, s.restartVPP, s.occupyOrGive, s.meddle}
	for _, kind := range kinds {
		if w.rand.IntN(3) > 0 {
			s.kinds = append(s.kinds, kind)
		}
	}
	return s
}

// act does one random thing, mostly a change of the cluster.
func (s *storm) act() {
	if len(s.kinds) == 0 || s.rand.IntN(3) > 0 {
		s.Source.Mutate(s.rand)
		return
	}
	s.kinds[s.rand.IntN(len(s.kinds))]()
}

// kill lets a random actor fail. Supervisors are among them, though less often: they take all their
// children along.
func (s *storm) kill() {
	alive := s.System.Snapshot()
	chosen := alive[s.rand.IntN(len(alive))]
	supervisor := map[string]bool{"root": true, "dataplane": true, "world": true}[chosen.Kind]
	if !supervisor || s.rand.IntN(4) == 0 {
		_ = s.System.Kill(chosen.Path)
	}
}

func (s *storm) breakConnection() {
	s.Stream.Cut = 1 + s.rand.IntN(12)
	s.Sim.AfterFunc(time.Duration(s.rand.IntN(3000))*time.Millisecond, s.Stream.Connect)
}

func (s *storm) restartVPP() {
	s.CrashVPP()
	s.Sim.AfterFunc(time.Duration(s.rand.IntN(3000))*time.Millisecond, s.Stream.Connect)
}

func (s *storm) occupyOrGive() {
	for k := range s.Foreign {
		s.Occupy(k, false)
		return
	}
	key, err := rule.ParseKey(fmt.Sprintf("203.0.113.%d:80/TCP", s.rand.IntN(3)))
	if err != nil {
		s.Fatal(err)
	}
	s.Occupy(key, true)
}

// meddle removes all access lists from an interface as another client, or puts one on it.
func (s *storm) meddle() {
	indexes := s.VPP.Interfaces()
	at := indexes[[]string{"uplink0", "pod2", "pod3"}[s.rand.IntN(3)]]
	set := &aclapi.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(at)}
	if s.rand.IntN(2) == 0 {
		replies, err := s.VPP.Exec(&aclapi.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "theirs", R: []acl_types.ACLRule{{IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeLast: 65535}}})
		if err != nil || len(replies) != 1 {
			s.Fatal(replies, err)
		}
		set.NInput, set.Acls = 1, []uint32{replies[0].(*aclapi.ACLAddReplaceReply).ACLIndex}
	}
	if _, err := s.VPP.Exec(set); err != nil {
		s.Fatal(err)
	}
}

// TestSimulatedStormsEndWell: after any sequence of events, VPP holds exactly the result of an
// independent computation and introspection shows exactly the existing services. No actor is left
// over, stuck, or busy.
func TestSimulatedStormsEndWell(t *testing.T) {
	n := campaign(20)
	deaths, lost := 0, 0
	for seed := range uint64(n) {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := &weather{rand: rand.New(rand.NewPCG(seed, 1))}
			w.loss, w.crash = []int{0, 0, 20, 100}[w.rand.IntN(4)], []int{0, 0, 100, 500}[w.rand.IntN(4)]
			config := actorstest.Config{Deps: w.wrap, System: w.strike}
			actorstest.Simulate(t, seed, config, func(world *actorstest.World) {
				s := newStorm(world, w)
				w.on = true
				for range 60 {
					s.act()
					s.Run(time.Duration(w.rand.IntN(600)) * time.Millisecond)
				}
				w.on = false
				s.Stream.Cut = 0
				s.Run(3 * time.Second) // VPP comes back
				s.Stream.Connect()
				s.Run(time.Second)
				s.Settle(5 * time.Minute)
				s.Run(time.Minute) // the link repeats what the sessions actor has lost
				s.Rests(3 * time.Minute)
			})
			deaths, lost = deaths+w.deaths, lost+w.lost
		})
		if !ok {
			return
		}
	}
	t.Logf("%d seeds: %d actors died of a message, %d messages were lost", n, deaths, lost)
}

// wrap lets messages to every actor be lost.
func (w *weather) wrap(d *actors.Deps) {
	d.Wrap = func(kind string, b runtime.Behaviour) runtime.Behaviour {
		return &unlucky{b, w, map[string]string{"link": "*messages.LinkState", "nodes": "*messages.ClusterState"}[kind]}
	}
}

// strike lets actors die of a message.
func (w *weather) strike(o *runtime.Options) {
	o.Faults = func(*runtime.Mailbox, any, runtime.Phase) {
		if w.strikes(2 * w.crash) {
			w.deaths++
			panic("injected")
		}
	}
}
