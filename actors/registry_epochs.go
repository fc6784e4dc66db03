package actors

import (
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// standing is what the registry knows of one renderer.
type standing struct {
	epoch uint64
	begun uint64 // generation of the last Begin it was sent; 0 = none
	anew  bool   // it has heard of no service in this epoch
}

// renderUp learns of a renderer and tells it what it does not know. It comes again and again; who knows everything, and
// no service that is gone, is not answered.
func (r *registry) renderUp(c *runtime.Context, m *messages.RenderUp) {
	name := m.GetRenderer()
	was := r.renderers[name]
	r.renderers[name] = standing{epoch: m.GetEpoch(), begun: was.begun, anew: m.GetBegun() == 0}
	if was.epoch != m.GetEpoch() {
		epochs := map[string]uint64{}
		for other, s := range r.renderers {
			epochs[other] = s.epoch
		}
		r.epochs = epochs
	}
	if m.GetBegun() == 0 || m.GetBegun() != was.begun || m.GetServices() > uint64(len(r.entries)) {
		r.begin(c, name)
	}
}

// beginAll renews what every renderer that is up knows.
func (r *registry) beginAll(c *runtime.Context) {
	for _, renderer := range sortedKeys(r.renderers) {
		r.begin(c, renderer)
	}
}

// begin tells a renderer the services of its epoch, and if it has heard of none the services to speak.
func (r *registry) begin(c *runtime.Context, renderer string) {
	if !r.known() || r.context == nil || !r.looked {
		return // what the services say without the addresses of VPP must not lead to a deletion; RenderUp is repeated
	}
	keys, s := r.keys(), r.renderers[renderer]
	s.begun = r.generation
	r.renderers[renderer] = s
	c.Send(c.PID(PathRenderer(renderer)), &messages.Begin{
		Epoch: s.epoch, Keys: keys, Node: r.context, Generation: s.begun, Provisional: !r.complete, NodeAddresses: r.hosts,
	})
	if !s.anew {
		return
	}
	again := &messages.Replay{Renderer: renderer, Epoch: s.epoch}
	for _, key := range keys {
		if r.entries[key].pulled || c.Incarnation() > 1 {
			c.Send(c.PID(PathService(key)), again)
		}
	}
}

// anew has every service speak once more when the source has spoken at last: what it said before came from the local mirror. The list that
// follows has a generation of its own, or a renderer that lost it could not be told from one that took it.
func (r *registry) anew() {
	if !r.mirrored {
		return
	}
	r.mirrored = false
	r.generation++
	for name, s := range r.renderers {
		s.anew = true
		r.renderers[name] = s
	}
}

// missing asks silent services again; one that has no actor any more is spawned. Who waits for a service that is gone needs a new list.
func (r *registry) missing(c *runtime.Context, m *messages.Missing) {
	if r.renderers[m.GetRenderer()].epoch != m.GetEpoch() {
		return
	}
	var known []string
	for _, key := range m.GetKeys() {
		if r.entries[key] != nil {
			known = append(known, key)
		}
	}
	if len(known) < len(m.GetKeys()) {
		r.begin(c, m.GetRenderer())
	}
	if len(known) == 0 {
		return
	}
	c.Send(c.PID(PathServices), &messages.Ensure{Keys: known})
	again := &messages.Replay{Renderer: m.GetRenderer(), Epoch: m.GetEpoch()}
	for _, key := range known {
		c.Send(c.PID(PathService(key)), again)
	}
}
