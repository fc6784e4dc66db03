package render

import (
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// largeView is the number of frontends and backends above which a view waits for its turn.
const largeView = 4096

// nextView is the message that adopts the next large view.
type nextView struct{}

// views are the large views that wait. Planning one takes long, so each has a message of its own,
// and small views and results of batches come between. The zero value is empty.
type views struct {
	waiting map[string]*messages.Render // by service, the last one of each
	turns   turns[string]
}

// postpone queues a view that takes long to plan, and reports whether it did. A service with a view
// in the queue keeps its place with the new view.
func (d *Driver[K]) postpone(c *runtime.Context, m *messages.Render) bool {
	key, s, v := m.GetKey(), d.subscribers[m.GetKey()], &d.views
	switch {
	case v.waiting[key] != nil:
		v.waiting[key] = m
		return true
	case s != nil && s.hash == m.GetHash() || !isLarge(m.GetView()) && (s == nil || !isLarge(s.view)):
		return false
	case v.waiting == nil:
		v.waiting = map[string]*messages.Render{}
	}
	if len(v.waiting) == 0 {
		c.Post()(&nextView{})
	}
	v.waiting[key] = m
	v.turns.push(key, key)
	return true
}

// adoptNext adopts one large view. The next one waits for another message.
func (d *Driver[K]) adoptNext(c *runtime.Context) {
	d.adoptView(c)
	if len(d.views.waiting) > 0 {
		c.Post()(&nextView{})
	}
}

// adoptAll adopts all large views: a list of services relies on the views before it.
func (d *Driver[K]) adoptAll(c *runtime.Context) {
	for len(d.views.waiting) > 0 {
		d.adoptView(c)
	}
}

func (d *Driver[K]) adoptView(c *runtime.Context) {
	keys, _, _ := d.views.turns.turn(1, func(string) int { return 1 })
	for _, key := range keys { // empty if adoptAll was faster
		m := d.views.waiting[key]
		delete(d.views.waiting, key)
		d.render(c, m)
	}
}

// isLarge reports whether a view takes long to plan.
func isLarge(view *messages.ServiceView) bool {
	n := len(view.GetFrontends())
	for _, f := range view.GetFrontends() {
		if n += len(f.GetBackends()); n > largeView {
			return true
		}
	}
	return n > largeView
}
