package acl

import (
	"maps"
	"slices"
)

// Want is what VPP should drop, and where.
type Want struct {
	// Rules of all services, as Merge returns them.
	Rules []Rule
	// Interfaces by sw_if_index: which clients enter there. No rule stands on any other interface.
	Interfaces map[uint32]Class
}

// Diff returns the least operations that turn what VPP holds into what it should hold, in an order that is safe at every step: ACLs are
// made before they are attached and detached before they are deleted; ACLs that are attached are changed in place; the list of an
// interface changes in one step, never to deny ACLs alone. No packet has a fate on the way that it has neither before nor after, unless the
// class of its interface changes. With sweep false nothing that is dropped already stops being dropped: rules
// are added only, what VPP has of them stands on all interfaces of its class, and nothing is detached or deleted, but what is missing
// or dangerous is put right. Use it until every service has spoken,
// and before rows are changed; use sweep when they have been. Equal arguments give equal results; a state that is as wanted gives none.
func Diff(have *State, want *Want, sweep bool) []Op {
	d := &differ{have: have, want: want, sweep: sweep, rules: map[string][]Rule{}, used: map[string]bool{}}
	for _, class := range classes {
		d.rules[DenyTag(class)] = d.target(class)
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
	// used are the tags of ours that stand in a list when all is done.
	used map[string]bool
}

// target returns the rules that the ACL of a class should have.
func (d *differ) target(class Class) []Rule {
	rules := forInterface(d.want.Rules, class)
	if d.sweep {
		return rules
	}
	tag := DenyTag(class)
	rules = append(rules, d.have.ACLs[tag].Rules...)
	for _, spare := range d.have.Spare {
		if spare.Tag == tag {
			rules = append(rules, spare.Rules...)
		}
	}
	return Minimal(rules)
}

// contents creates the ACLs that are used and not there, and replaces those that are used and differ.
func (d *differ) contents() []Op {
	var created, replaced []Op
	for _, tag := range slices.Sorted(maps.Keys(d.used)) {
		acl, found := d.have.ACLs[tag]
		switch op := (Op{Verb: Create, Tag: tag, Index: none, Rules: d.rules[tag]}); {
		case !found:
			created = append(created, op)
		case acl.odd || !slices.Equal(acl.Rules, op.Rules):
			op.Verb, op.Index = Replace, acl.Index
			replaced = append(replaced, op)
		}
	}
	return append(created, replaced...)
}

// lists sets the input list of every interface that differs, ordered by index. Interfaces that ours leave altogether come first, so that they
// do not see rules that are added for the others only.
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

// input returns what the input list of an interface should be: our deny ACL, then what others have put there, or our permitting ACL where
// there is nothing of others.
func (d *differ) input(index uint32, was Lists) []Ref {
	others := d.have.others(was.Input)
	deny := DenyTag(d.want.Interfaces[index])
	if len(d.rules[deny]) == 0 {
		deny = ""
	}
	if deny == "" && !d.sweep {
		deny = d.attached(was)
	}
	if deny == "" {
		return refs(others)
	}
	input := append([]Ref{d.ref(deny)}, refs(others)...)
	if len(others) == 0 {
		input = append(input, d.ref(PermitTag))
	}
	return input
}

// attached returns the tag of the deny ACL of ours that stands on an interface and has rules.
func (d *differ) attached(lists Lists) string {
	for _, index := range lists.Input {
		if tag, ours := d.have.TagOf(index); ours && len(d.rules[tag]) > 0 {
			return tag
		}
	}
	return ""
}

// ref names an ACL of ours and notes that it is used.
func (d *differ) ref(tag string) Ref {
	d.used[tag] = true
	if acl, found := d.have.ACLs[tag]; found {
		return Ref{Tag: tag, Index: acl.Index}
	}
	return Ref{Tag: tag, Index: none}
}

// refs names ACLs of others.
func refs(list []uint32) []Ref {
	var named []Ref
	for _, index := range list {
		named = append(named, Ref{Index: index})
	}
	return named
}

// deletions removes the ACLs of ours that are not used. Should somebody have put one into an output list it stays: VPP would not delete it.
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
