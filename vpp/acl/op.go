package acl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Verb is the kind of an operation.
type Verb uint8

// The operations, in the order in which Diff uses them.
const (
	// Create creates the ACL Op.Tag with Op.Rules. No interface refers to it yet.
	Create Verb = iota + 1
	// Replace gives the ACL Op.Index the rules Op.Rules in place: its interfaces are never without
	// rules.
	Replace
	// SetLists sets the input ACLs of Op.Interface to Op.Input. VPP does it in one step.
	SetLists
	// Delete deletes the ACL Op.Index, which is on no interface any more.
	Delete
)

// verbs are the names of the operations in texts and metrics.
var verbs = [...]string{Create: "create-acl", Replace: "replace-acl", SetLists: "set-acl-lists", Delete: "delete-acl"}

// String returns the name of the operation.
func (v Verb) String() string { return batch.Name(verbs[:], v) }

// Ref refers to an ACL in a list.
type Ref struct {
	// Tag is set for our ACLs.
	Tag string
	// Index is VPP's acl_index; ~0 for one that an earlier operation creates.
	Index uint32
}

// String returns the tag or the index.
func (r Ref) String() string {
	if r.Tag != "" {
		return r.Tag
	}
	return strconv.FormatUint(uint64(r.Index), 10)
}

// indices returns the indices of a list.
func indices(refs []Ref) []uint32 {
	var list []uint32
	for _, ref := range refs {
		list = append(list, ref.Index)
	}
	return list
}

// Op is one step from what VPP holds to what it should hold. Only the fields that its verb names
// have a meaning.
type Op struct {
	// Verb says what is done.
	Verb Verb
	// Tag of the ACL, for Create, Replace and Delete.
	Tag string
	// Index of the ACL in VPP. For Create, Apply enters it.
	Index uint32
	// Rules of a deny ACL; nil for the permitting one. Shared, not to be changed.
	Rules []Rule
	// Interface is a sw_if_index.
	Interface uint32
	// Was are the lists of the interface that Diff saw. Apply refuses the operation where they have
	// changed.
	Was Lists
	// Input is the new input list. The output list stays as it is.
	Input []Ref
}

// Check returns an error that wraps link.ErrUnsafe where the operation would cut off an interface,
// modify an ACL of another owner, or exceed a limit of VPP.
func (op Op) Check() error {
	why := ""
	switch op.Verb {
	case Create, Replace:
		why = op.checkRules()
	case SetLists:
		why = op.checkInput()
	case Delete:
		if !Ours(op.Tag) {
			why = "it is not ours"
		}
	default:
		why = "unknown operation"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", op.Describe(), link.ErrUnsafe, why)
}

// checkRules returns what is wrong with the content of an ACL; "" = nothing.
func (op Op) checkRules() string {
	_, deny := classOfTag(op.Tag)
	switch {
	case !deny && op.Tag != PermitTag:
		return "unknown tag"
	case deny && len(op.Rules) == 0:
		return "no rules"
	case !deny && len(op.Rules) > 0:
		return "rules in the permitting ACL"
	case len(op.Rules) > mostRules:
		return fmt.Sprintf("more than %d rules", mostRules)
	}
	for _, r := range op.Rules {
		if !r.valid() {
			return "bad rule: " + r.String()
		}
	}
	return ""
}

// mostRules leaves room for rules that are still to be removed beside the wanted ones.
const mostRules = 2 * MaxRules

// checkInput returns what is wrong with a list; "" = nothing. A list of deny ACLs alone would cut
// off the interface, because VPP drops what no rule matches.
func (op Op) checkInput() string {
	var others []uint32
	denies, permits := 0, 0
	for i, ref := range op.Input {
		switch {
		case ref.Tag == "":
			others = append(others, ref.Index)
		case ref.Tag == PermitTag:
			if permits++; i != len(op.Input)-1 {
				return "the permitting ACL is not the last one"
			}
		default:
			if denies++; i != denies-1 {
				return "a deny ACL is behind others"
			}
		}
	}
	switch {
	case len(op.Input)+len(op.Was.Output) > MaxLists:
		return fmt.Sprintf("more than %d ACLs", MaxLists)
	case permits > 0 && len(others) > 0:
		return "it would permit what ACLs of others drop"
	case denies > 0 && permits == 0 && len(others) == 0:
		return "it would drop everything"
	case slices.ContainsFunc(others, func(index uint32) bool { return !slices.Contains(op.Was.Input, index) }):
		return "it would add an ACL of others"
	}
	return ""
}

// Describe returns the operation as one line, for journals and diffs.
func (op Op) Describe() string {
	switch op.Verb {
	case Create, Replace:
		if op.Tag == PermitTag {
			return fmt.Sprintf("%s %s", op.Verb, op.Tag)
		}
		return fmt.Sprintf("%s %s with %d rules", op.Verb, op.Tag, len(op.Rules))
	case SetLists:
		names := make([]string, len(op.Input))
		for i, ref := range op.Input {
			names[i] = ref.String()
		}
		return fmt.Sprintf("set input ACLs of interface %d to [%s]", op.Interface, strings.Join(names, " "))
	case Delete:
		return fmt.Sprintf("%s %s (index %d)", op.Verb, op.Tag, op.Index)
	default:
		return op.Verb.String()
	}
}

// String is Describe.
func (op Op) String() string { return op.Describe() }

// Errors of this package, for errors.Is. Apply's errors classify the return value of VPP for the
// operation.
var (
	// ErrChanged means that another client has changed the lists of the interface since they
	// were read; nothing was sent: read again.
	ErrChanged = link.Classified("lists of the interface have changed", link.ErrStale)
	// ErrVanished means that an ACL is not in VPP any more (-6): VPP has restarted, or another
	// client deleted it. Read again.
	ErrVanished = link.Classified("acl is not there", link.ErrStale)
	// ErrInUse means that VPP does not delete an ACL because it is on an interface, or another
	// plugin uses it (-142, -143, -149).
	ErrInUse = errors.New("acl is in use")
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = link.Classified("no such interface", link.ErrStale)
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	// retTrue is what acl_interface_set_acl_list returns where the input list is refused: the
	// handler returns a truth value and not the error. VPP has set the output list by then.
	retTrue          = 1
	retNoInterface   = -2
	retNoSuchEntry   = -6
	retInUseInbound  = -142
	retInUseOutbound = -143
	retInUseLookup   = -149
)

// cause is the key of the table in meaningOf.
type cause struct {
	verb   Verb
	retval int32
}

// meaningOf classifies a return value other than 0: nil where the goal of the operation is reached
// nevertheless, batch.ErrRejected where the value has no special meaning. unknown is set where the
// answer contradicts the State.
func meaningOf(op Op, retval int32) (err error, unknown bool) {
	switch (cause{op.Verb, retval}) {
	case cause{Delete, retNoSuchEntry}:
		return nil, false
	case cause{Delete, retInUseInbound}, cause{Delete, retInUseOutbound}, cause{Delete, retInUseLookup}:
		return ErrInUse, true
	case cause{Replace, retNoSuchEntry}, cause{SetLists, retNoSuchEntry}:
		return ErrVanished, true
	case cause{SetLists, retNoInterface}:
		if len(op.Input) == 0 {
			return nil, true // VPP deletes the lists with the interface
		}
		return ErrNoInterface, true
	case cause{SetLists, retTrue}:
		return batch.ErrRejected, true
	}
	return batch.ErrRejected, false
}
