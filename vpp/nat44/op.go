package nat44

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Verb is the kind of an operation.
type Verb uint8

// The operations, in the order in which Diff uses them.
const (
	// Enable enables the plugin with Op.Sessions. VPP resets forwarding and timeouts with it.
	Enable Verb = iota + 1
	// Forwarding lets traffic without a mapping pass.
	Forwarding
	// SetTimeouts sets Op.Timeouts.
	SetTimeouts
	// AddAddress adds Op.Addr to the twice-NAT pool.
	AddAddress
	// AddRoles gives Op.Interface the roles Op.Roles, outside first.
	AddRoles
	// AddRow creates Op.Row.
	AddRow
	// AddLocal adds Op.Local to the row Op.Key.
	AddLocal
	// DelLocal deletes Op.Local from the row Op.Key and ends all sessions to it.
	DelLocal
	// DelRow deletes Op.Row and ends all sessions to its backends.
	DelRow
	// DelRoles takes the roles Op.Roles from Op.Interface, inside first.
	DelRoles
	// DelAddress deletes Op.Addr from the twice-NAT pool and ends its sessions.
	DelAddress
	// AddPool adds Op.Addr to the SNAT pool, DelPool deletes it and ends its sessions.
	AddPool
	DelPool
	// AddOutput makes Op.Interface an output interface of NAT, which can have no other role;
	// DelOutput ends that.
	AddOutput
	DelOutput
	// Withdraw removes the FIB entry that NAT44 has left behind for Op.Addr.
	Withdraw
	// OneWorker leaves all of NAT to the first worker.
	OneWorker
	// SetShare gives Op.Local in the row Op.Key its weight as share of new connections.
	SetShare
	// Grow adds empty slots to the row Op.Key, Mend the entries that it lacks after an
	// interruption.
	Grow
	Mend
)

// verbs are the names of the operations in texts and metrics.
var verbs = [...]string{
	Enable: "enable", Forwarding: "enable-forwarding", SetTimeouts: "set-timeouts",
	AddAddress: "add-twice-nat-address", AddRoles: "add-roles", AddRow: "add-row", AddLocal: "add-local",
	DelLocal: "delete-local", DelRow: "delete-row", DelRoles: "delete-roles", DelAddress: "delete-twice-nat-address",
	AddPool: "add-nat-address", DelPool: "delete-nat-address", AddOutput: "add-output-interface", DelOutput: "delete-output-interface",
	Withdraw: "withdraw-address", OneWorker: "one-worker",
	SetShare: "set-share", Grow: "grow-row", Mend: "mend-row",
}

// String returns the name of the operation.
func (v Verb) String() string { return batch.Name(verbs[:], v) }

// Load is the size of a row in VPP. VPP works with 2..255 entries and weights of 1..255 in sum;
// other values make it hang or crash.
type Load struct {
	// Entries is the number of entries, pads included.
	Entries int
	// Weight is the sum of their weights.
	Weight int
}

// safe reports whether VPP works with a row of this load.
func (l Load) safe() bool {
	return l.Entries >= MinEntries && l.Entries <= MaxEntries && l.Weight >= 1 && l.Weight <= MaxWeight
}

// load returns the load of a row in VPP.
func (r Row) load() Load {
	var l Load
	for _, local := range r.Locals {
		l.Weight += int(local.Weight)
	}
	l.Entries = len(r.Locals)
	switch {
	case r.Pads:
		l.Entries = entriesOf(r.size())
	case l.Entries == 1:
		l = Load{Entries: 2, Weight: 2 * l.Weight}
	}
	return l
}

// Op is one step from what VPP holds to what it should hold. Only the fields that its verb names
// have a meaning.
type Op struct {
	// Verb says what is done.
	Verb Verb

	// Of operations on rows and locals; DiffRow sets them, and Release the last one.

	// Key of the row, for the operations on rows and locals.
	Key rule.Key
	// Row is what AddRow creates and what DelRow deletes; shared, not to be changed.
	Row *Row
	// Why is why DelRow deletes a row that the next operation replaces; "" = nothing replaces it.
	Why string
	// Local is the backend of AddLocal, DelLocal and SetShare.
	Local Local
	// After is the load of the row once AddLocal, DelLocal, SetShare, Grow or Mend is done.
	// Apply refuses an operation that would leave a dangerous row.
	After Load
	// change is what the operation does to the slots of a row; nil where the row has none.
	change *change
	// waits says that the operation is safe only when VPP has answered the earlier ones: if VPP
	// refused them, the shares of the row could come to 0, which ends VPP at the next packet.
	waits bool
	// Release says of DelRow that no other mapping needs its address in the FIB: Apply
	// withdraws the address as well where NAT44 may have entered it.
	Release bool

	// Of operations on the plugin; Diff sets them.

	// Interface is a sw_if_index.
	Interface uint32
	// Roles to be given or taken.
	Roles Roles
	// Addr is an address of a pool, or the one that Withdraw is about.
	Addr netip.Addr
	// Sessions per worker.
	Sessions uint32
	// Timeouts to be set, every field.
	Timeouts Timeouts
}

// OnRow reports whether the operation changes a row, so that Key is set.
func (op Op) OnRow() bool { return op.Verb >= AddRow && op.Verb <= DelRow || op.Verb >= SetShare }

// onLocals reports whether the operation changes entries of a row that stays.
func (op Op) onLocals() bool {
	return op.Verb == AddLocal || op.Verb == DelLocal || op.Verb >= SetShare
}

// walks reports whether the operation makes NAT44 walk all mappings and enter their addresses into
// the FIB as VPP's own.
func (op Op) walks() bool {
	return op.Verb == AddOutput || op.Verb == AddRoles && op.Roles&Outside != 0
}

// Check returns an error that wraps link.ErrUnsafe where the operation would leave a row that can
// hang or crash VPP, at once or at a later packet: fewer than two entries, more than 255, a weight
// sum that is not 1..255.
func (op Op) Check() error {
	after := op.After
	switch op.Verb {
	case AddRow:
		if op.Row == nil {
			return fmt.Errorf("add %s: %w: no row", op.Key, link.ErrUnsafe)
		}
		if op.Row.Kind != Balanced {
			return nil
		}
		after = op.Row.load()
	case AddLocal, DelLocal, SetShare, Grow, Mend:
	default:
		return nil
	}
	if !after.safe() {
		return fmt.Errorf("%s: %w: the row would have %d entries with a weight of %d in sum", op.Describe(), link.ErrUnsafe, after.Entries, after.Weight)
	}
	return nil
}

// Describe returns the operation as one line, for journals and diffs.
func (op Op) Describe() string {
	switch op.Verb {
	case Enable:
		if op.Sessions == 0 { // VPP's own limit
			return "enable NAT44"
		}
		return fmt.Sprintf("enable NAT44 for %d sessions", op.Sessions)
	case OneWorker:
		return "leave NAT to the first worker"
	case Forwarding:
		return "enable forwarding"
	case SetTimeouts:
		t := op.Timeouts
		return fmt.Sprintf("set timeouts udp=%d tcp-established=%d tcp-transitory=%d icmp=%d", t.UDP, t.TCPEstablished, t.TCPTransitory, t.ICMP)
	case AddAddress:
		return fmt.Sprintf("add twice-NAT address %s", op.Addr)
	case DelAddress:
		return fmt.Sprintf("delete twice-NAT address %s", op.Addr)
	case AddPool:
		return fmt.Sprintf("add NAT address %s", op.Addr)
	case DelPool:
		return fmt.Sprintf("delete NAT address %s", op.Addr)
	case Withdraw:
		return fmt.Sprintf("withdraw address %s, which NAT44 has left behind", op.Addr)
	case AddOutput:
		return fmt.Sprintf("make interface %d an output interface", op.Interface)
	case DelOutput:
		return fmt.Sprintf("make interface %d no output interface any more", op.Interface)
	case AddRoles:
		return fmt.Sprintf("add roles %s to interface %d", op.Roles, op.Interface)
	case DelRoles:
		return fmt.Sprintf("delete roles %s from interface %d", op.Roles, op.Interface)
	case AddRow, DelRow:
		if op.Why != "" {
			why := op.Why
			op.Why = ""
			return op.Describe() + ", replaced: " + why
		}
		if op.Row != nil && op.Row.Kind != Balanced {
			return op.describeMapping()
		}
		if op.Verb == DelRow {
			return fmt.Sprintf("delete row %s", op.Key)
		}
		return fmt.Sprintf("add row %s %s -> %d backends", op.Key, op.Row.Flags, len(op.Row.Locals))
	case AddLocal:
		return fmt.Sprintf("add local %s weight %d to row %s", op.Local.Text(), op.Local.Weight, op.Key)
	case DelLocal:
		return fmt.Sprintf("delete local %s from row %s", op.Local.Text(), op.Key)
	case SetShare:
		if op.Local.Weight == 0 {
			return fmt.Sprintf("drain local %s of row %s", op.Local, op.Key)
		}
		return fmt.Sprintf("set weight %d of local %s of row %s", op.Local.Weight, op.Local, op.Key)
	case Grow:
		return fmt.Sprintf("grow row %s to %d entries", op.Key, op.After.Entries)
	case Mend:
		return fmt.Sprintf("complete row %s", op.Key)
	default:
		return op.Verb.String()
	}
}

// describeMapping is Describe for a row that balances nothing.
func (op Op) describeMapping() string {
	key := op.Key.String()
	if op.Key.Port == 0 {
		key = op.Key.Addr.String()
	}
	switch {
	case op.Verb == DelRow:
		return fmt.Sprintf("delete %s %s", op.Row.Kind, key)
	case op.Row.Kind == Static:
		return fmt.Sprintf("add %s %s -> %s", op.Row.Kind, key, op.Row.Locals[0].Addr)
	default:
		return fmt.Sprintf("add %s %s", op.Row.Kind, key)
	}
}

// String is Describe.
func (op Op) String() string { return op.Describe() }

// backendsPerMessage is how many backends of a new row take VPP about as long as a message about
// one backend.
const backendsPerMessage = 32

// Cost returns about how many messages about one backend keep VPP as busy as the operations of one
// row do: a row that is added or deleted is one message, whose time grows with its backends. To
// delete a row takes VPP as long as to delete its entries one by one: it walks through all sessions
// for each.
func Cost(ops []Op) (messages int) {
	for _, op := range ops {
		messages++
		switch op.Verb {
		case AddRow:
			messages += len(op.Row.Locals) / backendsPerMessage
		case DelRow:
			messages += len(op.Row.Entries())
		}
	}
	return messages
}

// Part returns the first operations of DiffRow, at most so many. The rest can follow later, because
// the row is sound after each local that is added or deleted. An operation that waits for VPP's
// answers begins another part. The two operations that replace a row stay together.
func Part(ops []Op, most int) []Op {
	for i, op := range ops {
		if op.Verb == DelRow {
			break
		}
		if i == most || i > 0 && op.waits {
			return ops[:i]
		}
	}
	return ops
}
