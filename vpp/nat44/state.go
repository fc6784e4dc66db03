package nat44

import (
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Roles are the NAT roles of an interface, with the bits of nat_config_flags.
type Roles uint8

const (
	// Outside makes the interface look for mappings. Alone it makes a session for every foreign flow.
	Outside = Roles(nat_types.NAT_IS_OUTSIDE)
	// Inside makes the interface translate answers. Alone it breaks load balancing for its clients, and with affinity crashes VPP.
	Inside = Roles(nat_types.NAT_IS_INSIDE)
	// Both roles are what every interface gets that clients or backends are behind.
	Both = Inside | Outside
)

// String returns the names of the roles.
func (r Roles) String() string {
	switch r & Both {
	case Both:
		return "inside+outside"
	case Inside:
		return "inside"
	case Outside:
		return "outside"
	default:
		return "none"
	}
}

// Globals is what VPP should be set to besides rows and interface roles. Forwarding is not in it: it is always on, so that traffic
// without a mapping passes.
type Globals struct {
	// SessionLimit is the number of sessions per worker, 0 = VPP's default. It is given when the plugin is enabled and never changed here
	// afterwards: the limit of a running VPP belongs to the housekeeping of sessions, see vpp/sessions.
	SessionLimit uint32
	// Timeouts of sessions in seconds; a field that is 0 means its value in DefaultTimeouts.
	Timeouts Timeouts
	// TwiceNAT is our address in the twice-NAT pool; invalid = none.
	TwiceNAT netip.Addr
	// Pool are the addresses of the SNAT pool that are wanted; RetiredPool those that are known to be ours from earlier and have to go.
	Pool, RetiredPool []netip.Addr
	// Retired are twice-NAT addresses that are known to be ours from earlier and have to go. Others in the pool are left alone,
	// because VPP does not say whose they are.
	Retired []netip.Addr
}

// Want is what VPP should hold.
type Want struct {
	Globals
	// Rows by key: the winners of Claims. Rows without a backend count as absent.
	Rows map[frontend.Key]Row
	// Interfaces by sw_if_index: true = inside and outside, false = no role. Others are left alone, but for those with the inside
	// role alone, which are completed because they endanger VPP.
	Interfaces map[uint32]bool
	// Outputs by sw_if_index: true = output interface of NAT, without another role whatever Interfaces says; false = one of ours that has to
	// stop being one. Others are left alone.
	Outputs map[uint32]bool
}

// State is what VPP holds, as it was read and, between two reads, as Record keeps it. It belongs to one goroutine.
type State struct {
	// Enabled says whether the plugin is on; if not, everything else is empty.
	Enabled bool
	// Sessions is the number of sessions per worker that the plugin was enabled with.
	Sessions uint32
	// Forwarding says whether traffic without a mapping passes.
	Forwarding bool
	// Timeouts of sessions in seconds.
	Timeouts Timeouts
	// TwiceNAT is the twice-NAT pool and Pool the SNAT pool, in VPP's order.
	TwiceNAT, Pool []netip.Addr
	// Roles by sw_if_index; interfaces without a role are not in it.
	Roles map[uint32]Roles
	// Output holds the interfaces that are output interfaces of NAT; they can have no role.
	Output map[uint32]bool
	// Rows are ours, by key.
	Rows map[frontend.Key]Row
	// Foreign are the keys that mappings of others occupy, with a description: LB, static and identity mappings without our tag.
	Foreign map[frontend.Key]string
	// Received are the addresses that NAT44 has made VPP's own, as they were read: those whose route in the default table is NAT44's. What
	// is made so later is not in it, nor what lies beneath a better route. See doc.go.
	Received map[netip.Addr]bool
	// Fresh are the rows that were added since an interface became an outside one, as far as Record knows: NAT44 has not made VPP's own what
	// is not in Received for them. See Inherit.
	Fresh map[frontend.Key]bool
}

// NewState returns the state of a VPP whose plugin is not enabled.
func NewState() *State {
	return &State{
		Roles: map[uint32]Roles{}, Output: map[uint32]bool{},
		Rows: map[frontend.Key]Row{}, Foreign: map[frontend.Key]string{}, Received: map[netip.Addr]bool{}, Fresh: map[frontend.Key]bool{},
	}
}

// Clone returns a copy that shares nothing but the immutable backends of rows.
func (s *State) Clone() *State {
	c := *s
	c.TwiceNAT, c.Pool = slices.Clone(s.TwiceNAT), slices.Clone(s.Pool)
	c.Roles, c.Output = maps.Clone(s.Roles), maps.Clone(s.Output)
	c.Rows, c.Foreign = maps.Clone(s.Rows), maps.Clone(s.Foreign)
	c.Received, c.Fresh = maps.Clone(s.Received), maps.Clone(s.Fresh)
	return &c
}

// Inherit takes over from the state before, which must be of the same start of VPP, what a read cannot tell: which rows are fresh. Without it
// VPP is asked for the address of a row that is deleted, and forgets what it may not have. A nil State is ignored.
func (s *State) Inherit(before *State) {
	if before == nil {
		return
	}
	for key := range before.Fresh {
		if _, held := s.Rows[key]; held && !s.Received[key.Addr] {
			s.Fresh[key] = true
		}
	}
}

// Suspect enters an operation that VPP has not carried out, or only in part.
func (s *State) Suspect(op Op) {
	if op.walks() {
		clear(s.Fresh)
	}
}

// Interfaces are those that have roles or are output interfaces, in no order.
func (s *State) Interfaces() []uint32 {
	return slices.AppendSeq(slices.Collect(maps.Keys(s.Roles)), maps.Keys(s.Output))
}

// Lose notes that an interface is gone: VPP has taken its roles with it, and gives its index to another one.
func (s *State) Lose(swIf uint32) {
	delete(s.Roles, swIf)
	delete(s.Output, swIf)
}

// Record enters an operation that VPP has carried out, so that the next Diff need not read VPP again. Operations with an error, or whose
// outcome is unknown, must not be recorded: read instead.
func (s *State) Record(op Op) {
	switch op.Verb {
	case Enable:
		fresh := NewState()
		fresh.Enabled, fresh.Sessions, fresh.Timeouts = true, op.Sessions, vppTimeouts()
		if fresh.Sessions == 0 {
			fresh.Sessions = vppSessions
		}
		*s = *fresh
	case Forwarding:
		s.Forwarding = true
	case SetTimeouts:
		s.Timeouts = op.Timeouts
	case AddAddress:
		if !slices.Contains(s.TwiceNAT, op.Addr) {
			s.TwiceNAT = append(s.TwiceNAT, op.Addr)
		}
	case DelAddress:
		s.TwiceNAT = slices.DeleteFunc(s.TwiceNAT, func(a netip.Addr) bool { return a == op.Addr })
	case AddPool:
		if !slices.Contains(s.Pool, op.Addr) {
			s.Pool = append(s.Pool, op.Addr)
		}
	case DelPool:
		s.Pool = slices.DeleteFunc(s.Pool, func(a netip.Addr) bool { return a == op.Addr })
	case AddOutput:
		s.Output[op.Interface] = true
		clear(s.Fresh)
	case DelOutput:
		delete(s.Output, op.Interface)
	case Withdraw:
		delete(s.Received, op.Addr)
	case AddRoles:
		s.Roles[op.Interface] |= op.Roles
		s.Suspect(op)
	case DelRoles:
		if s.Roles[op.Interface] &^= op.Roles; s.Roles[op.Interface] == 0 {
			delete(s.Roles, op.Interface)
		}
	case AddRow:
		row := *op.Row
		row.FormerHash = "" // VPP does not know
		s.Rows[op.Key], s.Fresh[op.Key] = row, true
	case DelRow:
		delete(s.Rows, op.Key)
		delete(s.Fresh, op.Key)
		if op.Release {
			delete(s.Received, op.Key.Addr)
		}
	case AddLocal, DelLocal:
		s.recordLocal(op)
	}
}

// vppSessions is the number of sessions that VPP enables when it is asked for 0.
const vppSessions = 63 * 1024

// recordLocal enters the change of one backend into a copy of the row's backends.
func (s *State) recordLocal(op Op) {
	row, found := s.Rows[op.Key]
	if !found {
		return
	}
	row.Locals = slices.DeleteFunc(slices.Clone(row.Locals), func(l Local) bool { return compareEndpoint(l, op.Local) == 0 })
	if op.Verb == AddLocal {
		at, _ := slices.BinarySearchFunc(row.Locals, op.Local, compareEndpoint)
		row.Locals = slices.Insert(row.Locals, at, op.Local)
	}
	s.Rows[op.Key] = row
}
