package nat44_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// storm changes two services that keep the same clients out all the time, and others that get in
// their way, while renderer, connection and VPP fail.
type storm struct {
	scene
	rand       *rand.Rand
	want       map[string]*messages.Render
	generation uint64
}

// rangedVIP is served for clients of 192.0.2.0/24 at most, awayVIP for clients of this node.
const rangedVIP, awayVIP = "203.0.113.200", "203.0.113.201"

var stormServices = []string{"ns/away", "ns/contender", "ns/other0", "ns/other1", "ns/other2", "ns/other3", "ns/ranged"}

// serve changes one service; nil = it is gone.
func (s *storm) serve(v *messages.ServiceView, key string) {
	s.generation++
	s.want[key] = &messages.Render{Key: key, Generation: s.generation}
	if v != nil {
		s.want[key] = rendertest.RenderMessage(s.generation, v)
	}
	s.Send(s.want[key])
}

// change changes a service at random.
func (s *storm) change() {
	backend := func(v *messages.ServiceView) *messages.ServiceView {
		for _, f := range v.Frontends {
			for _, b := range f.Backends {
				b.Address = fmt.Sprint("10.1.1.", 2+s.rand.IntN(4))
			}
		}
		return v
	}
	switch s.rand.IntN(6) {
	case 0:
		ranges := [][]string{{"192.0.2.0/24"}, {"192.0.0.0/16", "172.16.0.0/12"}, {"192.0.2.4/30"}}[s.rand.IntN(3)]
		s.serve(backend(guarded("ns/ranged", ranges, rangedVIP)), "ns/ranged")
	case 1:
		s.serve(backend(elsewhere("ns/away", awayVIP)), "ns/away")
	case 2:
		s.serve(nil, []string{"ns/ranged", "ns/away"}[s.rand.IntN(2)])
	case 3:
		// a younger service wants the same address, without ranges of its own: it must not
		// have it while the older one may
		v := guarded("ns/contender", []string{"192.0.2.0/24"}, rangedVIP, "203.0.113.9")
		v.Created = 1000
		s.serve(backend(v), "ns/contender")
	default:
		key := fmt.Sprint("ns/other", s.rand.IntN(4))
		s.serve(backend(rendertest.Forwarding(key, int64(s.rand.IntN(3)), fmt.Sprint("10.96.0.", s.rand.IntN(5)), fmt.Sprint("203.0.113.", s.rand.IntN(3)))), key)
	}
}

// recover passes on the present connection and interfaces, the list of services, and what each of
// them wants.
func (s *storm) recover() {
	s.generation++
	begin := &messages.Begin{Generation: s.generation, Node: &messages.NodeContext{Node: probe.ThisNode()}}
	keys := slices.Clone(stormServices)
	for _, key := range keys {
		if m := s.want[key]; m.GetView() != nil {
			begin.Keys, begin.Generations = append(begin.Keys, key), append(begin.Generations, m.GetGeneration())
		}
	}
	s.Send(begin)
	s.rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys {
		if m := s.want[key]; m != nil {
			s.Send(m)
			s.Run(time.Duration(s.rand.IntN(30)) * time.Microsecond)
		}
	}
}

// trouble is what may happen without another client touching access lists.
func (s *storm) trouble() {
	switch s.rand.IntN(8) {
	case 0:
		s.Kill()
		s.Connected()
		s.Found(s.generation + 1)
		s.recover()
	case 1:
		s.VPP.Cut = 1 + s.rand.IntN(20)
	case 2:
		s.Crash()
		s.Connected()
	case 3:
		s.RefuseAfter(s.rand.IntN(10), &link.RetvalError{Message: "m", Retval: -1})
	case 4:
		s.Refuse = nil
	case 5:
		s.Send(&messages.Verify{Reason: "test", Routine: s.rand.IntN(2) == 0})
	}
	if s.rand.IntN(2) == 0 && s.VPP.Boot() == "" {
		s.VPP.Cut = 0
		s.generation++
		s.Reconnect(s.generation)
	}
}

// TestNoClientIsEverLetIn: whatever happens to services, renderer, connection and VPP, after no
// message to VPP is a client translated that a service keeps out all the time.
func TestNoClientIsEverLetIn(t *testing.T) {
	looks, inside := 0, 0
	const seeds = 30
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			withServices(t, stormServices, func(sc scene) {
				s := &storm{scene: sc, rand: rand.New(rand.NewPCG(seed, 4)), want: map[string]*messages.Render{}}
				s.generation = 10
				s.VPP.After = func(req api.Message) {
					looks++
					if translated(s.VPP.VPP, "uplink0", "192.0.2.5", rangedVIP) {
						inside++
					}
					for _, c := range [][3]string{
						{"uplink0", "198.51.100.7", rangedVIP}, {"pod2", "10.1.1.2", rangedVIP}, {"uplink0", "192.0.2.5", awayVIP},
					} {
						if translated(s.VPP.VPP, c[0], c[1], c[2]) {
							t.Errorf("%v let in after %s %+v\n%s", c, req.GetMessageName(), req, s.VPP.VPP.State())
						}
					}
				}
				s.recover()
				for range 60 {
					s.change()
					s.trouble()
					s.Run(time.Duration(s.rand.IntN(600)) * []time.Duration{time.Microsecond, time.Millisecond}[s.rand.IntN(2)])
				}
				s.Refuse, s.VPP.Cut = nil, 0
				s.Connected()
				s.generation++
				s.Reconnect(s.generation)
				s.recover()
				s.Run(2 * time.Minute)
				for key, m := range s.want {
					ack, want := s.Ack(key), rendertest.InSync
					if m.GetView() == nil {
						want = rendertest.Retired
					}
					if ack.GetState() != want || ack.GetGeneration() != m.GetGeneration() {
						t.Errorf("%s was acknowledged %v", key, ack)
					}
				}
				if !s.Health().GetOk() {
					t.Errorf("in the end: %v", s.Health())
				}
			})
		})
	}
	t.Logf("looked after %d messages; a client that may was translated %d times", looks, inside)
	if inside == 0 || looks < 100*seeds {
		t.Errorf("%d looks, %d translated: this test has not looked", looks, inside)
	}
}
