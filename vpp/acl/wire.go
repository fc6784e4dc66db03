package acl

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
)

// maxPort is the end of a range of all ports.
const maxPort = 65535

// Message returns the binary API message of an operation; nil for an unknown one.
func Message(op Op) api.Message {
	switch op.Verb {
	case Create, Replace:
		return &acl.ACLAddReplace{ACLIndex: op.Index, Tag: op.Tag, R: wireRules(op.Tag, op.Rules)}
	case SetLists:
		return &acl.ACLInterfaceSetACLList{
			SwIfIndex: interface_types.InterfaceIndex(op.Interface), NInput: uint8(len(op.Input)),
			Acls: append(indices(op.Input), op.Was.Output...),
		}
	case Delete:
		return &acl.ACLDel{ACLIndex: op.Index}
	default:
		return nil
	}
}

// wireRules returns the content of one of our ACLs.
func wireRules(tag string, rules []Rule) []acl_types.ACLRule {
	if tag == PermitTag {
		return permits()
	}
	wired := make([]acl_types.ACLRule, len(rules))
	for i, r := range rules {
		wired[i] = wireRule(r)
	}
	return wired
}

// permits returns the two rules that permit everything: a rule is for one family. Permitting
// without reflection creates no sessions.
func permits() []acl_types.ACLRule {
	all := make([]acl_types.ACLRule, 2)
	for i, addr := range [...]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		everything := forwarding.Prefix(allAddresses(addr))
		all[i] = acl_types.ACLRule{
			IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcPrefix: everything, DstPrefix: everything,
			SrcportOrIcmptypeLast: maxPort, DstportOrIcmpcodeLast: maxPort,
		}
	}
	return all
}

// wireRule translates a rule.
func wireRule(r Rule) acl_types.ACLRule {
	return acl_types.ACLRule{
		IsPermit: acl_types.ACL_ACTION_API_DENY, SrcPrefix: forwarding.Prefix(r.From), DstPrefix: forwarding.Prefix(netip.PrefixFrom(r.VIP, r.VIP.BitLen())),
		Proto: ip_types.IPProto(r.Proto), SrcportOrIcmptypeLast: maxPort, DstportOrIcmpcodeFirst: r.Port, DstportOrIcmpcodeLast: r.Port,
	}
}

// ruleOf is the reverse of wireRule; false for a rule that it never writes.
func ruleOf(class Class, w acl_types.ACLRule) (Rule, bool) {
	r := Rule{
		Class: class, VIP: forwarding.FromPrefix(w.DstPrefix).Addr(), Port: w.DstportOrIcmpcodeFirst, Proto: uint8(w.Proto),
		From: forwarding.FromPrefix(w.SrcPrefix),
	}
	return r, r.valid() && wireRule(r) == w
}

// aclOf translates one of our ACLs as VPP holds it. Content that this package never writes under
// the tag makes it odd; the rules that it can translate are kept, so that Compare still sees what
// VPP drops.
func aclOf(d *acl.ACLDetails) ACL {
	held := ACL{Index: d.ACLIndex, Tag: d.Tag}
	class, deny := classOfTag(d.Tag)
	if !deny {
		held.odd = d.Tag != PermitTag || !slices.Equal(d.R, permits())
		return held
	}
	for _, w := range d.R {
		if r, ok := ruleOf(class, w); ok {
			held.Rules = append(held.Rules, r)
		} else {
			held.odd = true
		}
	}
	minimal := Minimal(held.Rules)
	held.odd = held.odd || !slices.Equal(minimal, held.Rules)
	held.Rules = minimal
	return held
}
