package sessions

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// nat44Renderer is the name of the renderer whose backends drain.
const nat44Renderer = "nat44"

// VPP stops its workers while it lists its sessions. After a look, the next one waits restFactor
// times as long as the look took, and longestRest at most. So the workers stop for one percent of
// the time. A look that took over 0.3 seconds has waited for something else, such as a VPP that
// hung. A failed look has no meaningful duration.
const (
	restFactor  = 100
	longestRest = 30 * time.Second
)

// draining looks repeatedly for the sessions of draining backends and of rows with affinity, while
// there are any.
type draining struct {
	list  *messages.Draining // nil = none received
	wish  sessions.Wish      // of the list
	turn  netip.Addr
	timed bool // a look is scheduled
	began time.Time
}

// drainingTick starts a look for draining backends.
type drainingTick struct{}

// drainingLooked is the result of a look for draining backends.
type drainingLooked struct {
	connection uint64
	of         *messages.Draining
	swept      sessions.Swept
}

// drains takes the list of draining backends. They are looked for at once, unless the last look
// was just now.
func (k *housekeeper) drains(c *runtime.Context, m *messages.Draining) {
	k.draining.list, k.draining.wish = m, wishOf(m)
	if o := k.config.Observer; o != nil {
		o.Draining(len(m.GetEndpoints()))
	}
	k.lookLater(c, 0)
}

// wishOf translates a list.
func wishOf(m *messages.Draining) sessions.Wish {
	w := sessions.Wish{Draining: endpoints(m.GetEndpoints()), Gone: map[netip.AddrPort]map[sessions.Served]bool{}, Sticky: map[sessions.Served]time.Duration{}}
	w.Blind = map[netip.Addr]bool{}
	for _, text := range m.GetBlind() {
		if addr, err := netip.ParseAddr(text); err == nil {
			w.Blind[addr] = true
		}
	}
	served := func(row string) sessions.Served {
		k, _ := rule.ParseKey(row)
		return sessions.Served{Frontend: netip.AddrPortFrom(k.Addr, k.Port), Protocol: k.Proto}
	}
	for _, g := range m.GetGone() {
		for _, at := range endpoints([]string{g.GetEndpoint()}) {
			w.Gone[at] = map[sessions.Served]bool{}
			for _, row := range g.GetRows() {
				w.Gone[at][served(row)] = true
			}
		}
	}
	for _, s := range m.GetSticky() {
		w.Sticky[served(s.GetRow())] = time.Duration(s.GetAffinitySeconds()) * time.Second
		w.Backends = append(w.Backends, endpoints(s.GetEndpoints())...)
	}
	return w
}

// endpoints parses "ip:port".
func endpoints(texts []string) (all []netip.AddrPort) {
	for _, text := range texts {
		if at, err := netip.ParseAddrPort(text); err == nil {
			all = append(all, at)
		}
	}
	return all
}

// lookLater schedules the next look, if there is something to look for.
func (k *housekeeper) lookLater(c *runtime.Context, d time.Duration) {
	if len(k.draining.list.GetEndpoints())+len(k.draining.list.GetSticky()) > 0 && !k.draining.timed {
		k.draining.timed = true
		c.After(d, &drainingTick{})
	}
}

// lookForDraining begins a look. If it cannot, it tells the renderer that time has passed.
func (k *housekeeper) lookForDraining(c *runtime.Context) {
	k.draining.timed = false
	list := k.draining.list
	if k.busy || !k.link.GetUp() {
		k.answer(c, list, nil)
		k.lookLater(c, k.settings.Soon)
		return
	}
	k.draining.began = c.Now()
	connection, caller, wish, turn := k.link.GetSession(), k.config.VPP, k.draining.wish, k.draining.turn
	wish.EndedAfter = k.settings.EndedAfter
	slice := sessions.Slice{Deletions: k.settings.Batch, Dumps: k.settings.Dumps}
	k.do(c, "session-draining", func(ctx context.Context) any {
		return &drainingLooked{connection, list, sessions.Sweep(ctx, caller, wish, turn, slice)}
	})
}

// lookedForDraining sends the result to the renderer.
func (k *housekeeper) lookedForDraining(c *runtime.Context, m *drainingLooked) {
	rest := k.settings.Soon
	if m.swept.Err == nil {
		rest = max(rest, min(restFactor*c.Now().Sub(k.draining.began), longestRest))
	}
	k.lookLater(c, rest)
	k.countDeleted(&m.swept.Freed)
	if !k.done(c, m.connection, m.swept.Err) {
		return
	}
	k.draining.turn = m.swept.Turn
	k.answer(c, m.of, m.swept.Live)
}

// answer sends the numbers of sessions to the renderer. Without numbers it only says that time has
// passed, and which list is known.
func (*housekeeper) answer(c *runtime.Context, list *messages.Draining, found map[netip.AddrPort]sessions.Live) {
	out := &messages.DrainingSessions{Generation: list.GetGeneration()}
	for at, live := range found {
		count := &messages.DrainingCount{Endpoint: at.String(), Sessions: make(map[string]uint32, len(live))}
		for to, n := range live {
			key := rule.Key{Addr: to.Frontend.Addr(), Port: to.Frontend.Port(), Proto: to.Protocol}
			count.Sessions[key.String()] = uint32(n) //nolint:gosec // VPP counts sessions in 32 bits
		}
		out.Counts = append(out.Counts, count)
	}
	slices.SortFunc(out.Counts, func(a, b *messages.DrainingCount) int { return cmp.Compare(a.GetEndpoint(), b.GetEndpoint()) })
	c.Send(c.PID(address.Renderer(nat44Renderer)), out)
}
