package cnat

import (
	"cmp"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// noInterface is ~0, because 0 is the interface local0.
const noInterface = ^interface_types.InterfaceIndex(0)

// hashSource is the bit of the flow hash for the source address.
const hashSource = 1

// node is a node of CNAT and the arc on which it stands, with the last node of the arc, which is no
// feature of any interface.
type node struct{ arc, name, last string }

// nodesOf are the nodes of an interface, in the order in which they are enabled: without the output
// node answers to clients are not translated.
func nodesOf(ip4, newer bool) (nodes []node) {
	families := []string{"ip6"}
	if ip4 {
		families = append(families, "ip4")
	}
	for _, f := range families {
		out, in := f+"-output", f+"-unicast"
		if newer { // these find the session, and write it back
			nodes = append(nodes, node{out, "cnat-writeback-" + f, "interface-output"}, node{in, "cnat-lookup-" + f, f + "-lookup"})
		}
		nodes = append(nodes, node{out, "cnat-output-" + f, "interface-output"}, node{in, "cnat-input-" + f, f + "-lookup"})
	}
	return nodes
}

// queries ask whether an interface has a node: the answers are yes and no. VPP answers both with
// yes for an index above all that ever had a feature on the arc.
func (n node) queries(index uint32) []api.Message {
	i := interface_types.InterfaceIndex(index)
	return []api.Message{
		&feature.FeatureIsEnabled{SwIfIndex: i, ArcName: n.arc, FeatureName: n.name}, &feature.FeatureIsEnabled{SwIfIndex: i, ArcName: n.arc, FeatureName: n.last},
	}
}

// change gives an interface a node, or takes it away.
func (n node) change(index uint32, enable bool) api.Message {
	return &feature.FeatureEnableDisable{SwIfIndex: interface_types.InterfaceIndex(index), Enable: enable, ArcName: n.arc, FeatureName: n.name}
}

// tableMessages put the interface of an operation into its tables of the policy, nil = none, and
// take it out of all others. The table of a family that is not served is left alone.
func tableMessages(op Op, t *Tables) []api.Message {
	pod, t := t != nil, cmp.Or(t, &Tables{})
	var msgs []api.Message
	for _, entry := range []struct {
		table cnat.CnatSnatPolicyTable
		in    bool
	}{{cnat.CNAT_POLICY_POD, pod}, {cnat.CNAT_POLICY_INCLUDE_V4, t.Outside}, {cnat.CNAT_POLICY_INCLUDE_V6, t.Outside}, {cnat.CNAT_POLICY_HOST, t.Host}} {
		if entry.table == cnat.CNAT_POLICY_INCLUDE_V4 && !op.IPv4 {
			continue
		}
		msg := &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: interface_types.InterfaceIndex(op.Interface), Table: entry.table}
		if entry.in {
			msg.IsAdd = 1
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

// excludeMessage excludes a network from source NAT (add is 1), or includes it again (0).
func excludeMessage(p netip.Prefix, add uint8) api.Message {
	return &cnat.CnatSnatPolicyAddDelExcludePfx{Prefix: forwarding.Prefix(p), IsAdd: add}
}

// excludedIn finds the excluded networks in the output of "show cnat snat-policy", for which VPP
// has no message: one on a line, behind the number of its place.
func excludedIn(text string) map[netip.Prefix]bool {
	found := map[netip.Prefix]bool{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || len(words) > 2 && words[2] == "src" {
			continue
		}
		if p, err := netip.ParsePrefix(words[1]); err == nil {
			found[p.Masked()] = true
		}
	}
	return found
}

// tablesIn reports whether the same output has an interface in a table of the policy: one on a line
// below the name of the table.
func tablesIn(text string) bool {
	for _, section := range strings.Split(text, " interfaces:\n")[1:] {
		if strings.HasPrefix(section, "  ") {
			return true
		}
	}
	return false
}

// snatMessages set the addresses of a VPP of 26.06, and then the policy, which belongs to them.
// That VPP cannot delete one of two addresses, and crashes on a policy without an address.
func snatMessages(op Op) (msgs []api.Message) {
	if op.Held {
		msgs = append(msgs, snatMessage(NoSNAT()))
	}
	if op.SNAT != NoSNAT() {
		msgs = append(msgs, snatMessage(op.SNAT), &features.CnatSetSnatPolicy{CnatSetSnatPolicy: cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_K8S}})
	}
	return msgs
}

// snatMessage sets the addresses.
func snatMessage(s SNAT) api.Message {
	return &cnat.CnatSetSnatAddresses{SnatIP4: s[0].As4(), SnatIP6: s[1].As16(), SwIfIndex: noInterface}
}

// noClient has a VPP of 26.06 translate packets to an address on arrival only, and not again where
// its route leads them: another row may have sent them there, whose session a second one replaces.
const noClient = 0x08

// rowMessage returns the message that adds a row or replaces its backends; newer = for a VPP of
// 26.06.
func rowMessage(r *Row, newer bool) *cnat.CnatTranslationUpdate {
	t := cnat.CnatTranslation{
		Vip: wireEndpoint(netip.AddrPortFrom(r.Addr, r.Port)), IPProto: ip_types.IPProto(r.Proto),
		NPaths: uint32(len(r.Backends)), Paths: make([]cnat.CnatEndpointTuple, len(r.Backends)),
	}
	if r.RealIP {
		t.IsRealIP = 1
		if newer {
			t.Flags = noClient
		}
	}
	flags := uint8(mark)
	switch {
	case r.Sticky:
		t.LbType, t.FlowHashConfig = cnat.CNAT_LB_TYPE_MAGLEV, hashSource
	case r.Maglev:
		t.LbType, flags = cnat.CNAT_LB_TYPE_MAGLEV, mark|ofConnections
	}
	for i, b := range r.Backends {
		t.Paths[i] = cnat.CnatEndpointTuple{DstEp: wireEndpoint(b), SrcEp: cnat.CnatEndpoint{SwIfIndex: noInterface}, Flags: flags}
	}
	return &cnat.CnatTranslationUpdate{Translation: t}
}

// wireEndpoint translates an address and a port.
func wireEndpoint(at netip.AddrPort) cnat.CnatEndpoint {
	addr := forwarding.Address(at.Addr())
	return cnat.CnatEndpoint{Addr: addr, SwIfIndex: noInterface, IfAf: addr.Af, Port: at.Port()}
}

// readEndpoint is the reverse of wireEndpoint; false = it is an interface.
func readEndpoint(e *cnat.CnatEndpoint) (netip.AddrPort, bool) {
	return netip.AddrPortFrom(forwarding.FromAddress(e.Addr), e.Port), e.SwIfIndex == noInterface
}

// VPP stores neither the owner of a translation nor what maglev hashes, but it stores the flags of
// a path and ignores these three. The others are VPP's.
const (
	mark          = 0x50 // of this agent
	ofConnections = 0x20 // maglev hashes connections, not sources
	// flags that VPP sets itself: a path is active (in 25.10, in 26.06), or about to go.
	ownFlags = 0x01 | 0x04 | 0x08
)

// readRow translates a translation of a dump, which does not return RealIP.
func readRow(t *cnat.CnatTranslation) Held {
	vip, plain := readEndpoint(&t.Vip)
	h := Held{ID: t.ID, Odd: !plain, Ours: len(t.Paths) > 0}
	h.Key = rule.Key{Addr: vip.Addr(), Port: vip.Port(), Proto: uint8(t.IPProto)}
	hashes := t.LbType == cnat.CNAT_LB_TYPE_MAGLEV
	for i := range t.Paths {
		p := &t.Paths[i]
		at, plain := readEndpoint(&p.DstEp)
		ordered := i == 0 || h.Backends[i-1].Compare(at) < 0
		h.Ours = h.Ours && p.Flags&mark == mark
		h.Maglev = hashes && p.Flags&ofConnections != 0
		h.Odd = h.Odd || !plain || !ordered || p.Flags&^(mark|ofConnections|ownFlags) != 0 || p.SrcEp.Port != 0
		h.Backends = append(h.Backends, at)
	}
	h.Sticky = hashes && !h.Maglev
	return h
}
