package acl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/acl"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Read reads the ACLs and the lists of all interfaces from VPP, in two dumps; a change that another
// client makes between them may be seen in part. The dump includes the rules of other owners,
// because VPP has no dump by tag; Read discards them. An error wraps what the link reports;
// errors.Is(err, link.ErrUnsupported) means that the ACL plugin is not loaded.
func Read(ctx context.Context, c link.Caller) (*State, error) {
	state := NewState()
	err := link.Each(ctx, c, &acl.ACLDump{ACLIndex: none}, func(d *acl.ACLDetails) {
		if Ours(d.Tag) {
			state.adopt(aclOf(d))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read ACLs: %w", err)
	}
	if state.Lists, err = readLists(ctx, c); err != nil {
		return nil, err
	}
	return state, nil
}

// adopt enters an ACL with our tag. Of several with the same tag the one with the smallest index is
// used.
func (s *State) adopt(a ACL) {
	_, deny := classOfTag(a.Tag)
	other, found := s.ACLs[a.Tag]
	switch {
	case !deny && a.Tag != PermitTag, found && other.Index < a.Index:
		s.Spare[a.Index] = a
		return
	case found:
		s.Spare[other.Index] = other
	}
	s.ACLs[a.Tag] = a
}

// readLists reads the lists of all interfaces that have any.
func readLists(ctx context.Context, c link.Caller) (map[uint32]Lists, error) {
	all := map[uint32]Lists{}
	err := link.Each(ctx, c, &acl.ACLInterfaceListDump{SwIfIndex: interface_types.InterfaceIndex(none)}, func(d *acl.ACLInterfaceListDetails) {
		if inputs := min(int(d.NInput), len(d.Acls)); len(d.Acls) > 0 {
			all[uint32(d.SwIfIndex)] = Lists{Input: d.Acls[:inputs:inputs], Output: d.Acls[inputs:]}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read ACLs of interfaces: %w", err)
	}
	return all, nil
}

// Others describes where access lists of other owners are: "enter at pod1 (TAG), pod2 (TAG)" where
// packets enter, and "leave at ..." where they leave; "" = there are none.
func Others(ctx context.Context, c link.Caller) (enter, leave string, err error) {
	tags, names := map[uint32]string{}, map[uint32]string{}
	err = link.Each(ctx, c, &acl.ACLDump{ACLIndex: none}, func(d *acl.ACLDetails) {
		if !Ours(d.Tag) {
			tags[d.ACLIndex] = cmp.Or(d.Tag, fmt.Sprint("list ", d.ACLIndex))
		}
	})
	if errors.Is(err, link.ErrUnsupported) {
		return "", "", nil // without the plugin there are none
	}
	lists, failed := readLists(ctx, c)
	err = cmp.Or(err, failed, link.Each(ctx, c, &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(none)}, func(d *interfaces.SwInterfaceDetails) {
		names[uint32(d.SwIfIndex)] = d.InterfaceName
	}))
	if err != nil {
		return "", "", fmt.Errorf("read access lists of others: %w", err)
	}
	describe := func(what string, of func(Lists) []uint32) string {
		var found []string
		for _, i := range slices.Sorted(maps.Keys(lists)) {
			for _, index := range of(lists[i]) {
				if tag := tags[index]; tag != "" {
					found = append(found, fmt.Sprintf("%s (%s)", names[i], tag))
				}
			}
		}
		const most = 3
		switch n := len(found); {
		case n == 0:
			return ""
		case n > most:
			found = append(found[:most], fmt.Sprintf("%d more", n-most))
		}
		return what + strings.Join(found, ", ")
	}
	return describe("enter at ", func(l Lists) []uint32 { return l.Input }), describe("leave at ", func(l Lists) []uint32 { return l.Output }), nil
}
