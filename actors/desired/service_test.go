package desired

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/messages"
)

// withService plays with the actor of "default/web" before it knows anything.
func withService(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, address.Service(webKey), []string{webKey}, play)
}

// specOf is a spec of "default/web".
func specOf(generation uint64, endpoints ...string) *messages.ServiceSpec {
	return &messages.ServiceSpec{
		Input: testInput("web", "10.96.0.10", generation, endpoints...), Generation: generation,
		Node: &messages.NodeContext{Node: probe.ThisNode(), Addresses: []string{"192.168.16.1"}},
	}
}

// goneSpec says that "default/web" is gone.
func goneSpec(generation uint64) *messages.ServiceSpec {
	return &messages.ServiceSpec{Input: &messages.ServiceInput{Key: webKey}, Generation: generation}
}

// rendered is the last Render that the renderer of rows was sent.
func (s *stage) rendered() *messages.Render {
	return probe.Latest[*messages.Render](s.Stage, address.Renderer("nat44"))
}

// renders counts them.
func (s *stage) renders() int {
	return len(probe.All[*messages.Render](s.Stage, address.Renderer("nat44")))
}

// answer lets every renderer acknowledge its last Render.
func (s *stage) answer(state messages.RenderState) {
	for _, renderer := range probe.Renderers {
		r := probe.Latest[*messages.Render](s.Stage, address.Renderer(renderer))
		s.Tell(&messages.RenderAck{Key: webKey, Generation: r.GetGeneration(), Hash: r.GetHash(), Renderer: renderer, State: state})
	}
}

// TestServiceAsksOnce, when it starts: the registry answers, or gives the spec when it has one.
func TestServiceAsksOnce(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(&messages.Replay{Renderer: "nat44"})
		s.Run(10 * time.Minute)
		if n := len(probe.All[*messages.PullSpec](s.Stage, address.Registry)); n != 1 || s.rendered() != nil {
			t.Errorf("asked %d times, rendered %v", n, s.rendered())
		}
	})
}

func TestServiceTakesASpec(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		for _, renderer := range probe.Renderers {
			r := probe.Latest[*messages.Render](s.Stage, address.Renderer(renderer))
			if r.GetGeneration() != 5 || len(r.GetView().GetFrontends()) != 1 || r.GetHash() == 0 {
				t.Errorf("%s was sent %v", renderer, r)
			}
		}
		if got := probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect); got.GetGeneration() != 5 || got.GetGone() {
			t.Errorf("published %v", got)
		}
		s.Forget()
		s.Tell(specOf(5, "10.1.1.2"))
		if s.rendered() != nil {
			t.Error("a repeated spec is rendered again")
		}
		s.Tell(specOf(4))
		if s.rendered() != nil {
			t.Error("an older spec was taken")
		}
	})
}

// TestServiceRendersOnce: a renderer that has a view answers whenever its state changes.
func TestServiceRendersOnce(t *testing.T) {
	for _, state := range []messages.RenderState{messages.RenderState_RENDER_PENDING, messages.RenderState_RENDER_FAILED, messages.RenderState_RENDER_IN_SYNC} {
		withService(t, func(s *stage) {
			s.Tell(specOf(5, "10.1.1.2"))
			s.Run(time.Minute)
			s.answer(state)
			s.Run(10 * time.Minute)
			if n := s.renders(); n != 1 {
				t.Errorf("%v: rendered %d times", state, n)
			}
		})
	}
}

// TestServiceKeepsItsAcknowledgements where the view does not change. The renderers still get the
// new generation: their barrier counts it.
func TestServiceKeepsItsAcknowledgements(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		hash := s.rendered().GetHash()
		s.Forget()
		same := specOf(6, "10.1.1.2")
		same.Input.Slices[0].Name = "another-name"
		s.Tell(same)
		status := probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect)
		if status.GetGeneration() != 6 || len(status.GetRenders()) != len(probe.Renderers) {
			t.Errorf("published %v", status)
		}
		if r := s.rendered(); r.GetGeneration() != 6 || r.GetHash() != hash {
			t.Errorf("rendered %v", r)
		}
		s.Forget()
		s.Run(time.Minute)
		if n := s.renders(); n != 0 {
			t.Errorf("rendered %d times more although VPP holds it", n)
		}
		s.Tell(specOf(7, "10.1.1.3"))
		status = probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect)
		if s.rendered().GetGeneration() != 7 || s.rendered().GetHash() == hash || len(status.GetRenders()) != 0 {
			t.Errorf("another view: rendered %v, published %v", s.rendered(), status)
		}
	})
}

// TestServiceRendersWhenItIsAsked: a renderer that has started asks for what its barrier waits for.
func TestServiceRendersWhenItIsAsked(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(&messages.Replay{Renderer: "nat44"})
		if s.rendered() != nil {
			t.Error("rendered without knowing")
		}
		s.Tell(specOf(5, "10.1.1.2"))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		for range 2 {
			s.Forget()
			s.Tell(&messages.Replay{Renderer: "nat44"})
			if s.rendered().GetGeneration() != 5 || s.renders() != 1 || len(s.Heard(address.Renderer("routes"))) != 0 {
				t.Errorf("rendered %v, routes got %v", s.Heard(address.Renderer("nat44")), s.Heard(address.Renderer("routes")))
			}
		}
	})
}

// TestServiceRepeatsItsStatus for a restarted introspection.
func TestServiceRepeatsItsStatus(t *testing.T) {
	for _, state := range []messages.RenderState{messages.RenderState_RENDER_IN_SYNC, messages.RenderState_RENDER_FAILED} {
		withService(t, func(s *stage) {
			s.Tell(specOf(5, "10.1.1.2"))
			var acks []any
			for _, renderer := range probe.Renderers {
				acks = append(acks, &messages.RenderAck{Key: webKey, Generation: 5, Hash: s.rendered().GetHash(), Renderer: renderer, State: state})
			}
			s.Tell(acks...)
			s.Forget()
			s.Tell(&messages.Resync{Sibling: "introspect"})
			status := probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect)
			if status.GetGeneration() != 5 || len(status.GetRenders()) != len(probe.Renderers) || s.renders() != 0 {
				t.Errorf("published %v, rendered %d times", status, s.renders())
			}
		})
	}
}

// TestServiceRendersAgainWhatWasLost: what a renderer acknowledges is compared with the present
// view.
func TestServiceRendersAgainWhatWasLost(t *testing.T) {
	for name, tc := range map[string]struct {
		generation uint64
		hash       func(own uint64) uint64
		state      messages.RenderState
		again      bool
	}{
		"another view of a later generation": {9, func(uint64) uint64 { return 1 }, messages.RenderState_RENDER_IN_SYNC, true},
		"retired though it exists":           {9, func(uint64) uint64 { return 0 }, messages.RenderState_RENDER_RETIRED, true},
		"retired with its own hash":          {5, func(own uint64) uint64 { return own }, messages.RenderState_RENDER_RETIRED, true},
		"the same view, however old":         {1, func(own uint64) uint64 { return own }, messages.RenderState_RENDER_IN_SYNC, false},
	} {
		t.Run(name, func(t *testing.T) {
			withService(t, func(s *stage) {
				s.Tell(specOf(5, "10.1.1.2"))
				hash := s.rendered().GetHash()
				s.answer(messages.RenderState_RENDER_IN_SYNC)
				s.Forget()
				s.Tell(&messages.RenderAck{Key: webKey, Generation: tc.generation, Hash: tc.hash(hash), Renderer: "nat44", State: tc.state})
				s.Run(3 * time.Second)
				if again := s.rendered() != nil; again != tc.again {
					t.Errorf("rendered again: %t, want %t", again, tc.again)
				}
			})
		})
	}
}

func TestServiceWaitsForTheAnswerToItsLatestRender(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		old := s.rendered()
		s.Tell(specOf(6, "10.1.1.3"))
		s.Tell(&messages.RenderAck{Key: webKey, Generation: 5, Hash: old.GetHash(), Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC})
		if got := probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect); len(got.GetRenders()) != 0 {
			t.Errorf("published an answer to an earlier Render: %v", got)
		}
	})
}

func TestServicePublishesEveryAnswer(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		for range 2 {
			s.answer(messages.RenderState_RENDER_IN_SYNC)
		}
		if n := len(probe.All[*messages.ServiceStatus](s.Stage, address.Introspect)); n != 1+2*len(probe.Renderers) {
			t.Errorf("published %d times, want the spec and two answers of each renderer", n)
		}
		s.Forget()
		ack := &messages.RenderAck{Key: webKey, Generation: 5, Hash: s.hash(), Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC}
		s.Tell(ack, ack)
		if n := len(probe.All[*messages.ServiceStatus](s.Stage, address.Introspect)); n != 1 {
			t.Errorf("published %d times, want once for one value", n)
		}
	})
}

// hash is the hash of the present view.
func (s *stage) hash() uint64 {
	s.Tell(&messages.Replay{Renderer: "nat44"})
	return s.rendered().GetHash()
}

func TestServiceThatIsGoneLeavesVPPFirst(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		s.Tell(goneSpec(6))
		if r := s.rendered(); r.GetView() != nil || r.GetGeneration() != 6 {
			t.Errorf("rendered %v", r)
		}
		s.answer(messages.RenderState_RENDER_PENDING)
		if probe.Latest[*messages.Retired](s.Stage, address.Registry) != nil || probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect).GetGone() {
			t.Error("retired while VPP has rows")
		}
		s.answer(messages.RenderState_RENDER_RETIRED)
		if got := probe.Latest[*messages.Retired](s.Stage, address.Registry); got.GetKey() != webKey || got.GetGeneration() != 6 {
			t.Errorf("retired: %v", got)
		}
		if !probe.Latest[*messages.ServiceStatus](s.Stage, address.Introspect).GetGone() {
			t.Error("introspection was not told")
		}
		s.Forget()
		s.Tell(goneSpec(7))
		s.answer(messages.RenderState_RENDER_RETIRED)
		if probe.Latest[*messages.Retired](s.Stage, address.Registry).GetGeneration() != 7 {
			t.Error("is not retired for the present generation")
		}
		s.Forget()
		s.Tell(specOf(8, "10.1.1.2"))
		s.Run(time.Minute)
		if len(probe.All[*messages.Retired](s.Stage, address.Registry)) != 0 || s.rendered().GetView() == nil {
			t.Error("wanted again, but goes on retiring")
		}
	})
}

func TestRestartedServiceAsksAndRendersTheSame(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		before := s.rendered()
		s.Forget()
		s.Kill()
		s.Run(3 * time.Second)
		if probe.Latest[*messages.PullSpec](s.Stage, address.Registry) == nil || s.rendered() != nil {
			t.Error("did not ask, or rendered without knowing")
		}
		s.Tell(specOf(5, "10.1.1.2"))
		if after := s.rendered(); after.GetHash() != before.GetHash() {
			t.Errorf("hash %x after, %x before", after.GetHash(), before.GetHash())
		}
	})
}

func TestServiceReportsHowLongAChangeTook(t *testing.T) {
	withService(t, func(s *stage) {
		var o latencies
		s.config.Observer = &o
		stamped := func(generation uint64, endpoint string) *messages.ServiceSpec {
			spec := specOf(generation, endpoint)
			spec.Input.Slices[0].Triggered = s.Sim.Now().UnixNano()
			return spec
		}
		s.Tell(stamped(5, "10.1.1.2"))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		s.Tell(stamped(6, "10.1.1.3"))
		s.Run(time.Second)
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		if len(o.got) != 1 || o.got[0].Latency < time.Second {
			t.Errorf("latencies %v, want one of a second", o.got)
		}
	})
}

// TestServiceRecordsATracedChange: what became of it is in the journal under the id of the change,
// in the words of an operator.
func TestServiceRecordsATracedChange(t *testing.T) {
	withService(t, func(s *stage) {
		traced := func(spec *messages.ServiceSpec) *messages.ServiceSpec { spec.Traced = true; return spec }
		s.Tell(traced(specOf(5, "10.1.1.2", "10.1.1.3")))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		s.Tell(traced(specOf(6, "10.1.1.3", "10.1.1.2")))
		s.Tell(specOf(7, "10.1.1.9"))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		s.Tell(traced(goneSpec(8)))
		s.answer(messages.RenderState_RENDER_RETIRED)
		var lines []string
		for _, e := range probe.All[*messages.Event](s.Stage, address.Journal) {
			lines = append(lines, e.GetText())
		}
		want := strings.Join([]string{
			"served at 1 frontends with 2 backends in all", "VPP holds what is wanted", "nothing that this node serves has changed",
			"nothing of it is served any more", "VPP holds what is wanted",
		}, "\n")
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("recorded\n%s\nwant\n%s", got, want)
		}
	})
}

func TestServiceIsInspected(t *testing.T) {
	withService(t, func(s *stage) {
		s.Tell(specOf(5, "10.1.1.2"))
		s.answer(messages.RenderState_RENDER_IN_SYNC)
		got, err := s.System.Inspect(t.Context(), address.Service(webKey))
		if err != nil || !strings.Contains(got, `"generation":5`) || !strings.Contains(got, "RENDER_IN_SYNC") {
			t.Errorf("%s, %v", got, err)
		}
	})
}
