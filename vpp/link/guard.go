package link

import (
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vrrp"
)

// Limits of NAT44-ED in VPP 25.10.
const (
	// minLocals: VPP answers fewer with -7, which is harmless, but such a mapping is a fault of
	// the planner.
	minLocals = 2
	// maxLocals: the handler counts locals with 8 bits, so 256 of them are an endless loop that
	// ends with the heap.
	maxLocals = 255
	// maxTag: a tag field has 64 bytes, the last of which VPP overwrites with NUL. A longer tag
	// would come back shortened, and its row would not be recognised as ours any more.
	maxTag = 63
	// none is ~0, "no interface" and "no VRF". Zero means interface local0 and VRF 0.
	none = ^uint32(0)
)

// Check refuses messages that crash VPP or corrupt its state although they are well-formed. The
// error wraps ErrRefused and names the message and the field. Every message of Do and Dump passes
// it.
//
// It sees one message at a time, so checks that need the state of VPP belong to the owner of that
// state: vpp/nat44 never lets the sum of the weights of a mapping become 0 modulo 256 by adding or
// removing locals one by one, and never combines affinity with an interface that is inside only;
// vpp/cnat never enables a feature of an interface twice.
func Check(msg api.Message) error {
	var why string
	switch m := msg.(type) {
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		why = checkMapping(m)
	case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
		why = checkLocal(&m.Local)
	case *nat44_ed.Nat44AddDelStaticMapping:
		why = first(checkBinding("external_sw_if_index", m.ExternalSwIfIndex), checkTag(m.Tag))
	case *nat44_ed.Nat44AddDelStaticMappingV2:
		why = first(checkBinding("external_sw_if_index", m.ExternalSwIfIndex), checkTag(m.Tag))
	case *nat44_ed.Nat44AddDelIdentityMapping:
		why = first(checkBinding("sw_if_index", m.SwIfIndex), checkTag(m.Tag))
	case *nat44_ed.Nat44DelSession:
		why = checkSession(m)
	case *cnat.CnatTranslationUpdate:
		why = checkTranslation(&m.Translation)
	case *cnat.CnatSetSnatAddresses:
		why = checkBinding("sw_if_index", m.SwIfIndex)
	case *cnat.CnatSessionPurge:
		why = "it deletes all translations too"
	case *vrrp.VrrpVrAddDel:
		why = checkRouter(m)
	case *vrrp.VrrpVrDel:
		why = "it leaves the router in the list of its interface"
	case *vlib.CliInband:
		why = checkCommand(m.Cmd)
	case *vlib.Cli:
		why = "it carries an address of shared memory, which a socket client does not have"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrRefused, msg.GetMessageName(), why)
}

// first returns the first reason that is not empty.
func first(reasons ...string) string {
	for _, why := range reasons {
		if why != "" {
			return why
		}
	}
	return ""
}

// checkMapping checks an LB mapping. The handler reads the locals before it looks at is_add, so
// their number counts for a removal too.
func checkMapping(m *nat44_ed.Nat44AddDelLbStaticMapping) string {
	if n := len(m.Locals); n > maxLocals || m.IsAdd && n < minLocals {
		return fmt.Sprintf("locals: %d, must be %d to %d", n, minLocals, maxLocals)
	}
	if !m.IsAdd {
		return ""
	}
	// VPP adds up the weights in 8 bits. A last sum of 0 lets the first packet divide by zero.
	// With any other one VPP picks an entry for each packet; vpp/nat44 uses sums that wrap
	// around to take back the weight of a draining backend.
	sum := uint8(0)
	for i := range m.Locals {
		if why := checkLocal(&m.Locals[i]); why != "" {
			return fmt.Sprintf("locals[%d].%s", i, why)
		}
		sum += m.Locals[i].Probability
	}
	if sum == 0 {
		return "locals: sum of probability is 0 modulo 256"
	}
	return checkTag(m.Tag)
}

// checkLocal checks one backend of a mapping: VPP creates the table of any vrf_id.
func checkLocal(l *nat44_ed.Nat44LbAddrPort) string {
	if l.VrfID == none {
		return "vrf_id is ~0, which VPP would create as a table"
	}
	return ""
}

// checkSession checks the deletion of a session: sessions and mappings have their keys in one hash,
// and a flow to 0.0.0.0:0 is the key of a mapping, whose value VPP then takes for the index of a
// session. VPP would delete an unrelated session.
func checkSession(m *nat44_ed.Nat44DelSession) string {
	if m.ExtHostAddress == [4]byte{} && m.ExtHostPort == 0 {
		return "ext_host_address and ext_host_port are 0, which is the key of a mapping"
	}
	return ""
}

// checkBinding checks an optional reference to an interface.
func checkBinding(field string, index interface_types.InterfaceIndex) string {
	if index == 0 {
		return field + " is 0, the interface local0; ~0 means none"
	}
	return ""
}

// checkTag checks the length of a tag.
func checkTag(tag string) string {
	if len(tag) > maxTag {
		return fmt.Sprintf("tag has %d bytes, must have at most %d", len(tag), maxTag)
	}
	return ""
}

// checkTranslation checks a CNAT translation: without paths VPP allocates 2^32 elements and aborts.
func checkTranslation(t *cnat.CnatTranslation) string {
	if len(t.Paths) == 0 {
		return "paths: none, must be at least 1"
	}
	if why := checkBinding("vip.sw_if_index", t.Vip.SwIfIndex); why != "" {
		return why
	}
	for i := range t.Paths {
		if p := &t.Paths[i]; p.DstEp.SwIfIndex == 0 || p.SrcEp.SwIfIndex == 0 {
			return checkBinding(fmt.Sprintf("sw_if_index of paths[%d]", i), 0)
		}
	}
	return ""
}

// maxRouterIPv6 is how many addresses of IPv6 fit into an advertisement: VPP builds it in a buffer
// without a check.
const maxRouterIPv6 = 90

// checkRouter checks a virtual router.
func checkRouter(m *vrrp.VrrpVrAddDel) string {
	if n := len(m.Addrs); m.Flags&vrrp.VRRP_API_VR_IPV6 != 0 && n > maxRouterIPv6 {
		return fmt.Sprintf("addrs: %d of IPv6, must be at most %d", n, maxRouterIPv6)
	}
	return ""
}

// checkCommand checks a command of the debug CLI: only commands that read are sent. All others are
// refused, and not only the known destructive ones ("clear nat44 ed sessions" and "set nat44
// session limit" make every mapping stop working), because VPP takes any unambiguous abbreviation
// of a command, so that no list of forbidden commands is complete.
func checkCommand(cmd string) string {
	words := strings.Fields(cmd)
	for _, prefix := range [...][]string{{"show"}, {"trace", "add"}, {"clear", "trace"}, {"clear", "errors"}} {
		if len(words) >= len(prefix) && slices.Equal(words[:len(prefix)], prefix) && !strings.ContainsAny(cmd, "\r\n;") {
			return ""
		}
	}
	return fmt.Sprintf("command %q is not one that only reads", cmd)
}
