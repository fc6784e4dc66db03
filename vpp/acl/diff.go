package acl

import (
	"maps"
	"slices"
)

// Want is the desired state: what VPP should drop, and on which interfaces.
type Want struct {
	// Rules of all services, as Merge returns them.
	Rules []Rule
	// Interfaces by sw_if_index: which clients enter there. No other interface has rules.
	Interfaces map[uint32]Class
}

// Diff returns the least operations that turn what VPP holds into what it should hold, in an order
// that is safe at every step: ACLs are created before they are attached and detached before they
// are deleted; attached ACLs are changed in place; the list of an interface changes in one step,
// never to deny ACLs alone. At every step a packet is treated as before or as after, unless the
// class of its interface changes.
//
// With sweep false VPP goes on to drop everything that it drops: rules are only added, existing
// ones are attached to all interfaces of their class, and nothing is detached or deleted, except
// lists that would cut off an interface. Use sweep false until every service has rendered, and
// before rows are changed; use sweep true after that. Equal arguments give equal results; a state
// that is as wanted gives none.
func Diff(have *State, want *Want, sweep bool) []Op { return diff(have, want, sweep, fewRules) }

// fewRules is how many rules are changed without regard to their number: for each interface, VPP
// reads all rules for any change.
const fewRules = 512

func diff(have *State, want *Want, sweep bool, few int) []Op {
	d := &differ{have: have, want: want, sweep: sweep, rules: map[string][]Rule{}, first: map[string]bool{}, used: map[string]bool{}}
	for _, class := range classes {
		l := level(d.held(DenyTag(class)), d.held(RecentTag(class)), forInterface(want.Rules, class), d.spare(class), few, sweep)
		d.rules[DenyTag(class)], d.rules[RecentTag(class)] = l.base, l.recent
		d.first[DenyTag(class)] = l.compact
	}
	left, entered := d.lists()
	return slices.Concat(left, d.contents(), entered, d.deletions())
}

// differ collects the operations.
type differ struct {
	have  *State
	want  *Want
	sweep bool
	// rules of every deny ACL by tag.
	rules map[string][]Rule
	// first are the tags of the ACLs that take in the rules of another one.
	first map[string]bool
	// used are our tags that are in a list once all operations are done.
	used map[string]bool
}

// held is one of our ACLs in VPP; nil = it is not there.
func (d *differ) held(tag string) *ACL {
	if acl, found := d.have.ACLs[tag]; found {
		return &acl
	}
	return nil
}

// spare are the rules of a class in ACLs that are to be deleted.
func (d *differ) spare(class Class) (rules []Rule) {
	for _, index := range slices.Sorted(maps.Keys(d.have.Spare)) {
		if of, deny := classOfTag(d.have.Spare[index].Tag); deny && of == class {
			rules = append(rules, d.have.Spare[index].Rules...)
		}
	}
	return rules
}

// contents creates the used ACLs that are missing, and replaces the used ones that differ. Where
// rules move from one ACL to another, the ACL that gets them is replaced first.
func (d *differ) contents() []Op {
	var created, first, later []Op
	for _, tag := range slices.SortedFunc(maps.Keys(d.used), compareTags) {
		acl, found := d.have.ACLs[tag]
		switch op := (Op{Verb: Create, Tag: tag, Index: none, Rules: d.rules[tag]}); {
		case !found:
			created = append(created, op)
		case acl.odd || !slices.Equal(acl.Rules, op.Rules):
			if op.Verb, op.Index = Replace, acl.Index; d.first[tag] {
				first = append(first, op)
			} else {
				later = append(later, op)
			}
		}
	}
	return slices.Concat(created, first, later)
}

// lists sets the input list of every interface that differs, ordered by index. Interfaces that lose
// all of our ACLs come first, so that rules which are added for the others never apply to them.
func (d *differ) lists() (left, entered []Op) {
	indexes := slices.AppendSeq(slices.Collect(maps.Keys(d.want.Interfaces)), maps.Keys(d.have.Lists))
	slices.Sort(indexes)
	for _, index := range slices.Compact(indexes) {
		was := d.have.Lists[index]
		input := d.input(index, was)
		if slices.Equal(indices(input), was.Input) {
			continue
		}
		op := Op{Verb: SetLists, Interface: index, Was: was, Input: input}
		if slices.ContainsFunc(input, func(ref Ref) bool { return ref.Tag != "" }) {
			entered = append(entered, op)
		} else {
			left = append(left, op)
		}
	}
	return left, entered
}

// input returns the wanted input list of an interface: our deny ACLs, then the ACLs of other
// owners, or our permitting ACL where there are none.
func (d *differ) input(index uint32, was Lists) []Ref {
	others := d.have.others(was.Input)
	denies := slices.DeleteFunc(denyTags(d.want.Interfaces[index]), func(tag string) bool { return len(d.rules[tag]) == 0 })
	if len(denies) == 0 && !d.sweep {
		denies = d.attached(was)
	}
	if len(denies) == 0 {
		return refs(others)
	}
	var input []Ref
	for _, tag := range denies {
		input = append(input, d.ref(tag))
	}
	input = append(input, refs(others)...)
	if len(others) == 0 {
		input = append(input, d.ref(PermitTag))
	}
	return input
}

// attached returns the tags of our deny ACLs that are on an interface and have rules.
func (d *differ) attached(lists Lists) (tags []string) {
	for _, index := range lists.Input {
		if tag, ours := d.have.TagOf(index); ours && len(d.rules[tag]) > 0 && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// ref returns a reference to one of our ACLs and marks it as used.
func (d *differ) ref(tag string) Ref {
	d.used[tag] = true
	if acl, found := d.have.ACLs[tag]; found {
		return Ref{Tag: tag, Index: acl.Index}
	}
	return Ref{Tag: tag, Index: none}
}

// refs returns references to ACLs of other owners.
func refs(list []uint32) []Ref {
	var named []Ref
	for _, index := range list {
		named = append(named, Ref{Index: index})
	}
	return named
}

// deletions removes our ACLs that are not used. An ACL that another client has put into an output
// list stays, because VPP refuses to delete it.
func (d *differ) deletions() []Op {
	if !d.sweep {
		return nil
	}
	output := map[uint32]bool{}
	for _, lists := range d.have.Lists {
		for _, index := range lists.Output {
			output[index] = true
		}
	}
	var ops []Op
	for _, tag := range slices.Sorted(maps.Keys(d.have.ACLs)) {
		if index := d.have.ACLs[tag].Index; !d.used[tag] && !output[index] {
			ops = append(ops, Op{Verb: Delete, Tag: tag, Index: index})
		}
	}
	for _, index := range slices.Sorted(maps.Keys(d.have.Spare)) {
		if !output[index] {
			ops = append(ops, Op{Verb: Delete, Tag: d.have.Spare[index].Tag, Index: index})
		}
	}
	return ops
}
