package acl

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// vpp is VPP's ACL plugin, reduced to what its messages mean: it returns VPP's return values and
// decides which packets pass. It is a link.Caller.
type vpp struct {
	acls       map[uint32]*acl.ACLAddReplace
	interfaces map[uint32]Lists
	// refuse returns the error with which a message is answered instead of being carried out;
	// nil = carry it out.
	refuse func(api.Message) error
	// down is the error of every call.
	down error
	sent []string
}

// newVPP has interfaces 1 to n.
func newVPP(n int) *vpp {
	v := &vpp{acls: map[uint32]*acl.ACLAddReplace{}, interfaces: map[uint32]Lists{}}
	for i := range n {
		v.interfaces[uint32(i+1)] = Lists{}
	}
	return v
}

func (v *vpp) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	if v.down != nil {
		return nil, v.down
	}
	results := make([]link.Result, len(reqs))
	for i, req := range reqs {
		v.sent = append(v.sent, req.GetMessageName())
		if v.refuse != nil {
			if results[i].Err = v.refuse(req); results[i].Err != nil {
				continue
			}
		}
		results[i] = v.execute(req)
	}
	return results, nil
}

// execute carries out one message.
func (v *vpp) execute(req api.Message) link.Result {
	retval := int32(0)
	switch m := req.(type) {
	case *acl.ACLAddReplace:
		index, code := v.addReplace(m)
		// a link that looks at the first field only
		return link.Result{Reply: &acl.ACLAddReplaceReply{ACLIndex: index, Retval: code}}
	case *acl.ACLDel:
		retval = v.del(m.ACLIndex)
	case *acl.ACLInterfaceSetACLList:
		retval = v.set(uint32(m.SwIfIndex), m.Acls[:m.NInput], m.Acls[m.NInput:])
	default:
		panic(fmt.Sprintf("unexpected %s", req.GetMessageName()))
	}
	if retval != 0 {
		return link.Result{Err: &link.RetvalError{Message: req.GetMessageName(), Retval: retval}}
	}
	return link.Result{}
}

func (v *vpp) addReplace(m *acl.ACLAddReplace) (uint32, int32) {
	index := m.ACLIndex
	if index == none {
		for index = 0; v.acls[index] != nil; index++ {
		}
	} else if v.acls[index] == nil {
		return index, retNoSuchEntry
	}
	v.acls[index] = m
	return index, 0
}

func (v *vpp) del(index uint32) int32 {
	if v.acls[index] == nil {
		return retNoSuchEntry
	}
	for _, lists := range v.interfaces {
		if slices.Contains(lists.Input, index) {
			return retInUseInbound
		}
		if slices.Contains(lists.Output, index) {
			return retInUseOutbound
		}
	}
	delete(v.acls, index)
	return 0
}

func (v *vpp) set(index uint32, input, output []uint32) int32 {
	if _, found := v.interfaces[index]; !found {
		return retNoInterface
	}
	for _, list := range [][]uint32{input, output} {
		for i, number := range list {
			if v.acls[number] == nil {
				return retNoSuchEntry
			}
			if slices.Contains(list[:i], number) {
				return retTrue
			}
		}
	}
	v.interfaces[index] = Lists{Input: slices.Clone(input), Output: slices.Clone(output)}
	return 0
}

func (v *vpp) Dump(_ context.Context, req api.Message, each func(api.Message)) error {
	if v.down != nil {
		return v.down
	}
	if v.refuse != nil {
		if err := v.refuse(req); err != nil {
			return err
		}
	}
	switch req.(type) {
	case *acl.ACLDump:
		for index := range uint32(100) {
			if a := v.acls[index]; a != nil {
				each(&acl.ACLDetails{ACLIndex: index, Tag: a.Tag, R: slices.Clone(a.R)})
			}
		}
	case *acl.ACLInterfaceListDump:
		for index := range uint32(100) {
			if lists, found := v.interfaces[index]; found {
				each(&acl.ACLInterfaceListDetails{
					SwIfIndex: interface_types.InterfaceIndex(index), NInput: uint8(len(lists.Input)), Acls: slices.Concat(lists.Input, lists.Output),
				})
			}
		}
	default:
		panic(fmt.Sprintf("unexpected %s", req.GetMessageName()))
	}
	return nil
}

// passes reports whether a packet that enters through an interface passes: the first rule of the
// list that matches decides.
func (v *vpp) passes(index uint32, p packet) bool { return v.ask(v.interfaces[index].Input, p) }

func (v *vpp) ask(list []uint32, p packet) bool {
	for _, number := range list {
		for _, r := range v.acls[number].R {
			if matches(r, p) {
				return r.IsPermit != acl_types.ACL_ACTION_API_DENY
			}
		}
	}
	return len(list) == 0
}

// matches is single_acl_match_5tuple: without a protocol the ports do not count. The source port of
// every packet is 40000.
func matches(r acl_types.ACLRule, p packet) bool {
	src := forwarding.FromPrefix(r.SrcPrefix)
	dst := forwarding.FromPrefix(r.DstPrefix)
	proto, port := p.to.Proto, p.to.Port
	if p.icmp {
		proto, port = 1, 0
	}
	return src.Contains(p.src) && dst.Contains(p.to.VIP) && (r.Proto == 0 || uint8(r.Proto) == proto &&
		r.SrcportOrIcmptypeFirst <= 40000 && 40000 <= r.SrcportOrIcmptypeLast && r.DstportOrIcmpcodeFirst <= port && port <= r.DstportOrIcmpcodeLast)
}

// others is the input list of an interface without our ACLs.
func (v *vpp) others(index uint32) []uint32 {
	var list []uint32
	for _, number := range v.interfaces[index].Input {
		if !Ours(v.acls[number].Tag) {
			list = append(list, number)
		}
	}
	return list
}

// foreignRule makes a rule as another client of VPP could write it: for all addresses of a network
// and all ports.
func foreignRule(permit acl_types.ACLAction, from string) acl_types.ACLRule {
	return acl_types.ACLRule{
		IsPermit: permit, SrcPrefix: forwarding.Prefix(netip.MustParsePrefix(from)), DstPrefix: forwarding.Prefix(netip.MustParsePrefix("0.0.0.0/0")),
		SrcportOrIcmptypeLast: maxPort, DstportOrIcmpcodeLast: maxPort,
	}
}

// add makes an ACL of another client and returns its index.
func (v *vpp) add(tag string, rules ...acl_types.ACLRule) uint32 {
	index, _ := v.addReplace(&acl.ACLAddReplace{ACLIndex: none, Tag: tag, R: rules})
	return index
}
