package actors

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	aclapi "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// weather is what may happen to everybody while a storm lasts.
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

// storm lets things happen at random: to the cluster, to actors, to VPP, to messages. Which kinds of trouble there are, and how much of
// them, is a matter of the seed.
type storm struct {
	*house
	*weather
	kinds []func()
}

func newStorm(h *house, w *weather) *storm {
	s := &storm{house: h, weather: w}
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
		s.cluster.mutate(s.rand)
		return
	}
	s.kinds[s.rand.IntN(len(s.kinds))]()
}

// kill lets a random actor fail. Supervisors are among them, though less often: they take everybody along.
func (s *storm) kill() {
	alive := s.sys.Snapshot()
	victim := alive[s.rand.IntN(len(alive))]
	supervisor := map[string]bool{"root": true, "dataplane": true, "world": true}[victim.Kind]
	if !supervisor || s.rand.IntN(4) == 0 {
		_ = s.sys.Kill(victim.Path)
	}
}

func (s *storm) breakConnection() {
	s.wire.breakAfter(1 + s.rand.IntN(12))
	s.sim.AfterFunc(time.Duration(s.rand.IntN(3000))*time.Millisecond, s.wire.connect)
}

func (s *storm) restartVPP() {
	s.wire.crash()
	clear(s.foreign)
	s.sim.AfterFunc(time.Duration(s.rand.IntN(3000))*time.Millisecond, s.wire.connect)
}

func (s *storm) occupyOrGive() {
	for k := range s.foreign {
		s.occupy(k, false)
		return
	}
	key, err := frontend.ParseKey(fmt.Sprintf("203.0.113.%d:80/TCP", s.rand.IntN(3)))
	if err != nil {
		s.Fatal(err)
	}
	s.occupy(key, true)
}

// meddle lets somebody take all access lists from an interface, or put one of his own on it.
func (s *storm) meddle() {
	indexes := s.wire.vpp.Interfaces()
	at := indexes[[]string{"uplink0", "pod2", "pod3"}[s.rand.IntN(3)]]
	set := &aclapi.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(at)}
	if s.rand.IntN(2) == 0 {
		replies, err := s.wire.vpp.Exec(&aclapi.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "theirs", R: []acl_types.ACLRule{{IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeLast: 65535}}})
		if err != nil || len(replies) != 1 {
			s.Fatal(replies, err)
		}
		set.NInput, set.Acls = 1, []uint32{replies[0].(*aclapi.ACLAddReplaceReply).ACLIndex}
	}
	if _, err := s.wire.vpp.Exec(set); err != nil {
		s.Fatal(err)
	}
}

// TestSimulatedStormsEndWell: whatever happens, when it is over VPP holds exactly what an independent computation says, introspection shows
// exactly the services there are, no actor is left over or stuck, and nobody does anything any more.
func TestSimulatedStormsEndWell(t *testing.T) {
	n := campaign(60)
	deaths, lost := 0, 0
	for seed := range uint64(n) {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := &weather{rand: rand.New(rand.NewPCG(seed, 1))}
			w.loss, w.crash = []int{0, 0, 20, 100}[w.rand.IntN(4)], []int{0, 0, 100, 500}[w.rand.IntN(4)]
			inHouse(t, seed, func(h *house, o *runtime.Options) { w.blow(h, o) }, func(h *house) {
				s := newStorm(h, w)
				w.on = true
				for range 60 {
					s.act()
					h.run(time.Duration(w.rand.IntN(600)) * time.Millisecond)
				}
				w.on = false
				h.wire.breakAfter(0)
				h.run(3 * time.Second) // VPP comes back
				h.wire.connect()
				h.run(time.Second)
				h.settle(5 * time.Minute)
				h.quiet()
			})
			deaths, lost = deaths+w.deaths, lost+w.lost
		})
		if !ok {
			return
		}
	}
	t.Logf("%d seeds: %d actors died of a message, %d messages were lost", n, deaths, lost)
}

// blow brings the weather into a house.
func (w *weather) blow(h *house, o *runtime.Options) {
	h.deps.wrap = func(kind string, b runtime.Behaviour) runtime.Behaviour {
		return &unlucky{b, w, map[string]string{"link": "*messages.LinkState", "nodes": "*messages.ClusterState"}[kind]}
	}
	o.Faults = func(*runtime.Mailbox, any, runtime.Phase) {
		if w.strikes(2 * w.crash) {
			w.deaths++
			panic("lightning")
		}
	}
}
