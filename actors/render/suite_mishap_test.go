package render_test

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
)

// mishap is a fault of one message to the renderer.
type mishap struct {
	message string // its type
	nth     int    // which one of the type, from 1
	kind    string
	struck  bool
}

// mishaps are the things that may happen to a message.
var mishaps = []string{
	"twice",        // it arrives once more
	"crash before", // the renderer crashes when it takes it
	"crash after",  // the renderer crashes when it has handled it and sent everything
}

// troupe plays what the other actors do for a renderer: they answer its questions.
type troupe struct {
	*scene
	// last of each service; of one that is gone until it is acknowledged
	want       map[string]*messages.Render
	generation uint64
	interfaces uint64
	answered   map[string]int // messages that an actor has answered, by path
	seen       map[string]int // messages that the renderer has received, by type
}

// newTroupe makes the mishap happen.
func newTroupe(s *scene, m *mishap) *troupe {
	r := &troupe{scene: s, want: map[string]*messages.Render{}, interfaces: 1, answered: map[string]int{}, seen: map[string]int{}}
	s.Before = func(msg any, handle func(any)) {
		name := strings.TrimPrefix(fmt.Sprintf("%T", msg), "*messages.")
		if strings.Contains(name, ".") {
			handle(msg) // timers and results of its own work do not travel
			return
		}
		r.seen[name]++
		if m.struck || name != m.message || r.seen[name] != m.nth {
			handle(msg)
			return
		}
		m.struck = true
		switch m.kind {
		case "twice":
			handle(msg)
			handle(msg)
		case "crash before":
			panic("mishap")
		case "crash after":
			handle(msg)
			panic("mishap")
		}
	}
	return r
}

// serve changes what a service wants; without addresses it is gone.
func (r *troupe) serve(key string, addresses ...string) {
	r.generation++
	r.want[key] = &messages.Render{Key: key, Generation: r.generation}
	if len(addresses) > 0 {
		r.want[key] = rendertest.RenderMessage(r.generation, r.view(key, int64(len(key)), addresses...))
	}
	r.Tell(r.want[key])
	r.attend()
}

// list is the list of services, as the registry would send it.
func (r *troupe) list() {
	r.generation++
	m := &messages.Begin{Generation: r.generation, Node: &messages.NodeContext{Node: probe.ThisNode()}}
	for _, key := range slices.Sorted(maps.Keys(r.want)) {
		if r.Ack(key).GetState() != rendertest.Retired { // one that is gone is listed until then
			m.Keys, m.Generations = append(m.Keys, key), append(m.Generations, r.want[key].GetGeneration())
		}
	}
	r.Tell(m)
}

// pass passes some time in which the other actors answer.
func (r *troupe) pass(d time.Duration) {
	for range d / (100 * time.Millisecond) {
		r.Run(100 * time.Millisecond)
		r.attend()
	}
}

// attend answers what the renderer has asked for.
func (r *troupe) attend() {
	for _, ask := range []struct {
		path   string
		asked  int
		answer func()
	}{
		{address.Link, len(probe.All[*messages.Resync](r, address.Link)), r.Connected},
		{address.Interfaces, len(probe.All[*messages.Resync](r, address.Interfaces)), func() { r.Found(r.interfaces) }},
		{address.Registry, len(probe.All[*messages.RenderUp](r, address.Registry)), func() { r.list() }},
	} {
		if ask.asked > r.answered[ask.path] {
			r.answered[ask.path] = ask.asked
			ask.answer()
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.want)) {
		path := address.Service(key)
		if asked := len(probe.All[*messages.Replay](r, path)); asked > r.answered[path] {
			r.answered[path] = asked
			r.Tell(r.want[key])
		}
	}
}

// life is everything that happens to a renderer in this test: each type of message comes at least
// once.
func (r *troupe) life() {
	r.list()
	r.serve("a/a", "10.0.0.1", "10.0.0.2")
	r.serve("b/b", "10.0.0.2", "10.0.0.3")
	r.serve("c/c", "10.0.0.4")
	r.Tell(&messages.Verify{Reason: "drift check", Routine: true})
	r.outside(r.remove, "10.0.0.1")
	r.Tell(&messages.Verify{Reason: "test"})
	r.serve("a/a", "10.0.0.1", "10.0.0.5")
	r.serve("c/c")
	r.list()
	r.pass(time.Second)
	r.Kill()
	r.attend()
	r.serve("b/b", "10.0.0.3")
	r.Tell(&messages.Resync{Sibling: "link"})
	r.VPP.Disconnect("connection lost")
	r.Connected()
	r.serve("a/a", "10.0.0.6")
	r.VPP.Connect()
	r.Connected()
	r.pass(time.Second)
	r.Crash()
	r.Connected()
	r.serve("b/b", "10.0.0.3", "10.0.0.7")
	r.VPP.Connect()
	r.Connected()
	r.interfaces++
	r.Found(r.interfaces)
	r.pass(3 * time.Second)
}

// rest passes the time that the renderer needs, and forgets retired services.
func (r *troupe) rest() {
	r.pass(6 * time.Second)
	maps.DeleteFunc(r.want, func(key string, _ *messages.Render) bool { return r.Ack(key).GetState() == rendertest.Retired })
}

// settled fails the test where VPP does not hold what is wanted, a service does not know that, or
// work is left.
func (r *troupe) settled() {
	r.Helper()
	want := map[string]bool{}
	for key, render := range r.want {
		for _, f := range render.GetView().GetFrontends() {
			want[f.GetAddress()] = true
		}
		if ack := r.Ack(key); ack.GetState() != rendertest.InSync || ack.GetGeneration() != render.GetGeneration() {
			r.Errorf("%s wants generation %d and was acknowledged %v", key, render.GetGeneration(), ack)
		}
	}
	addresses := slices.SortedFunc(maps.Keys(want), func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	r.expect("in the end", addresses...)
	if !r.Health().GetOk() {
		r.Errorf("health %v", r.Health())
	}
	writes, reads := r.cost(func() { r.pass(time.Minute) })
	if d := r.Ask(&render.DiffQuery{}).(*render.DiffPage); writes+reads != 0 || d.Err != nil || len(d.Operations) != 0 {
		r.Errorf("%d writes and %d reads when all is done, diff %+v", writes, reads, d)
	}
}

var mishapsOf = flag.Int("mishaps-of", 1, "number of messages of each type that TestDriverSurvivesMishaps strikes one by one; CI strikes all")

// TestDriverSurvivesMishaps takes one message of every type after the other, and repeats it, or has
// the renderer crash of it. Soon VPP holds what it should, every service knows it, and no work is
// left.
func TestDriverSurvivesMishaps(t *testing.T) {
	services := []string{"a/a", "b/b", "c/c"}
	for _, sub := range subjects() {
		t.Run(sub.name, func(t *testing.T) {
			var seen map[string]int
			sub.play(t, services, func(s *scene) {
				r := newTroupe(s, &mishap{})
				r.life()
				r.rest()
				r.settled()
				seen = r.seen
			})
			for _, name := range []string{"Begin", "InterfaceSet", "LinkState", "Render", "Resync", "Verify"} {
				if seen[name] == 0 {
					t.Errorf("%s never comes: %v", name, seen)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(seen)) {
				for nth := 1; nth <= min(seen[name], *mishapsOf); nth++ {
					for _, kind := range mishaps {
						t.Run(fmt.Sprintf("%s %d %s", name, nth, kind), func(t *testing.T) {
							sub.play(t, services, func(s *scene) {
								r := newTroupe(s, &mishap{message: name, nth: nth, kind: kind})
								r.life()
								r.rest()
								r.settled()
							})
						})
					}
				}
			}
		})
	}
}
