package contract

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/feature"

	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// cnatTargets are cases of packets of no service between interfaces to the outside.
var cnatTargets = func() (cases []contractCase) {
	for _, f := range families {
		name := "cnat targets/IPv4/packets of no service keep their sources, except straight to a target"
		if f.ip6 {
			name = "cnat targets/IPv6/packets of no service keep their sources, except straight to a target"
		}
		cases = append(cases, contractCase{name, func(t *testing.T, v *rig) { newCNATNode(t, v, f).targets() }})
	}
	return cases
}()

// targets has the first pod's interface be one to the outside, as the uplink is, and the far
// endpoint be a target.
func (n *cnatNode) targets() {
	n.Helper()
	if !n.version(n).featureIsEnabled {
		n.lacks(n.T, &feature.FeatureIsEnabled{}) // CNAT is not served there
		return
	}
	indexes := []uint32{uint32(n.first), uint32(n.uplink)}
	state, err := cnat.Read(n.Context(), n.link, !n.ip6, indexes, nil)
	if err != nil {
		n.Fatal(err)
	}
	for index := range state.Attached { // newCNATNode has chosen their tables
		state.Attached[index] = &cnat.Tables{Host: true, Outside: true}
	}
	want := &cnat.Want{SNAT: state.SNAT, IPv4: !n.ip6, Interfaces: map[uint32]*cnat.Tables{}}
	for _, index := range indexes {
		want.Interfaces[index] = &cnat.Tables{Outside: true}
	}
	remote := cnat.NewRemote(nil)
	remote.Count(netip.MustParseAddr(n.far), 1)
	remote.Settle()
	want.Targets = remote.Targets()
	for _, r := range cnat.Apply(n.Context(), n.link, cnat.Diff(state, want, false)) {
		if r.Err != nil {
			n.Error(r.Err)
		}
	}
	again, err := cnat.Read(n.Context(), n.link, !n.ip6, indexes, nil)
	if err != nil {
		n.Fatal(err)
	}
	again.Assume(want)
	if ops := cnat.Diff(again, want, false); len(ops) > 0 {
		n.Errorf("a reading leaves %v", ops)
	}
	sameEnd := n.far // its last 32 bits are those of the pod
	if n.ip6 && n.version(n).cnat.selfByLast32 {
		sameEnd = n.snat
	}
	for i, c := range []struct{ from, to, seen string }{
		{n.pod, n.outside, n.pod}, {n.outside, n.pod, n.outside}, {n.pod, n.far, n.snat},
	} {
		in, out := n.first, n.uplink
		if c.to == n.pod {
			in, out = out, in
		}
		n.exchange(in, rule.TCP, hostPort(c.from, uint16(40000+i)), hostPort(c.to, 443), out, netip.MustParseAddr(c.seen))
	}
	// A connection that a target opens: its answers are packets straight to a target.
	src, dst := hostPort(n.far, 40010), hostPort(n.pod, 443)
	if n.version(n).cnat.tracksAll {
		n.exchange(n.uplink, rule.TCP, src, dst, n.first, netip.MustParseAddr(sameEnd))
		return
	}
	if got, found := n.send(n.uplink, rule.TCP, syn, src, dst); !found || got.src != src {
		n.Errorf("from a target: left %t as %s", found, got)
	}
	got, found := n.send(n.first, rule.TCP, syn|ack, dst, src)
	if !found || got.src.Addr() != netip.MustParseAddr(n.snat) {
		n.Errorf("answer to a target: left %t as %s", found, got)
	}
}
