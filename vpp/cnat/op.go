package cnat

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Verb is the kind of an operation.
type Verb uint8

// The operations, in the order in which Diff uses them.
const (
	// SetSNAT sets the addresses Op.SNAT and the policy of Kubernetes: with an address alone
	// VPP replaces every source.
	SetSNAT Verb = iota + 1
	// SetTargets excludes the networks Op.Add from source NAT, and then includes Op.Del again;
	// marks are among them (owner.go).
	SetTargets
	// Attach puts Op.Interface into Op.Tables, because it may have inherited others from an
	// earlier interface with its index, and then gives it the nodes of CNAT that it lacks.
	Attach
	// PutRow creates Op.Row, or replaces the backends of the row with its key. Sessions stay.
	PutRow
	// DelRow deletes the row Op.Key, which has Op.ID. Sessions stay.
	DelRow
	// Detach takes the nodes from Op.Interface.
	Detach
)

// String returns the name of the operation, in texts and metrics.
func (v Verb) String() string {
	return batch.Name([]string{SetSNAT: "set-snat", SetTargets: "set-targets", Attach: "attach", PutRow: "put-row", DelRow: "delete-row", Detach: "detach"}, v)
}

// Op is one step from what VPP holds to what it should hold. Only the fields that its verb names
// have a meaning.
type Op struct {
	// Verb says what is done.
	Verb Verb

	// Of operations on rows; DiffRow sets them, and Apply Below and the ID of PutRow.

	// Key of the row.
	Key rule.Key
	// Row is what PutRow creates; shared, not to be changed.
	Row *Row
	// Why is why DelRow deletes a row that PutRow adds again; "" = the row is gone.
	Why string
	// ID of the row for DelRow; for PutRow, Apply fills it in.
	ID uint32
	// Below is the covering route that answers with ICMP, where Apply has refused PutRow with
	// ErrBelowICMP.
	Below netip.Prefix

	// Of operations on settings and interfaces; DiffSettings sets them.

	// SNAT are the addresses to be set.
	SNAT SNAT
	// Add are networks to exclude from source NAT, Del are networks to include again; not to be
	// changed.
	Add, Del []netip.Prefix
	// Interface is a sw_if_index, Tables are its wanted tables.
	Interface uint32
	Tables    Tables
	// Moved says that the interface has the nodes already, with other tables.
	Moved bool
	// IPv4 says whether Attach and Detach include the nodes of IPv4.
	IPv4 bool
	// Newer is copied from the State. Held says that SetSNAT replaces an SNAT address.
	Newer, Held bool
}

// OnRow reports whether the operation changes a row, so that Key is set.
func (op Op) OnRow() bool { return op.Verb == PutRow || op.Verb == DelRow }

// Describe returns the operation as one line, for journals and diffs.
func (op Op) Describe() string {
	switch op.Verb {
	case SetSNAT:
		return fmt.Sprintf("replace sources by %s and %s, as Kubernetes does", op.SNAT[0], op.SNAT[1])
	case SetTargets:
		more, fewer := networks(op.Add), networks(op.Del)
		if more+fewer == 0 {
			return "mark the settings of CNAT"
		}
		return fmt.Sprintf("keep sources on the way to %d networks more, %d fewer", more, fewer)
	case Attach:
		return fmt.Sprintf("attach CNAT to interface %d%s", op.Interface, op.Tables)
	case Detach:
		return fmt.Sprintf("detach CNAT from interface %d", op.Interface)
	case PutRow:
		return fmt.Sprintf("put translation %s -> %d backends", op.Key, len(op.Row.Backends))
	case DelRow:
		if op.Why != "" {
			return fmt.Sprintf("delete translation %s, replaced: %s", op.Key, op.Why)
		}
		return fmt.Sprintf("delete translation %s", op.Key)
	default:
		return op.Verb.String()
	}
}

// String is Describe.
func (op Op) String() string { return op.Describe() }

// String names the tables after the interface that is in them.
func (t Tables) String() string {
	switch {
	case t.Host:
		return " of the host"
	case t.Outside:
		return ""
	default:
		return " of a pod"
	}
}
