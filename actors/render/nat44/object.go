package nat44

import (
	"cmp"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// part is the kind of an object, in the order in which they are brought to VPP.
type part uint8

const (
	lists   part = iota // rules that access lists lack
	row                 // the row of a frontend
	surplus             // rules that access lists have too many of
)

// object names what the renderer keeps in VPP: the rows by their frontends, and the access lists in
// front of all rows as two objects.
type object struct {
	rule.Key
	part part
}

// String is the frontend of a row.
func (o object) String() string {
	switch o.part {
	case lists:
		return "access lists"
	case surplus:
		return "superfluous access lists"
	default:
		return o.Key.String()
	}
}

// compare orders objects.
func compare(a, b object) int { return cmp.Or(cmp.Compare(a.part, b.part), a.Key.Compare(b.Key)) }

// rowOf is the object of a row.
func rowOf(k rule.Key) object { return object{k, row} }

// Objects of the access lists.
var (
	missingLists = object{part: lists}
	extraLists   = object{part: surplus}
)
