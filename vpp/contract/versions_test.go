package contract

import (
	"errors"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// version is what one version of VPP does in its own way. All that is not here is the same in every
// version, and the simulator does what 25.10 does.
type version struct {
	// name begins the text of show_version.
	name string
	// gaugeOfLimit: the statistics have the limit of NAT sessions as a gauge, which GoVPP's
	// client does not know.
	gaugeOfLimit bool
	// featureIsEnabled: VPP has the message feature_is_enabled.
	featureIsEnabled bool
	cnat             cnatVersion
}

// cnatVersion is what CNAT of a version does in its own way.
type cnatVersion struct {
	// active is the flag that VPP sets on a path.
	active uint8
	// addressFirst: everything about source NAT belongs to the SNAT address. Without one VPP
	// has no policy and no tables, and crashes when it is to change the policy or a prefix.
	addressFirst bool
	// policy makes the message that sets the policy; policies are the answers to the policies
	// from 0 on.
	policy   func(cnat.CnatSnatPolicies) api.Message
	policies []int32
	// noPrefix is the answer to the removal of a prefix that is not there.
	noPrefix int32
	// nodes are those that an interface needs, with their arcs.
	nodes [][2]string
	// endsSessions: sessions end with their backend, as soon as VPP looks at them, and the next
	// packet of a connection chooses another one.
	endsSessions bool
	// selfByLast32: a pod that connects to an address whose last 32 bits are its own is taken
	// for one that reaches itself, also in IPv6.
	selfByLast32 bool
	// tracksAll: every connection has a session, so its answers are known as such.
	tracksAll bool
	// crashesBelowICMP: VPP crashes when a real address is below a route that answers with
	// ICMP.
	crashesBelowICMP bool
	// sessionDetails: the bindings know the details of a session.
	sessionDetails bool
}

// cnat2510 is CNAT from 24.02 to 25.10.
var cnat2510 = cnatVersion{
	active: 1, policies: []int32{ok, ok, ok, 1, 1}, noPrefix: 1, crashesBelowICMP: true, sessionDetails: true,
	policy: func(p cnat.CnatSnatPolicies) api.Message { return &cnat.CnatSetSnatPolicy{Policy: p} },
	nodes:  cnatNodes,
}

// cnat2606 is CNAT of 26.06.
var cnat2606 = cnatVersion{
	active: 4, policies: []int32{ok, ok, ok, ok, ok, invalidValue}, noPrefix: ok, addressFirst: true, endsSessions: true, selfByLast32: true, tracksAll: true,
	policy: func(p cnat.CnatSnatPolicies) api.Message {
		return &features.CnatSetSnatPolicy{CnatSetSnatPolicy: cnat.CnatSetSnatPolicy{Policy: p}}
	},
	nodes: append([][2]string{
		{"ip6-unicast", "cnat-lookup-ip6"},
		{"ip6-output", "cnat-writeback-ip6"},
		{"ip4-unicast", "cnat-lookup-ip4"},
		{"ip4-output", "cnat-writeback-ip4"},
	}, cnatNodes...),
}

// versions is every version on which the suite has been run.
var versions = []version{
	{name: "24.06", cnat: cnat2510},
	{name: "25.10", featureIsEnabled: true, cnat: cnat2510},
	{name: "26.06", gaugeOfLimit: true, featureIsEnabled: true, cnat: cnat2606},
}

// version returns what the VPP of the rig does in its own way.
func (v *rig) version(t testing.TB) *version {
	t.Helper()
	text := ask[*vpe.ShowVersionReply](t, v, &vpe.ShowVersion{}).Version
	for i := range versions {
		if strings.HasPrefix(text, versions[i].name) {
			return &versions[i]
		}
	}
	t.Fatalf("VPP %s is none of the versions that the suite knows: say in versions_test.go how it differs", text)
	return nil
}

// lacks fails the test unless VPP does not know the message.
func (v *rig) lacks(t testing.TB, msg api.Message) {
	t.Helper()
	results, err := v.link.Do(t.Context(), []api.Message{msg})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(results[0].Err, link.ErrUnsupported) {
		t.Errorf("%s: %v", msg.GetMessageName(), results[0].Err)
	}
}
