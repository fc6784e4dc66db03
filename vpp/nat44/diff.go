package nat44

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Diff returns the least operations that turn what VPP holds into what it should hold, in an order
// that is safe at every step: plugin, forwarding, timeouts, twice-NAT address, interface roles and
// the addresses that NAT44 must not keep, then rows, then what is not needed any more. Unwanted
// rows with our tag are deleted only when sweep is true, that is when every service has rendered.
// Keys that another owner occupies are left alone. Equal arguments give equal results; a state that
// is as wanted gives none.
func Diff(have *State, want *Want, sweep bool) []Op {
	if have.Another(want) != "" {
		return nil
	}
	ops := prepare(have, want)
	ops = append(ops, diffRows(have, want, sweep)...)
	ops = append(ops, retire(have, want)...)
	Release(have, ops)
	return ops
}

// DiffGlobals is Diff without rows.
func DiffGlobals(have *State, want *Want) []Op {
	if have.Another(want) != "" {
		return nil
	}
	return append(prepare(have, want), retire(have, want)...)
}

// roles returns the roles of an interface with clients or backends.
func (w *Want) roles(index uint32) Roles {
	if w.OtherProtocols[index] {
		return Outside
	}
	return Both
}

// prepare returns the operations that come before the first row.
func prepare(have *State, want *Want) []Op {
	var ops []Op
	if have.Workers > 1 && !have.Spread(want.AllWorkers) {
		ops = append(ops, Op{Verb: OneWorker})
	}
	timeouts := have.Timeouts
	forwarding := have.Forwarding
	if !have.Enabled {
		ops = append(ops, Op{Verb: Enable, Sessions: marked(want.SessionLimit)})
		// Enabling the plugin resets both in VPP, whatever was read before.
		forwarding, timeouts = false, vppTimeouts()
	}
	if !forwarding {
		ops = append(ops, Op{Verb: Forwarding})
	}
	if wanted := want.Timeouts.withDefaults(); timeouts != wanted && have.others(want) == "" {
		ops = append(ops, Op{Verb: SetTimeouts, Timeouts: wanted})
	}
	if want.TwiceNAT.IsValid() && !slices.Contains(have.TwiceNAT, want.TwiceNAT) {
		ops = append(ops, Op{Verb: AddAddress, Addr: want.TwiceNAT})
	}
	for _, addr := range want.pool(have) {
		if !slices.Contains(have.Pool, addr) {
			ops = append(ops, Op{Verb: AddPool, Addr: addr})
		}
	}
	// the inside role alone, together with a row that has affinity, crashes VPP at the first packet
	dangerous := delRoles(have, want, func(roles Roles) bool { return roles == Inside })
	ops = slices.Concat(ops, outputs(have, want), dangerous, leaveAlone(have, want), addRoles(have, want))
	return append(ops, shared(have, want, slices.ContainsFunc(ops, Op.walks))...)
}

// pool returns the addresses that the SNAT pool has to have.
func (w *Want) pool(have *State) []netip.Addr {
	if w.MasqueradeClashes && w.TwiceNAT.IsValid() && len(w.Pool) == 0 && !w.sharedPool(have) {
		return []netip.Addr{w.TwiceNAT}
	}
	return w.Pool
}

// sharedPool reports whether the SNAT pool has an address of another owner.
func (w *Want) sharedPool(have *State) bool {
	return slices.ContainsFunc(have.Pool, func(a netip.Addr) bool {
		return a != w.TwiceNAT && !slices.Contains(w.Pool, a) && !slices.Contains(w.retiredPool(), a)
	})
}

// retiredPool returns the addresses that the agent has added to the SNAT pool, if they are there.
// Next to one of another owner, VPP would choose ours for packets that leave the cluster.
func (w *Want) retiredPool() []netip.Addr {
	if !w.MasqueradeClashes {
		return w.RetiredPool
	}
	return slices.Concat(w.RetiredPool, w.Retired, []netip.Addr{w.TwiceNAT})
}

// outputs makes interfaces output interfaces of NAT, or ends that. VPP refuses other roles on an
// output interface and the reverse, so roles are taken away first.
func outputs(have *State, want *Want) (ops []Op) {
	for _, index := range slices.Sorted(maps.Keys(want.Outputs)) {
		switch wanted := want.Outputs[index]; {
		case wanted && !have.Output[index]:
			if roles := have.Roles[index]; roles != 0 {
				ops = append(ops, Op{Verb: DelRoles, Interface: index, Roles: roles})
			}
			ops = append(ops, Op{Verb: AddOutput, Interface: index})
		case !wanted && have.Output[index]:
			ops = append(ops, Op{Verb: DelOutput, Interface: index})
		}
	}
	return ops
}

// leaveAlone takes the inside role from interfaces of OtherProtocols, except where the SNAT of
// another owner may need it. Apply then ends the sessions that NAT44 has made of their packets.
func leaveAlone(have *State, want *Want) []Op {
	given := map[uint32]Roles{}
	for index, wanted := range want.Interfaces {
		if wanted && want.OtherProtocols[index] && have.Roles[index] == Both && !want.sharedPool(have) {
			given[index] = Inside
		}
	}
	return roleOps(DelRoles, given)
}

// addRoles completes the roles of wanted interfaces, and of interfaces with the inside role alone.
func addRoles(have *State, want *Want) []Op {
	missing := map[uint32]Roles{}
	for index, wanted := range want.Interfaces {
		output, known := want.Outputs[index]
		if lacks := want.roles(index) &^ have.Roles[index]; wanted && !output && (known || !have.Output[index]) && lacks != 0 {
			missing[index] = lacks
		}
	}
	for index, roles := range have.Roles {
		if _, known := want.Interfaces[index]; !known && !want.Outputs[index] && roles == Inside {
			missing[index] = Outside
		}
	}
	return roleOps(AddRoles, missing)
}

// retire returns the removals that are safe once the rows are as wanted.
func retire(have *State, want *Want) []Op {
	ops := delRoles(have, want, func(roles Roles) bool { return roles != Inside })
	var gone []netip.Addr
	for _, addr := range want.Retired {
		if addr != want.TwiceNAT && slices.Contains(have.TwiceNAT, addr) && !slices.Contains(gone, addr) {
			ops, gone = append(ops, Op{Verb: DelAddress, Addr: addr}), append(gone, addr)
		}
	}
	wanted, retired := want.pool(have), want.retiredPool()
	for _, addr := range have.Pool {
		if slices.Contains(retired, addr) && !slices.Contains(wanted, addr) {
			ops = append(ops, Op{Verb: DelPool, Addr: addr})
		}
	}
	return append(ops, leftBehind(have)...)
}

// delRoles takes the roles from unwanted interfaces whose roles match kind.
func delRoles(have *State, want *Want, kind func(Roles) bool) []Op {
	unwanted := map[uint32]Roles{}
	for index, wanted := range want.Interfaces {
		if roles := have.Roles[index]; !wanted && !want.Outputs[index] && roles != 0 && kind(roles) {
			unwanted[index] = roles
		}
	}
	return roleOps(DelRoles, unwanted)
}

// roleOps returns one operation per interface, ordered by index so that equal states give equal
// operations.
func roleOps(verb Verb, roles map[uint32]Roles) []Op {
	var ops []Op
	for _, index := range slices.Sorted(maps.Keys(roles)) {
		ops = append(ops, Op{Verb: verb, Interface: index, Roles: roles[index]})
	}
	return ops
}

// diffRows returns the changes of rows, ordered by key: additions and changes first, then, with
// sweep, deletions.
func diffRows(have *State, want *Want, sweep bool) (ops []Op) {
	var gone []Op
	keys := slices.AppendSeq(slices.Collect(maps.Keys(want.Rows)), maps.Keys(have.Rows))
	slices.SortFunc(keys, rule.Key.Compare)
	for _, key := range slices.Compact(keys) {
		held, row := pointer(have.Rows, key), pointer(want.Rows, key)
		_, foreign := have.Foreign[key]
		switch wanted := row != nil && len(row.Locals) > 0 || Target(held, row) != nil; {
		case wanted && !foreign:
			ops = append(ops, DiffRow(held, row)...)
		case !wanted && sweep:
			gone = append(gone, DiffRow(held, row)...)
		}
	}
	return append(ops, gone...)
}

// pointer returns a pointer to a copy of the row, or nil.
func pointer(rows map[rule.Key]Row, key rule.Key) *Row {
	row, found := rows[key]
	if !found {
		return nil
	}
	return &row
}
