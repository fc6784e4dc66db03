package actors

import (
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// batchRoutes is how many routes are brought to VPP in one batch.
const batchRoutes = 1024

// refuser makes VPP refuse or drop what no row serves, by routes of our own FIB sources (vpp/routes). It works as the nat44 renderer does,
// but for one thing: a wrong route cuts somebody off, a missing one only lets a client wait. So before the barrier it only adds what nobody
// can object to, and nothing at all before it knows where nodes and VPP itself are.
type refuser struct {
	reporter
	enrolment
	outlet
	*routebook

	set    *messages.InterfaceSet
	have   *routes.State // last known; nil = none of this VPP
	sure   bool          // it is what VPP holds
	swept  bool          // since the last read: the barrier has been passed and the leftovers of earlier runs were put on the list
	opened bool          // the barrier has been passed once
	work   *routeWork    // under way
}

// routeWork is one read or one batch.
type routeWork struct {
	session  uint64
	prefixes []netip.Prefix
	ops      []routes.Op
	began    time.Time
	reason   string // of a read
}

// routesRead and routesApplied are the results of work.
type (
	routesRead struct {
		*routeWork
		state *routes.State
		err   error
	}
	routesApplied struct {
		*routeWork
		results []routes.OpResult
	}
)

func newRefuser(d *Deps) runtime.Behaviour {
	r := &refuser{reporter: reporter{part: "routes"}, outlet: newOutlet(d, "routes"), routebook: newRoutebook(d.Routes, d.Serving.ServiceCIDRs)}
	r.enrolment = newEnrolment("routes", r)
	return r
}

// Start satisfies runtime.Behaviour.
func (r *refuser) Start(c *runtime.Context) {
	r.enrol(c)
	r.health(c)
	r.tick(c)
	r.keep(c)
	c.Ready()
}

// Stop satisfies runtime.Behaviour: VPP keeps what it has.
func (*refuser) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (r *refuser) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.Render:
		r.render(c, m)
	case *messages.Begin:
		if r.renews(m) {
			r.begin(c, m)
			r.settle(c)
		}
	case *messages.LinkState:
		r.connection(m)
		r.settle(c)
	case *messages.InterfaceSet:
		if m.GetGeneration() > r.set.GetGeneration() {
			r.set = m
			r.settle(c)
		}
	case *messages.Verify:
		r.asked(m)
	case *messages.Resync:
		r.resync(c, m)
	case *routesRead:
		r.read(c, m)
	case *routesApplied:
		r.applied(c, m)
	case *rendererTick:
		r.tick(c)
	case *vigilTick: // the next look at VPP is due
	case *probeTick:
		r.tryAgain(c)
	case *healthBeat:
		r.keep(c)
		r.repeat(c)
		return
	case *DiffQuery:
		r.diff(c)
		return
	case *diffDone:
		c.Send(m.to, m.page)
		return
	}
	r.pump(c)
	r.health(c)
}

// adopt changes what a service wants.
func (r *refuser) adopt(c *runtime.Context, key string, generation, hash uint64, view *messages.ServiceView) {
	names := r.put(key, generation, hash, view)
	if r.sure && r.work == nil {
		for _, p := range r.prefixes(key) {
			if _, dirty := r.dirty[p]; dirty && r.asWanted(p) {
				r.clean(p)
			}
		}
	}
	for _, name := range names {
		r.answer(c, name)
	}
}

// standing describes what became of a service in VPP, as far as it is known.
func (r *refuser) standing(key string) *messages.RenderAck { return r.ack(r.name, key, r.sure) }

// asWanted reports whether VPP holds of a prefix what it should. What VPP holds must be known.
func (r *refuser) asWanted(p netip.Prefix) bool {
	return r.none || len(routes.Diff(r.have.Only(p), r.wanted(p), true)) == 0
}

// connection forgets what VPP holds when it is another VPP, and doubts it when it is another connection.
func (r *refuser) connection(m *messages.LinkState) {
	gone, reborn := r.linkChanged(m)
	if gone {
		r.sure = false
	}
	if reborn {
		r.have, r.none = nil, false
		r.forgiveAll()
	}
}

// settle works out which addresses are those of hosts.
func (r *refuser) settle(c *runtime.Context) {
	if !r.grounded() {
		return
	}
	ground := routes.Ground{Taken: map[netip.Addr]bool{}}
	for _, text := range slices.Concat(r.begun.GetNodeAddresses(), r.begun.GetNode().GetAddresses()) {
		if a, err := netip.ParseAddr(text); err == nil {
			ground.Taken[a.Unmap()] = true
		}
	}
	for _, i := range r.set.GetInterfaces() {
		for _, text := range i.GetAddresses() {
			if p, err := netip.ParsePrefix(text); err == nil {
				ground.Taken[p.Addr()] = true
				ground.Connected = append(ground.Connected, p.Masked())
			}
		}
	}
	for _, name := range r.resettle(ground) {
		r.answer(c, name)
	}
}

// located reports whether the interfaces of this VPP are known.
func (r *refuser) located() bool { return r.set != nil && r.set.GetBoot() == r.link.GetBoot() }

// grounded reports whether it is known where hosts are.
func (r *refuser) grounded() bool { return r.located() && r.begun != nil }

// tick repeats and retries.
func (r *refuser) tick(c *runtime.Context) {
	c.After(r.deps.Timing.Retry, &rendererTick{})
	r.remind(c)
	r.retry(c.Now())
	r.cause = "" // the numbers in the reason may have changed
}

// tryAgain tries what VPP refused: what is due, and one of each kind that is not.
func (r *refuser) tryAgain(c *runtime.Context) {
	r.probing = false
	r.retry(c.Now())
	r.probe()
	r.probeLater(c, len(r.failed) > 0)
}

// health tells whether VPP refuses what it should, and if not why.
func (r *refuser) health(c *runtime.Context) {
	if r.rests() {
		r.damaged, r.once = false, r.once || r.opened
		if !r.unread {
			r.accepted() // what was refused is not wanted any more
		}
		if r.grounded() {
			r.interfaces = r.set.GetGeneration()
		}
	}
	warning := ""
	switch mirrored := r.begun.GetProvisional(); {
	case r.none:
		warning = routes.ErrUnsupported.Error() + ": nothing is refused"
	case mirrored:
		warning = causeMirror
	case r.fromMirror():
		r.cause = "" // the warning has to go
	}
	r.diagnose(c, r.ails(), warning, r.epoch)
}

// fromMirror reports whether we were last in sync with what the local mirror says, and not with the cluster.
func (r *refuser) fromMirror() bool { return r.last.GetReason() == causeMirror }

// rests reports whether nothing is left to do. On a provisional list what waits for the source to speak does not count.
func (r *refuser) rests() bool {
	return r.pending() == 0 || r.begun.GetProvisional() && r.sure && r.work == nil && len(r.queue) == 0
}

// ails returns the first thing that is not as it should be.
func (r *refuser) ails() ailment {
	unready := !r.last.GetOk() || r.damaged || r.fromMirror()
	var located, swept ailment
	if !r.located() {
		located.cause = causeInterfaces
	}
	if !r.swept && unready && !r.begun.GetProvisional() {
		swept = ailment{cause: causeUnswept, reach: messages.Reach_REACH_DOWNSTREAM}
	}
	return firstOf(r.outlet.ails(r.sure), r.enrolment.ails(), located, r.backlog.ails(unready && !r.rests()), swept)
}
