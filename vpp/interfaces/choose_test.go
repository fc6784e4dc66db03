package interfaces_test

import (
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestChoose: CNAT serves IPv4 where VPP itself has the address of a pod in the table of the pod's
// interface, or will have.
func TestChoose(t *testing.T) {
	spec := func(name, address string, table uint32) func(testing.TB, *simulator.VPP) {
		return func(t testing.TB, v *simulator.VPP) {
			_, err := v.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Addresses: []netip.Prefix{netip.MustParsePrefix(address)}, Up: true, TableID: table})
			must(t, err)
		}
	}
	route := func(to, iface string) func(testing.TB, *simulator.VPP) {
		return func(t testing.TB, v *simulator.VPP) {
			p := netip.MustParsePrefix(to)
			must(t, v.AddRoute(simulator.Route{Prefix: p, NextHop: p.Addr(), Interface: iface}))
		}
	}
	for name, tt := range map[string]struct {
		setup []func(testing.TB, *simulator.VPP)
		table string // a further table
		cnat  bool
		why   string
	}{
		"nothing":                         {nil, "", false, "the address of no pod"},
		"pods in table 0":                 {[]func(testing.TB, *simulator.VPP){spec("tap1", "10.1.1.1/24", 0), route("10.1.1.2/32", "tap1")}, "", false, "no pod"},
		"pods in one table":               {[]func(testing.TB, *simulator.VPP){spec("tap1", "10.1.1.1/24", 2), route("10.1.1.2/32", "tap1")}, "", false, "no pod"},
		"an uplink in a table":            {[]func(testing.TB, *simulator.VPP){spec("up", "192.168.1.1/24", 5)}, "", false, "no pod"},
		"a table for each pod":            {[]func(testing.TB, *simulator.VPP){spec("up", "192.168.1.1/24", 0), spec("tap1", "10.1.1.2/32", 11), route("10.1.1.2/32", "tap1")}, "", true, "the table of tap1 has 10.1.1.2"},
		"Calico-VPP before its first pod": {[]func(testing.TB, *simulator.VPP){spec("up", "192.168.1.1/24", 0)}, "calico-pods-ip4", true, "calico-pods-ip4"},
		"a table of another name":         {nil, "pods", false, "no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			vpp, l := connected(t)
			for _, step := range tt.setup {
				step(t, vpp)
			}
			if tt.table != "" {
				answers, err := l.Do(t.Context(), []api.Message{&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 2, Name: tt.table}}})
				must(t, err)
				must(t, answers[0].Err)
			}
			got, err := interfaces.Choose(t.Context(), l)
			if err != nil || got.CNAT != tt.cnat || !strings.Contains(got.Why, tt.why) {
				t.Errorf("%+v, %v", got, err)
			}
			if !tt.cnat || tt.table != "" {
				return
			}
			pod := &messages.Pod{Namespace: "default", Name: "web", Addresses: []string{"10.1.1.2"}}
			set, err := (&interfaces.Reader{}).Discover(t.Context(), l, interfaces.Input{Pods: []*messages.Pod{pod}})
			must(t, err)
			var own []string
			for _, i := range set.GetInterfaces() {
				if i.GetOwnAddress() != "" {
					own = append(own, i.GetName()+" "+i.GetOwnAddress())
				}
			}
			if len(own) != 1 || own[0] != "tap1 10.1.1.2" {
				t.Errorf("the set has %q", own)
			}
		})
	}
}
