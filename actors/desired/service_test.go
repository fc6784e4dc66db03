package desired

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

const webKey = "default/web"

// withService plays the actor of "default/web" before it knows anything.
func withService(t *testing.T, play func(s *stage)) {
	t.Helper()
	perform(t, PathService(webKey), []string{webKey}, play)
}

// specOf is a spec of "default/web".
func specOf(generation uint64, endpoints ...string) *messages.ServiceSpec {
	return &messages.ServiceSpec{
		Input: testInput("web", "10.96.0.10", generation, endpoints...), Generation: generation, Epochs: map[string]uint64{"nat44": 1},
		Node: &messages.NodeContext{Node: testNodeObject(), Addresses: []string{"192.168.16.1"}},
	}
}

// goneSpec says that "default/web" is gone.
func goneSpec(generation uint64) *messages.ServiceSpec {
	return &messages.ServiceSpec{Input: &messages.ServiceInput{Key: webKey}, Generation: generation, Epochs: map[string]uint64{"nat44": 1}}
}

// word is the last Render that the renderer was sent.
func (s *stage) word() *messages.Render { return latest[*messages.Render](s, PathRenderer("nat44")) }

// answerWord lets every renderer answer its last Render.
func (s *stage) answerWord(state messages.RenderState) {
	for _, renderer := range Renderers() {
		w := latest[*messages.Render](s, PathRenderer(renderer))
		s.tell(&messages.RenderAck{Key: webKey, Generation: w.GetGeneration(), Hash: w.GetHash(), Renderer: renderer, State: state})
	}
}

func TestServiceAsksUntilItIsAnswered(t *testing.T) {
	withService(t, func(s *stage) {
		s.run(10 * time.Minute)
		if n := len(all[*messages.PullSpec](s, PathRegistry)); n < 8 || n > 24 {
			t.Errorf("asked %d times in ten minutes, want a patience that grows to a minute", n)
		}
		s.forget()
		for range 200 { // being asked for an answer does not keep it from asking
			s.tell(&messages.Replay{Renderer: "nat44", Epoch: 1})
			s.run(time.Second)
		}
		if len(all[*messages.PullSpec](s, PathRegistry)) == 0 || s.word() != nil {
			t.Error("stopped asking, or spoke without knowing")
		}
		s.tell(specOf(1))
		s.forget()
		s.run(10 * time.Minute)
		if n := len(all[*messages.PullSpec](s, PathRegistry)); n != 0 {
			t.Errorf("asked %d times after it was answered", n)
		}
	})
}

func TestServiceTakesASpecAndSaysSo(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		if got := latest[*messages.Have](s, PathRegistry); got.GetKey() != webKey || got.GetGeneration() != 5 {
			t.Errorf("acknowledged %v", got)
		}
		if w := s.word(); w.GetGeneration() != 5 || w.GetEpoch() != 1 || len(w.GetView().GetFrontends()) != 1 || w.GetHash() == 0 {
			t.Errorf("rendered %v", w)
		}
		if got := latest[*messages.ServiceStatus](s, PathIntrospect); got.GetGeneration() != 5 || got.GetGone() {
			t.Errorf("published %v", got)
		}
		s.forget()
		s.tell(specOf(5, "10.1.1.2"))
		if latest[*messages.Have](s, PathRegistry) == nil {
			t.Error("a repeated spec is not acknowledged again")
		}
		s.tell(specOf(4))
		if got := latest[*messages.Have](s, PathRegistry); got.GetGeneration() == 4 {
			t.Error("an older spec was taken")
		}
	})
}

func TestServiceRepeatsItsWordUntilItIsInVPP(t *testing.T) {
	for name, tc := range map[string]struct {
		state  messages.RenderState
		repeat bool
	}{
		"pending": {messages.RenderState_RENDER_PENDING, true}, // the answer that it is done may be lost
		"failed":  {messages.RenderState_RENDER_FAILED, true},
		"in sync": {messages.RenderState_RENDER_IN_SYNC, false},
	} {
		t.Run(name, func(t *testing.T) {
			withService(t, func(s *stage) {
				s.tell(specOf(5, "10.1.1.2"))
				s.run(10 * time.Second)
				if n := len(all[*messages.Render](s, PathRenderer("nat44"))); n < 3 || n > 6 {
					t.Errorf("unanswered, said %d times in 10 s", n)
				}
				s.answerWord(tc.state)
				s.forget()
				s.run(10 * time.Minute)
				n := len(all[*messages.Render](s, PathRenderer("nat44")))
				if !tc.repeat && n > 0 || tc.repeat && (n < 8 || n > 24) {
					t.Errorf("said %d times in ten minutes, want repetition: %t", n, tc.repeat)
				}
			})
		})
	}
}

func TestServiceIsQuietAboutWhatChangesNothing(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		s.answerWord(messages.RenderState_RENDER_IN_SYNC)
		s.forget()
		same := specOf(6, "10.1.1.2")
		same.Input.Slices[0].Name = "another-name"
		s.tell(same)
		if latest[*messages.Have](s, PathRegistry).GetGeneration() != 6 || s.word() != nil || latest[*messages.ServiceStatus](s, PathIntrospect).GetGeneration() != 6 {
			t.Errorf("heard: %v", s.heard)
		}
		s.tell(specOf(7, "10.1.1.3"))
		if s.word().GetGeneration() != 7 {
			t.Error("a real change was not rendered")
		}
	})
}

func TestServiceSpeaksForEveryEpoch(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		s.answerWord(messages.RenderState_RENDER_IN_SYNC)
		s.forget()
		for _, step := range []struct {
			name  string
			msg   any
			epoch uint64 // 0 = nothing is said
		}{
			{"a new epoch", &messages.Replay{Renderer: "nat44", Epoch: 3}, 3},
			{"the same again", &messages.Replay{Renderer: "nat44", Epoch: 3}, 3},
			{"an epoch that is over", &messages.Replay{Renderer: "nat44", Epoch: 2}, 0},
			{"an unknown renderer", &messages.Replay{Renderer: "cnat", Epoch: 9}, 0},
			{"the registry mentions a newer one", func() any {
				again := specOf(5, "10.1.1.2")
				again.Epochs["nat44"] = 4
				return again
			}(), 4},
		} {
			s.forget()
			s.tell(step.msg)
			if got := s.word(); got.GetEpoch() != step.epoch {
				t.Errorf("%s: said %v, want epoch %d", step.name, got, step.epoch)
			}
		}
	})
}

// TestServiceSpeaksAgainWhenTheRendererHasLostIt: what the renderer answers is compared with what is wanted.
func TestServiceSpeaksAgainWhenTheRendererHasLostIt(t *testing.T) {
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
				s.tell(specOf(5, "10.1.1.2"))
				hash := s.word().GetHash()
				s.answerWord(messages.RenderState_RENDER_IN_SYNC)
				s.forget()
				s.tell(&messages.RenderAck{Key: webKey, Generation: tc.generation, Hash: tc.hash(hash), Renderer: "nat44", State: tc.state})
				s.run(3 * time.Second)
				if again := s.word() != nil; again != tc.again {
					t.Errorf("spoke again: %t, want %t", again, tc.again)
				}
			})
		})
	}
}

func TestServiceWaitsForTheAnswerToItsLatestWord(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		old := s.word()
		s.tell(specOf(6, "10.1.1.3"))
		s.tell(&messages.RenderAck{Key: webKey, Generation: 5, Hash: old.GetHash(), Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC})
		if got := latest[*messages.ServiceStatus](s, PathIntrospect); len(got.GetRenders()) != 0 {
			t.Errorf("published an answer to an earlier word: %v", got)
		}
		s.forget()
		s.run(3 * time.Second)
		if s.word().GetGeneration() != 6 {
			t.Error("the latest word is not repeated")
		}
	})
}

func TestServicePublishesEveryAnswer(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		for range 2 { // the second one is the same: introspection may have missed the first
			s.answerWord(messages.RenderState_RENDER_IN_SYNC)
		}
		if n := len(all[*messages.ServiceStatus](s, PathIntrospect)); n != 1+2*len(Renderers()) {
			t.Errorf("published %d times, want the spec and two answers of each renderer", n)
		}
		s.tell(&messages.Resync{Sibling: "introspect"})
		if n := len(all[*messages.ServiceStatus](s, PathIntrospect)); n != 2+2*len(Renderers()) {
			t.Errorf("published %d times, want once more for a new introspection", n)
		}
	})
}

func TestServiceThatIsGoneLeavesVPPFirst(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		s.answerWord(messages.RenderState_RENDER_IN_SYNC)
		s.tell(goneSpec(6))
		if w := s.word(); w.GetView() != nil || w.GetGeneration() != 6 {
			t.Errorf("said %v", w)
		}
		s.answerWord(messages.RenderState_RENDER_PENDING)
		if latest[*messages.Retired](s, PathRegistry) != nil || latest[*messages.ServiceStatus](s, PathIntrospect).GetGone() {
			t.Error("retired while VPP has rows")
		}
		s.answerWord(messages.RenderState_RENDER_RETIRED)
		if got := latest[*messages.Retired](s, PathRegistry); got.GetKey() != webKey || got.GetGeneration() != 6 {
			t.Errorf("retired: %v", got)
		}
		if !latest[*messages.ServiceStatus](s, PathIntrospect).GetGone() {
			t.Error("introspection was not told")
		}
		s.forget()
		s.run(10 * time.Second)
		if len(all[*messages.Retired](s, PathRegistry)) == 0 {
			t.Error("does not insist on being released")
		}
		s.forget()
		s.tell(goneSpec(7))
		if latest[*messages.Retired](s, PathRegistry).GetGeneration() != 7 {
			t.Error("is not retired for the present generation")
		}
		s.tell(specOf(8, "10.1.1.2"))
		s.forget()
		s.run(time.Minute)
		if len(all[*messages.Retired](s, PathRegistry)) != 0 || s.word().GetView() == nil {
			t.Error("wanted again, but goes on retiring")
		}
	})
}

func TestRestartedServiceAsksAndSaysTheSame(t *testing.T) {
	withService(t, func(s *stage) {
		s.tell(specOf(5, "10.1.1.2"))
		before := s.word()
		s.kill()
		s.forget()
		s.run(3 * time.Second)
		if latest[*messages.PullSpec](s, PathRegistry) == nil || s.word() != nil {
			t.Error("did not ask, or spoke without knowing")
		}
		s.tell(specOf(5, "10.1.1.2"))
		if after := s.word(); after.GetHash() != before.GetHash() {
			t.Errorf("hash %x after, %x before", after.GetHash(), before.GetHash())
		}
	})
}

func TestServiceReportsHowLongAChangeTook(t *testing.T) {
	withService(t, func(s *stage) {
		var o latencies
		s.deps.Observer = &o
		stamped := func(generation uint64, endpoint string) *messages.ServiceSpec {
			spec := specOf(generation, endpoint)
			spec.Input.Slices[0].Triggered = time.Now().UnixNano()
			return spec
		}
		s.tell(stamped(5, "10.1.1.2"))
		s.answerWord(messages.RenderState_RENDER_IN_SYNC)
		s.tell(stamped(6, "10.1.1.3"))
		s.run(time.Second)
		s.answerWord(messages.RenderState_RENDER_IN_SYNC)
		if len(o.got) != 1 || o.got[0] < time.Second {
			t.Errorf("latencies %v, want one of a second", o.got)
		}
	})
}
