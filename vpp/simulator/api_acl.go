package simulator

import (
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// registerACL registers the messages of the acl plugin about ip lists; those
// about MAC addresses answer "unimplemented".
func registerACL(r registry) {
	write(r, aclAddReplace)
	write(r, aclDel)
	write(r, aclInterfaceAddDel)
	write(r, aclInterfaceSetList)
	read(r, aclDump)
	read(r, aclInterfaceListDump)
	read(r, aclGetVersion)
}

// maxACLTag is the longest tag: VPP refuses one that has no NUL in its field.
const maxACLTag = 63

func aclAddReplace(c *call, req *acl.ACLAddReplace) {
	index := req.ACLIndex
	list, retval := decodeACL(req)
	if retval == retOK {
		index, retval = c.acls.addReplace(index, list)
	}
	c.reply(&acl.ACLAddReplaceReply{ACLIndex: index, Retval: retval})
}

// decodeACL checks an ACL as VPP does, rule by rule, and decodes it.
func decodeACL(req *acl.ACLAddReplace) (*accessList, int32) {
	if len(req.Tag) > maxACLTag {
		return nil, retInvalidValue
	}
	l := &accessList{tag: req.Tag, rules: make([]aclRule, len(req.R))}
	for i, w := range req.R {
		src, ok := aclPrefix(w.SrcPrefix)
		if !ok {
			return nil, retInvalidSrcAddress
		}
		dst, ok := aclPrefix(w.DstPrefix)
		if !ok {
			return nil, retInvalidDstAddress
		}
		if src.Addr().Is4() != dst.Addr().Is4() {
			return nil, retInvalidSrcAddress
		}
		if w.SrcportOrIcmptypeFirst > w.SrcportOrIcmptypeLast || w.DstportOrIcmpcodeFirst > w.DstportOrIcmpcodeLast {
			return nil, retInvalidValue2
		}
		l.rules[i] = aclRule{
			action: aclAction(w.IsPermit), src: src, dst: dst, proto: uint8(w.Proto),
			srcPort: [2]uint16{w.SrcportOrIcmptypeFirst, w.SrcportOrIcmptypeLast},
			dstPort: [2]uint16{w.DstportOrIcmpcodeFirst, w.DstportOrIcmpcodeLast},
			flags:   TCPFlags(w.TCPFlagsValue), mask: TCPFlags(w.TCPFlagsMask),
		}
	}
	return l, retOK
}

// aclPrefix decodes the prefix of a rule. VPP refuses host bits.
func aclPrefix(w ip_types.Prefix) (netip.Prefix, bool) {
	if w.Address.Af != ip_types.ADDRESS_IP4 && w.Address.Af != ip_types.ADDRESS_IP6 {
		return netip.Prefix{}, false
	}
	p, ok := fromPrefix(w)
	return p, ok && p == p.Masked()
}

func aclDel(c *call, req *acl.ACLDel) {
	c.reply(&acl.ACLDelReply{Retval: c.acls.del(req.ACLIndex)})
}

func aclInterfaceAddDel(c *call, req *acl.ACLInterfaceAddDel) {
	retval := retInvalidSwIfIndex
	if swIf := uint32(req.SwIfIndex); c.iface(swIf) != nil {
		retval = c.acls.addDel(swIf, req.IsInput, req.IsAdd, req.ACLIndex)
	}
	c.reply(&acl.ACLInterfaceAddDelReply{Retval: retval})
}

func aclInterfaceSetList(c *call, req *acl.ACLInterfaceSetACLList) {
	retval := retInvalidSwIfIndex
	if swIf := uint32(req.SwIfIndex); c.iface(swIf) != nil {
		inputs := min(int(req.NInput), len(req.Acls))
		retval = c.acls.setBoth(swIf, req.Acls[:inputs], req.Acls[inputs:])
	}
	c.reply(&acl.ACLInterfaceSetACLListReply{Retval: retval})
}

// aclDump lists one ACL, or all of them for ~0.
func aclDump(c *call, req *acl.ACLDump) {
	for index, l := range c.acls.all.all {
		if req.ACLIndex == none || req.ACLIndex == index {
			c.reply(&acl.ACLDetails{ACLIndex: index, Tag: l.tag, R: encodeACL(l.rules)})
		}
	}
}

func encodeACL(rules []aclRule) []acl_types.ACLRule {
	encoded := make([]acl_types.ACLRule, len(rules))
	for i, r := range rules {
		encoded[i] = acl_types.ACLRule{
			IsPermit: acl_types.ACLAction(r.action), SrcPrefix: toPrefix(r.src), DstPrefix: toPrefix(r.dst), Proto: ip_types.IPProto(r.proto),
			SrcportOrIcmptypeFirst: r.srcPort[0], SrcportOrIcmptypeLast: r.srcPort[1],
			DstportOrIcmpcodeFirst: r.dstPort[0], DstportOrIcmpcodeLast: r.dstPort[1],
			TCPFlagsMask: uint8(r.mask), TCPFlagsValue: uint8(r.flags),
		}
	}
	return encoded
}

// aclInterfaceListDump lists the ACLs of one interface, or of all interfaces
// for ~0; those without ACLs too.
func aclInterfaceListDump(c *call, req *acl.ACLInterfaceListDump) {
	for index := range c.interfaces.all {
		if uint32(req.SwIfIndex) != none && uint32(req.SwIfIndex) != index {
			continue
		}
		l := c.acls.of(index)
		c.reply(&acl.ACLInterfaceListDetails{
			SwIfIndex: interface_types.InterfaceIndex(index), NInput: uint8(len(l.in)), Acls: slices.Concat(l.in, l.out),
		})
	}
}

func aclGetVersion(c *call, _ *acl.ACLPluginGetVersion) {
	c.reply(&acl.ACLPluginGetVersionReply{Major: 1, Minor: 4})
}

// describeACLs lists the ACLs with their rules.
func (m *model) describeACLs() []string {
	var lines []string
	for index, l := range m.acls.all.all {
		lines = append(lines, fmt.Sprintf("%3d %q %d rules", index, l.tag, len(l.rules)))
		for i, r := range l.rules {
			action := [...]string{"deny", "permit", "permit+reflect"}[min(int(r.action), int(aclReflect))]
			lines = append(lines, fmt.Sprintf("%3d rule %5d %s %s > %s proto %d ports %d-%d > %d-%d", index, i, action, r.src, r.dst, r.proto,
				r.srcPort[0], r.srcPort[1], r.dstPort[0], r.dstPort[1]))
		}
	}
	for swIf, l := range m.acls.lists {
		lines = append(lines, fmt.Sprintf("on %s input %v output %v", m.nameOf(swIf), l.in, l.out))
	}
	return lines
}
