package nat44

import (
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Roles are the NAT roles of an interface, with the bits of nat_config_flags.
type Roles uint8

const (
	// Outside makes NAT44 match packets from the interface against mappings and sessions. Alone
	// it leaves packets alone that are not TCP, UDP or ICMP, creates a session for every other
	// flow without a mapping, and takes TCP connections to backends of the interface for
	// half-open ones.
	Outside = Roles(nat_types.NAT_IS_OUTSIDE)
	// Inside makes NAT44 translate answers from the interface, and every packet that is not
	// TCP, UDP or ICMP. Alone it breaks load balancing for its clients, and with affinity it
	// crashes VPP.
	Inside = Roles(nat_types.NAT_IS_INSIDE)
	// Both roles are set on every interface that leads to clients or backends, except on those
	// of Want.OtherProtocols.
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

// Globals are the wanted settings of the plugin besides rows and interface roles. Forwarding is not
// among them: it is always on, so that traffic without a mapping passes.
type Globals struct {
	// SessionLimit is the number of sessions per worker, 0 = VPP's default. It is set when the
	// plugin is enabled and never changed here afterwards: vpp/sessions owns the limit of a
	// running VPP.
	SessionLimit uint32
	// AllWorkers leaves NAT to all workers of VPP. By default the first worker does it, because
	// a row can have pads only where all of its entries belong to one worker. See Spread.
	AllWorkers bool
	// Timeouts of sessions in seconds; a field that is 0 means its value in DefaultTimeouts.
	Timeouts Timeouts
	// TwiceNAT is our address in the twice-NAT pool; invalid = none.
	TwiceNAT netip.Addr
	// MasqueradeClashes puts TwiceNAT into the SNAT pool as well, as long as that has no other
	// address. VPP needs one for a connection past a service that has the addresses and ports
	// of a session, and drops the connection without ("out of ports"). No other packet is
	// translated to it, because forwarding is on.
	MasqueradeClashes bool
	// Pool are the wanted addresses of the SNAT pool; RetiredPool are addresses that the agent
	// added earlier and has to delete.
	Pool, RetiredPool []netip.Addr
	// Retired are twice-NAT addresses that the agent added earlier and has to delete. Others in
	// the pool are left alone, because VPP does not store the owner of an address.
	Retired []netip.Addr
}

// Want is the desired state of VPP.
type Want struct {
	Globals
	// Rows by key, each of the service that owns the key. Rows without a backend count as
	// absent.
	Rows map[rule.Key]Row
	// Interfaces by sw_if_index: true = inside and outside, false = no role. Others are left
	// alone, except those with the inside role alone, which get both roles because they can
	// crash VPP.
	Interfaces map[uint32]bool
	// OtherProtocols are interfaces with packets that are not TCP, UDP or ICMP. Where Interfaces
	// has them, they get the outside role alone.
	OtherProtocols map[uint32]bool
	// Shared returns the addresses of rows that others may use besides: all except cluster IPs.
	// NAT44 must not keep them to itself. It walks over all rows and is called only where NAT44
	// may have received an address; nil = there are none.
	Shared func() map[netip.Addr]bool
	// Outputs by sw_if_index: true = output interface of NAT, which excludes the roles of
	// Interfaces; false = an output interface that the agent added and has to delete. Others
	// are left alone.
	Outputs map[uint32]bool
}

// State is what VPP holds: as Read returns it, updated by Record until the next read. It belongs to
// one goroutine.
type State struct {
	// The plugin as a whole. Read and Record set these fields, and Lose removes interfaces.

	// Enabled says whether the plugin is enabled; if not, everything else is empty.
	Enabled bool
	// Workers is the number of workers that do NAT; 0 = VPP has at most one. It is also known
	// where the plugin is not enabled.
	Workers int
	// Sessions is the number of sessions per worker that the plugin was enabled with.
	Sessions uint32
	// Forwarding says whether traffic without a mapping passes.
	Forwarding bool
	// Timeouts of sessions in seconds.
	Timeouts Timeouts
	// TwiceNAT is the twice-NAT pool and Pool the SNAT pool, in VPP's order.
	TwiceNAT, Pool []netip.Addr
	// Roles by sw_if_index; interfaces without a role are absent.
	Roles map[uint32]Roles
	// Output holds the interfaces that are output interfaces of NAT; they can have no role.
	Output map[uint32]bool

	// Mappings and their addresses. Read, Record, Inherit, Suspect and Share change these
	// fields.

	// Rows are the mappings with our tag, by key.
	Rows map[rule.Key]Row
	// Foreign are the keys that LB, static and identity mappings without our tag occupy, with a
	// description.
	Foreign map[rule.Key]string
	// Received are the addresses that NAT44 has, or may have, made VPP's own. Read finds the
	// addresses whose route in the default table is NAT44's, unless a better route hides it.
	// When an interface becomes an outside one, the addresses of all rows are added. See
	// doc.go.
	Received map[netip.Addr]bool
	// Fresh are the rows that Record has added since an interface last became an outside one:
	// unless Received has their address, NAT44 has not entered it into the FIB. False: it may
	// have, for a row of this key that was deleted and kept its address. See Inherit.
	Fresh map[rule.Key]bool
}

// NewState returns the state of a VPP whose plugin is not enabled.
func NewState() *State {
	return &State{
		Roles: map[uint32]Roles{}, Output: map[uint32]bool{},
		Rows: map[rule.Key]Row{}, Foreign: map[rule.Key]string{}, Received: map[netip.Addr]bool{}, Fresh: map[rule.Key]bool{},
	}
}

// Clone returns a copy that shares only the immutable backends of rows.
func (s *State) Clone() *State {
	c := *s
	c.TwiceNAT, c.Pool = slices.Clone(s.TwiceNAT), slices.Clone(s.Pool)
	c.Roles, c.Output = maps.Clone(s.Roles), maps.Clone(s.Output)
	c.Rows, c.Foreign = maps.Clone(s.Rows), maps.Clone(s.Foreign)
	c.Received, c.Fresh = maps.Clone(s.Received), maps.Clone(s.Fresh)
	return &c
}

// Inherit copies from the state before, which must be of the same start of VPP, what a read does
// not return: which rows are fresh. Without it Apply reads and withdraws addresses that NAT44 never
// entered. A nil State is ignored.
func (s *State) Inherit(before *State) {
	if before == nil {
		return
	}
	for key, fresh := range before.Fresh {
		if _, held := s.Rows[key]; fresh && held && !s.Received[key.Addr] {
			s.Fresh[key] = true
		}
	}
}

// Suspect enters an operation that failed or was carried out in part. If it makes NAT44 walk the
// mappings, any address may be in the FIB, so no row counts as fresh any more.
func (s *State) Suspect(op Op) {
	if op.walks() {
		s.walked()
	}
}

// walked notes that NAT44 may have entered the addresses of all rows into the FIB.
func (s *State) walked() {
	maps.DeleteFunc(s.Fresh, func(_ rule.Key, fresh bool) bool { return fresh })
	for key := range s.Rows {
		s.Received[key.Addr] = true
	}
}

// Spread reports whether several workers do NAT and that is not to be changed: because all of them
// are wanted, or because VPP holds mappings, which know the workers of their backends, or what
// belongs to dynamic NAT. Each worker then chooses among its own backends only, and entries of
// weight 0 are dangerous: rows must have no pads.
func (s *State) Spread(allWorkers bool) bool {
	return s.Workers > 1 && (allWorkers || len(s.Rows)+len(s.Foreign)+len(s.Pool)+len(s.Output) > 0)
}

// Interfaces returns the interfaces with roles and the output interfaces, in no order.
func (s *State) Interfaces() []uint32 {
	return slices.AppendSeq(slices.Collect(maps.Keys(s.Roles)), maps.Keys(s.Output))
}

// Lose notes that an interface is gone: VPP has taken its roles with it, and gives its index to
// another one.
func (s *State) Lose(swIf uint32) {
	delete(s.Roles, swIf)
	delete(s.Output, swIf)
}

// Record enters operations that VPP has carried out, so that the next Diff need not read VPP again.
// Operations with an error, or whose outcome is unknown, must not be recorded: read instead.
func (s *State) Record(ops ...Op) {
	for len(ops) > 0 {
		n := 1
		if ops[0].onLocals() {
			for n < len(ops) && ops[n].Key == ops[0].Key && ops[n].onLocals() {
				n++
			}
			s.recordLocals(ops[:n])
		} else {
			s.record(ops[0])
		}
		ops = ops[n:]
	}
}

// record enters an operation that is not about a local.
func (s *State) record(op Op) {
	switch op.Verb {
	case Enable:
		fresh := NewState()
		fresh.Enabled, fresh.Sessions, fresh.Timeouts, fresh.Workers = true, op.Sessions, vppTimeouts(), s.Workers
		if fresh.Sessions == 0 {
			fresh.Sessions = vppSessions
		}
		*s = *fresh
	case OneWorker:
		s.Workers = 1
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
		s.walked()
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
		row.Draining = nil // not part of what VPP holds
		s.Rows[op.Key] = row
		if _, former := s.Fresh[op.Key]; !former {
			s.Fresh[op.Key] = true
		}
	case DelRow:
		delete(s.Rows, op.Key)
		switch {
		case op.Release:
			delete(s.Received, op.Key.Addr)
			delete(s.Fresh, op.Key)
		case s.Fresh[op.Key]:
			delete(s.Fresh, op.Key)
		default:
			s.Fresh[op.Key] = false
		}
	}
}

// vppSessions is the limit that VPP uses when it is enabled with 0.
const vppSessions = 63 * 1024

// recordLocals enters changes of the backends of one row into one copy of them, because other rows
// may share the slice.
func (s *State) recordLocals(ops []Op) {
	row, found := s.Rows[ops[0].Key]
	if !found {
		return
	}
	if ops[0].change != nil { // then all of them have one
		slots := slices.Clone(row.layout())
		for _, op := range ops {
			slots = op.change.on(slots)
		}
		row.place(slots)
		s.Rows[row.Key] = row
		return
	}
	row = row.clone()
	for _, op := range ops {
		at, held := slices.BinarySearchFunc(row.Locals, op.Local, compareEntry)
		switch {
		case op.Verb == DelLocal && held:
			row.Locals = slices.Delete(row.Locals, at, at+1)
		case op.Verb == AddLocal && held:
			row.Locals[at] = op.Local
		case op.Verb == AddLocal:
			row.Locals = slices.Insert(row.Locals, at, op.Local)
		}
	}
	s.Rows[row.Key] = row
}

// Share replaces the backends of a row by an equal list, so that both need memory once.
func (s *State) Share(with Row) {
	if row, found := s.Rows[with.Key]; found && slices.Equal(row.Locals, with.Locals) {
		row.Locals = with.Locals
		s.Rows[with.Key] = row
	}
}
