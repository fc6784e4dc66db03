package model

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerACL registers the messages of the acl plugin about ip lists; messages about MAC addresses
// answer "unimplemented".
func registerACL(r Registry) {
	// ACLAddReplace adds an ACL under a new index, or replaces the rules of one in place, which
	// keeps its interfaces and the flows of reflecting rules.
	write(r, func(c *Call, req *acl.ACLAddReplace) {
		index := req.ACLIndex
		list, retval := decodeACL(req)
		if retval == vnet.RetOK {
			index, retval = c.ACLs.AddReplace(index, list)
		}
		c.Reply(&acl.ACLAddReplaceReply{ACLIndex: index, Retval: retval})
	})
	// ACLDel refuses an ACL that an interface uses, with different return codes for input and
	// output lists.
	write(r, func(c *Call, req *acl.ACLDel) {
		c.Reply(&acl.ACLDelReply{Retval: c.ACLs.Del(req.ACLIndex)})
	})
	// ACLInterfaceAddDel changes one entry of the list of an interface. The position of a new entry
	// is the end of the list.
	write(r, func(c *Call, req *acl.ACLInterfaceAddDel) {
		retval := vnet.RetInvalidSwIfIndex
		if swIf := uint32(req.SwIfIndex); c.Interface(swIf) != nil {
			retval = c.ACLs.AddDel(swIf, req.IsInput, req.IsAdd, req.ACLIndex)
		}
		c.Reply(&acl.ACLInterfaceAddDelReply{Retval: retval})
	})
	// ACLInterfaceSetACLList sets both lists of an interface: the first n_input indices are the
	// input list, the others the output list.
	write(r, func(c *Call, req *acl.ACLInterfaceSetACLList) {
		retval := vnet.RetInvalidSwIfIndex
		if swIf := uint32(req.SwIfIndex); c.Interface(swIf) != nil {
			inputs := min(int(req.NInput), len(req.Acls))
			retval = c.ACLs.SetBoth(swIf, req.Acls[:inputs], req.Acls[inputs:])
		}
		c.Reply(&acl.ACLInterfaceSetACLListReply{Retval: retval})
	})
	// ACLDump lists one ACL, or all of them for ~0.
	Read(r, func(c *Call, req *acl.ACLDump) {
		for index, l := range c.ACLs.All.All {
			if req.ACLIndex == vnet.None || req.ACLIndex == index {
				c.Reply(&acl.ACLDetails{ACLIndex: index, Tag: l.Tag, R: encodeACL(l.Rules)})
			}
		}
	})
	Read(r, aclInterfaceListDump)
}

// maxACLTag is the longest tag: VPP refuses one that has no NUL in its field.
const maxACLTag = 63

// decodeACL checks an ACL as VPP does, rule by rule, and decodes it.
func decodeACL(req *acl.ACLAddReplace) (*aclList, int32) {
	if len(req.Tag) > maxACLTag {
		return nil, vnet.RetInvalidValue
	}
	l := &aclList{Tag: req.Tag, Rules: make([]aclRule, len(req.R))}
	for i, w := range req.R {
		src, ok := aclPrefix(w.SrcPrefix)
		if !ok {
			return nil, vnet.RetInvalidSrcAddress
		}
		dst, ok := aclPrefix(w.DstPrefix)
		if !ok {
			return nil, vnet.RetInvalidDstAddress
		}
		if src.Addr().Is4() != dst.Addr().Is4() {
			return nil, vnet.RetInvalidSrcAddress
		}
		if w.SrcportOrIcmptypeFirst > w.SrcportOrIcmptypeLast || w.DstportOrIcmpcodeFirst > w.DstportOrIcmpcodeLast {
			return nil, vnet.RetInvalidValue2
		}
		l.Rules[i] = aclRule{
			Action: aclAction(w.IsPermit), Src: src, Dst: dst, Proto: uint8(w.Proto),
			SrcPort: [2]uint16{w.SrcportOrIcmptypeFirst, w.SrcportOrIcmptypeLast},
			DstPort: [2]uint16{w.DstportOrIcmpcodeFirst, w.DstportOrIcmpcodeLast},
			Flags:   vnet.TCPFlags(w.TCPFlagsValue), Mask: vnet.TCPFlags(w.TCPFlagsMask),
		}
	}
	return l, vnet.RetOK
}

// aclPrefix decodes the prefix of a rule. VPP refuses host bits.
func aclPrefix(w ip_types.Prefix) (netip.Prefix, bool) {
	if w.Address.Af != ip_types.ADDRESS_IP4 && w.Address.Af != ip_types.ADDRESS_IP6 {
		return netip.Prefix{}, false
	}
	p, ok := FromPrefix(w)
	return p, ok && p == p.Masked()
}

// encodeACL encodes the rules of an ACL.
func encodeACL(rules []aclRule) []acl_types.ACLRule {
	encoded := make([]acl_types.ACLRule, len(rules))
	for i, r := range rules {
		encoded[i] = acl_types.ACLRule{
			IsPermit: acl_types.ACLAction(r.Action), SrcPrefix: forwarding.Prefix(r.Src), DstPrefix: forwarding.Prefix(r.Dst), Proto: ip_types.IPProto(r.Proto),
			SrcportOrIcmptypeFirst: r.SrcPort[0], SrcportOrIcmptypeLast: r.SrcPort[1],
			DstportOrIcmpcodeFirst: r.DstPort[0], DstportOrIcmpcodeLast: r.DstPort[1],
			TCPFlagsMask: uint8(r.Mask), TCPFlagsValue: uint8(r.Flags),
		}
	}
	return encoded
}

// aclInterfaceListDump lists the ACLs of one interface, or of all interfaces for ~0, also of
// interfaces without ACLs.
func aclInterfaceListDump(c *Call, req *acl.ACLInterfaceListDump) {
	for index := range c.Interfaces.All {
		if uint32(req.SwIfIndex) != vnet.None && uint32(req.SwIfIndex) != index {
			continue
		}
		l := c.ACLs.Of(index)
		c.Reply(&acl.ACLInterfaceListDetails{
			SwIfIndex: interface_types.InterfaceIndex(index), NInput: uint8(len(l.In)), Acls: slices.Concat(l.In, l.Out),
		})
	}
}
