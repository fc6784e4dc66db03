package sessions

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Live are the numbers of live sessions of a backend, by the frontend and protocol that clients
// use.
type Live map[rule.Key]int

// Counted are the live sessions of draining backends, as a message. It is sent without them too, so
// that the renderer checks its time limits.
type Counted struct {
	// Generation is that of the Wish; 0 = there is none yet, and the sender asks for one.
	Generation uint64
	// Live has the backends that were reached.
	Live map[netip.AddrPort]Live
}

// Wish is what Sweep looks for. As a message it is complete.
type Wish struct {
	// Generation counts the changes of Draining.
	Generation uint64
	// Draining are backends whose live sessions are counted.
	Draining []netip.AddrPort
	// Gone are the rows whose clients a draining backend does not serve any more. UDP flows and
	// ended TCP connections are deleted, so that the next packet of their client gets another
	// backend: VPP would open a new connection through the session of an ended one.
	Gone map[netip.AddrPort]map[rule.Key]bool
	// Sticky are the rows with affinity, with its time. VPP remembers a client until its last
	// session is freed, so sessions that are silent for so long are deleted.
	Sticky map[rule.Key]time.Duration
	// Backends are the backends of Sticky.
	Backends []netip.AddrPort
	// EndedAfter is the silence after which a TCP connection that is not established has ended.
	// VPP does not tell which side has closed it, so a half-closed one that is silent for so
	// long counts as ended too.
	EndedAfter time.Duration
	// Blind are addresses behind an interface with the outside role alone. To VPP no connection to
	// them is established, so ended ones are not told from others.
	Blind map[netip.Addr]bool
}

// CoalesceKey satisfies messages.Coalescer.
func (*Wish) CoalesceKey() string { return "draining" }

// Swept is the result of Sweep.
type Swept struct {
	// Live has the draining backends that were reached.
	Live map[netip.AddrPort]Live
	// Freed counts deletions; Err is why the sweep ended early.
	Freed
	// Turn is the address with which the next sweep begins.
	Turn netip.Addr
}

// mostShown is how many sessions the commands of a sweep may print, because VPP's workers wait
// meanwhile: 35 ms. Ended connections of a backend with more sessions are not told from others.
const mostShown = 10_000

// ended reports whether the connection can only be opened anew.
func (w *Wish) ended(f *Flow) bool { return f.Expired || f.Unsettled && f.Idle >= w.EndedAfter }

// Sweep counts and deletes the sessions of a Wish, with at most so many dumps and commands, each of
// which costs VPP a pass over its sessions, and so many deletions. The first dump finds the
// addresses without sessions. Of the others Sweep reaches those whose turn is next.
func Sweep(ctx context.Context, c link.Caller, w Wish, turn netip.Addr, s Slice) (r Swept) {
	r.Live, r.Turn = map[netip.AddrPort]Live{}, turn
	var with shower
	if with, r.Err = newShower(ctx, c); r.Err != nil {
		return r
	}
	var users []User
	if users, r.Err = readUsers(ctx, c); r.Err != nil {
		return r
	}
	of := make(map[netip.Addr]*User, len(users))
	for i := range users {
		of[netip.AddrFrom4(users[i].Addr)] = &users[i]
	}
	addrs := w.addresses(of, turn)
	for _, b := range w.Draining {
		if of[b.Addr()] == nil {
			r.Live[b] = Live{}
		}
	}
	if r.Turn = (netip.Addr{}); len(addrs) == 0 {
		return r
	}
	shown := uint64(0)
	for i, addr := range addrs {
		user := of[addr]
		if s.Dumps--; i > 0 && (s.Dumps <= 0 || s.Deletions <= 0 || shown+user.Sessions > mostShown) {
			r.Turn = addr
			return r
		}
		var flows []Flow
		if flows, r.Err = with.read(ctx, addr, user.Sessions, w.Blind[addr]); r.Err != nil {
			return r
		}
		shown += min(user.Sessions, mostShown)
		if s.Deletions -= r.sweep(ctx, c, &w, user, flows, s.Deletions); r.Err != nil {
			return r
		}
	}
	return r
}

// addresses are those with sessions, the next one first.
func (w *Wish) addresses(users map[netip.Addr]*User, turn netip.Addr) (addrs []netip.Addr) {
	for _, b := range slices.Concat(w.Draining, w.Backends) {
		if users[b.Addr()] != nil {
			addrs = append(addrs, b.Addr())
		}
	}
	slices.SortFunc(addrs, func(a, b netip.Addr) int {
		if before, after := a.Less(turn), b.Less(turn); before != after {
			return map[bool]int{true: 1, false: -1}[before]
		}
		return a.Compare(b)
	})
	return slices.Compact(addrs)
}

// read returns the sessions of an address, with a dump where they are too many for a command, or a
// command says no more.
func (s shower) read(ctx context.Context, addr netip.Addr, sessions uint64, blind bool) (flows []Flow, err error) {
	if sessions <= mostShown && !blind {
		return s.show(ctx, addr)
	}
	flows, _, err = List(ctx, s.caller, []netip.Addr{addr}, func(f *Flow) bool { return f.Service }, math.MaxInt)
	return flows, err
}

// sweep counts and deletes sessions of an address, and returns how many deletions it has requested.
func (r *Swept) sweep(ctx context.Context, c link.Caller, w *Wish, user *User, flows []Flow, most int) int {
	for _, b := range w.Draining {
		if b.Addr() == netip.AddrFrom4(user.Addr) {
			r.Live[b] = Live{}
		}
	}
	var requests []api.Message
	for i := range flows {
		f := &flows[i]
		switch {
		case !f.Service:
		case w.ends(f) && !user.Shared && len(requests) < most:
			requests = append(requests, f.deletion(user.VRF))
		case !w.ended(f) && r.Live[f.Backend] != nil:
			r.Live[f.Backend][f.row()]++
		}
	}
	r.delete(ctx, c, requests)
	return len(requests)
}

// ends reports whether a session is to be deleted.
func (w *Wish) ends(f *Flow) bool {
	row := f.row()
	if w.Gone[f.Backend][row] && (w.ended(f) || f.Protocol == protoUDP) {
		return true
	}
	// a second less, for which VPP remembers the client of a freed session
	affinity, sticky := w.Sticky[row]
	return sticky && (f.Expired || w.ended(f) && f.Idle >= affinity-time.Second)
}

// row is the row that made the session.
func (f *Flow) row() rule.Key {
	return rule.Key{Addr: f.Frontend.Addr(), Port: f.Frontend.Port(), Proto: f.Protocol}
}

// deletion is the request that deletes the session.
func (f *Flow) deletion(vrf uint32) *nat44_ed.Nat44DelSession {
	client := f.Client
	if f.As.IsValid() {
		client = f.As
	}
	return &nat44_ed.Nat44DelSession{
		Address: f.Backend.Addr().As4(), Port: f.Backend.Port(), Protocol: f.Protocol, VrfID: vrf,
		Flags: nat_types.NAT_IS_INSIDE | nat_types.NAT_IS_EXT_HOST_VALID, ExtHostAddress: client.Addr().As4(), ExtHostPort: client.Port(),
	}
}
