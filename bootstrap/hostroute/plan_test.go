package hostroute

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	services = netip.MustParsePrefix("10.96.0.0/12")
	more     = netip.MustParsePrefix("10.112.0.0/16")
	vppEnd   = netip.MustParseAddr("172.30.0.1")

	nodeAddress = netip.MustParseAddr("192.168.0.2")
)

// own is the route of the agent for a network.
func own(network netip.Prefix) Route {
	return Route{Prefix: network, Gateway: vppEnd, Link: 7, Protocol: Protocol}
}

func TestPlan(t *testing.T) {
	others := own(services)
	others.Protocol, others.Metric = 186, 20
	elsewhere := own(services)
	elsewhere.Gateway = netip.MustParseAddr("172.30.0.9")
	otherLink, otherMetric := own(services), own(services)
	otherLink.Link, otherMetric.Metric = 8, 5
	source := own(services)
	source.Source = nodeAddress
	unrelated := Route{Prefix: netip.MustParsePrefix("192.0.2.0/24"), Link: 2, Protocol: 2}
	for name, tc := range map[string]struct {
		networks []netip.Prefix
		have     []Route
		want     Changes
	}{
		"none yet":                        {[]netip.Prefix{services, more}, []Route{unrelated}, Changes{Add: []Route{own(services), own(more)}}},
		"all there":                       {[]netip.Prefix{services}, []Route{own(services), unrelated}, Changes{}},
		"named twice":                     {[]netip.Prefix{services, services}, nil, Changes{Add: []Route{own(services)}}},
		"another gateway":                 {[]netip.Prefix{services}, []Route{elsewhere}, Changes{Remove: []Route{elsewhere}, Add: []Route{own(services)}}},
		"another interface":               {[]netip.Prefix{services}, []Route{otherLink}, Changes{Remove: []Route{otherLink}, Add: []Route{own(services)}}},
		"another metric beside it":        {[]netip.Prefix{services}, []Route{own(services), otherMetric}, Changes{Remove: []Route{otherMetric}}},
		"another source":                  {[]netip.Prefix{services}, []Route{source}, Changes{Remove: []Route{source}, Add: []Route{own(services)}}},
		"a network that is no longer one": {[]netip.Prefix{services}, []Route{own(services), own(more)}, Changes{Remove: []Route{own(more)}}},
		"of another owner":                {[]netip.Prefix{services}, []Route{others}, Changes{Foreign: []Route{others}}},
		"of another owner and our own":    {[]netip.Prefix{services}, []Route{others, own(services)}, Changes{Remove: []Route{own(services)}, Foreign: []Route{others}}},
		"no networks":                     {nil, []Route{own(services), others, unrelated}, Changes{Remove: []Route{own(services)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Plan(tc.networks, Route{Gateway: vppEnd, Link: 7}, tc.have)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b Route) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
