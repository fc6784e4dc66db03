package addresses

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/vrrp"
)

// Asks satisfies render.Mail.
func (*adapter) Asks() []string { return []string{address.Healer} }

// Leave is the command to give up all addresses, or to take part in elections again. The reply is a
// *Left.
type Leave struct{ Back bool }

// Left is the answer to Leave.
type Left struct{}

// Query asks for all addresses; the reply is a []Announced.
type Query struct{}

// Announced is an address that Services have and this node may own.
type Announced struct {
	Address  netip.Addr
	Services []string
	vrrp.Key
	Interface string
	// Held is what VPP holds; nil = nothing.
	Held *vrrp.Held
	// Since is when this node became the owner; zero = it is not.
	Since time.Time
	// Why is why this node takes no part in the election; "" = it does.
	Why string
}

// Handle satisfies render.Mail.
func (a *adapter) Handle(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *report.Forwarding:
		now := a.serving
		switch {
		case m.OK:
			now = yes
		case m.Before:
			now = no
		}
		a.change(func() { a.serving = now })
	case *Leave:
		a.change(func() { a.left = !m.Back })
		c.Reply(&Left{})
	case *Elected:
		a.progress.Read("a virtual router has changed its state")
	case *Query:
		c.Reply(a.announced())
	}
}

// change changes whether this node takes part in elections.
func (a *adapter) change(change func()) {
	before, left := a.serving, a.left
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a.have)), a.claims.Keys())
	a.claims.Change(slices.Clone(keys), change)
	if before != a.serving || left != a.left {
		a.claims.Touch(keys...)
	}
}

// Elected says that VPP has reported an election.
type Elected struct{}

// After satisfies render.Mail: it records elections.
func (a *adapter) After(c *runtime.Context, known bool) {
	if a.emptied {
		a.emptied = false
		c.Send(c.PID(address.Healer), &report.Emptied{})
	}
	if !known || !a.looked {
		return
	}
	a.looked = false
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a.have)), maps.Keys(a.owned))
	slices.SortFunc(keys, vrrp.Key.Compare) // so that a simulation can be repeated
	for _, k := range slices.Compact(keys) {
		h := a.have[k]
		_, owned := a.owned[k]
		if owner := h.Ours && h.Owner(); owner != owned {
			a.elected(c, k, owner)
		}
	}
}

// elected records that this node owns a group now, or does not any more.
func (a *adapter) elected(c *runtime.Context, k vrrp.Key, owner bool) {
	text := "VPP answers for the addresses of virtual router " + k.String()
	if a.owned[k] = c.Now(); !owner {
		text = "VPP does not answer any more for the addresses of virtual router " + k.String()
		delete(a.owned, k)
	}
	report.Event(c, &messages.Event{Kind: "addresses", Text: text})
}

// announced lists the addresses that Services have.
func (a *adapter) announced() []Announced {
	services := map[netip.Addr][]string{}
	for name, s := range a.services {
		for addr := range s.serves {
			services[addr] = append(services[addr], name)
		}
	}
	all := []Announced{}
	for _, addr := range slices.SortedFunc(maps.Keys(services), netip.Addr.Compare) {
		one := Announced{Address: addr, Services: slices.Sorted(slices.Values(services[addr]))}
		up, is := a.uplink(addr)
		_, group, pooled := a.group(addr)
		if !pooled {
			continue
		}
		one.Key, one.Interface = vrrp.Key{Interface: up.index, ID: group.ID, IPv6: group.IPv6}, up.name
		if h, held := a.have[one.Key]; is && held {
			one.Held = &h
		}
		one.Since, one.Why = a.owned[one.Key], a.why(one.Key, is)
		all = append(all, one)
	}
	return all
}

// why is why this node takes no part in the election for a group; "" = it does.
func (a *adapter) why(k vrrp.Key, attached bool) string {
	for _, c := range a.claims.At(k) {
		if !c.Value.serves {
			return "no endpoint of " + c.Service + " on this node"
		}
	}
	switch {
	case a.unsupported:
		return noPlugin
	case !attached:
		return "no interface of VPP has a network with the address"
	case a.left:
		return "this node was asked to leave"
	case a.serving == no:
		return "this node cannot program VPP"
	case a.serving == undecided:
		return "this node is not ready yet"
	}
	return a.taken(k)
}
