package routes

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Verb is the kind of an operation.
type Verb uint8

// The operations, in the order in which Diff uses them.
const (
	// Register registers our source, unless VPP has it already.
	Register Verb = iota + 1
	// Add adds a route, or replaces it.
	Add
	// Delete deletes a route.
	Delete
)

// String returns the name of the operation.
func (v Verb) String() string {
	return batch.Name([]string{Register: "register-source", Add: "add-route", Delete: "delete-route"}, v)
}

// Op is one step from what VPP holds to what it should hold. Only the fields that its verb names
// have a meaning.
type Op struct {
	// Verb says what is done.
	Verb Verb
	// Source is the id of the source in the State: for Add the current one, 0 where the same
	// batch registers it; for Delete the source of the route. Apply replaces it by the id that
	// it has found.
	Source uint8
	// Prefix of the route, for Add and Delete.
	Prefix netip.Prefix
	// Route, for Add.
	Route
	// By is the route that leads to the address, where Apply has refused Add with ErrCovered.
	By netip.Prefix
}

// Check returns an error that wraps link.ErrUnsafe where the operation must not be sent: a prefix
// that is not masked or that covers every address, an address that no service can have, an unknown
// kind. Deletions of our routes are always safe.
func (op Op) Check() error {
	why := ""
	switch {
	case op.Verb == Add && (op.Kind < Drop || op.Kind > Local):
		why = "no such kind"
	case op.Verb == Add:
		why = checkPrefix(op.Prefix)
	case op.Verb == Delete && (!op.Prefix.IsValid() || op.Source == noSource):
		why = "no such route"
	}
	if why != "" {
		return fmt.Errorf("%s: %w: %s", op.Describe(), link.ErrUnsafe, why)
	}
	return nil
}

// checkPrefix returns why a prefix must not have a route of ours; "" = it may.
func checkPrefix(p netip.Prefix) string {
	switch {
	case !p.IsValid():
		return "not a prefix"
	case p.Bits() == 0:
		return "it covers every address"
	case p != p.Masked():
		return "it has host bits"
	case !usable(p.Addr()):
		return "not a network of services"
	default:
		return ""
	}
}

// Describe returns the operation as one line, for journals and diffs.
func (op Op) Describe() string {
	switch op.Verb {
	case Register:
		return fmt.Sprintf("register FIB source %s with priority %d", sourceName, sourcePriority)
	case Add:
		return fmt.Sprintf("add %s route %s", op.Route, op.Prefix)
	case Delete:
		return fmt.Sprintf("delete route %s of source %d", op.Prefix, op.Source)
	default:
		return op.Verb.String()
	}
}

// String is Describe.
func (op Op) String() string { return op.Describe() }
