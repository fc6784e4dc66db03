package service_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestUses: for each endpoint the number of frontends on node n1 in zone a that forward to it, and
// the reason why not all do.
func TestUses(t *testing.T) {
	both := func(s *messages.Service) { internalLocal(s); nodePort(30080)(s); externalLocal(s) }
	for _, test := range []struct {
		name   string
		change change
		slices []*messages.EndpointSlice
		want   []string
	}{
		{"ready ones are used", nil, []*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1", "10.0.0.2@n2")}, []string{"10.0.0.1 1/1", "10.0.0.2 1/1"}},
		{
			"others are not", nil,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1 notready", "10.0.0.2@n2", "10.0.0.3@n2 notready terminating", "10.0.0.4@n2 notready serving terminating")},
			[]string{
				"10.0.0.1 0/1: not ready", "10.0.0.2 1/1", "10.0.0.3 0/1: terminating and not serving",
				"10.0.0.4 0/1: terminating, while other endpoints are ready",
			},
		},
		{
			"of terminating ones those that serve are used for want of others", nil,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1 notready serving terminating")},
			[]string{"10.0.0.1 1/1: terminating, and used because no other endpoint is ready"},
		},
		{
			"where the policy is Local those of other nodes are not used", internalLocal,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1", "10.0.0.2@n2", "10.0.0.3")},
			[]string{
				"10.0.0.1 1/1", `10.0.0.2 0/1: on node "n2": not used where the traffic policy is Local`,
				`10.0.0.3 0/1: on node "": not used where the traffic policy is Local`,
			},
		},
		{
			"nor where all are there", both,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.2@n2")},
			[]string{`10.0.0.2 1/3: on node "n2": not used where the traffic policy is Local`},
		},
		{
			"with an external policy of Local clients of the node still get them", func(s *messages.Service) { nodePort(30080)(s); externalLocal(s) },
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1", "10.0.0.2@n2")},
			[]string{"10.0.0.1 3/3", `10.0.0.2 2/3: on node "n2": not used where the traffic policy is Local`},
		},
		{
			"hints are followed", nil,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1 zone=a", "10.0.0.2@n2 zone=b zone=c")},
			[]string{"10.0.0.1 1/1", `10.0.0.2 0/1: hinted for zones b, c, this node is in "a"`},
		},
		{
			"also those for nodes", nil,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1 node=n1", "10.0.0.2@n2 node=n2")},
			[]string{"10.0.0.1 1/1", "10.0.0.2 0/1: hinted for other nodes: n2"},
		},
		{
			"in two slices the ready one counts", nil,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1@n1 notready"), sliceOf("t", "10.0.0.1@n1")},
			[]string{"10.0.0.1 1/1: not ready in this slice; the slice in which it is ready counts", "10.0.0.1 1/1"},
		},
		{
			"addresses that are none", nil,
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.256", "fd00::1", "10.0.0.1")},
			[]string{"10.0.0.256 0/1: not an address of IPv4 that can be used", "fd00::1 0/1: not an address of IPv4 that can be used", "10.0.0.1 1/1"},
		},
		{
			"the other family", nil,
			[]*messages.EndpointSlice{sliceOf("s", "fd00:10::1")},
			[]string{"fd00:10::1 0/0: the service has no cluster IP of IPv6"},
		},
		{"both families", dualStack, []*messages.EndpointSlice{sliceOf("s", "fd00:10::1"), sliceOf("t", "10.0.0.1")}, []string{"fd00:10::1 1/1", "10.0.0.1 1/1"}},
		{
			"another port", func(s *messages.Service) { s.Ports[0].Name = "https" },
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1")},
			[]string{"10.0.0.1 0/0: the slice has no port of the service, by name and protocol"},
		},
		{
			"a slice of a headless service", nil,
			[]*messages.EndpointSlice{{Namespace: "default", Service: "web", Family: v4, Headless: true, Endpoints: []*messages.Endpoint{ep("10.0.0.1")}}},
			[]string{"10.0.0.1 0/0: the slice has the label of a headless service"},
		},
		{
			"host names", nil,
			[]*messages.EndpointSlice{{Namespace: "default", Service: "web", Endpoints: []*messages.Endpoint{ep("example.com")}}},
			[]string{"example.com 0/0: the slice has host names"},
		},
		{
			"a service without addresses", func(s *messages.Service) { s.ClusterIps, s.Headless = nil, true },
			[]*messages.EndpointSlice{sliceOf("s", "10.0.0.1")},
			[]string{"10.0.0.1 0/0: the service is not served: headless"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := webService()
			if test.change != nil {
				test.change(s)
			}
			in := input(s, test.slices...)
			if diff := cmp.Diff(test.want, usesOf(in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) { // the reasons and the view never contradict each other
		in := genInput(t, true)
		view := service.Resolve(in, nodeN1(), detect())
		used := map[string]bool{}
		for _, u := range service.Uses(in, nodeN1(), view) {
			if u.Forwards > u.Frontends || u.Why == "" && (u.Forwards == 0 || u.Forwards < u.Frontends || !u.Endpoint.GetReady()) {
				t.Errorf("%+v", u)
			}
			used[u.Endpoint.GetAddress()] = used[u.Endpoint.GetAddress()] || u.Forwards > 0
		}
		for _, f := range view.GetFrontends() {
			for _, b := range f.GetBackends() {
				if !used[b.GetAddress()] {
					t.Errorf("%s forwards to %s, which no slice has", service.FrontendText(f), b.GetAddress())
				}
			}
		}
	})
	if got := usesOf(input(nil, sliceOf("s", "10.0.0.1"))); len(got) != 1 || got[0] != "10.0.0.1 0/0: there is no such service" {
		t.Error(got)
	}
}

// usesOf returns the uses on the node of the tables, as lines.
func usesOf(in *messages.ServiceInput) (lines []string) {
	for _, u := range service.Uses(in, nodeN1(), service.Resolve(in, nodeN1(), detect())) {
		text := fmt.Sprintf("%s %d/%d", u.Endpoint.GetAddress(), u.Forwards, u.Frontends)
		if u.Why != "" {
			text += ": " + u.Why
		}
		lines = append(lines, text)
	}
	return lines
}
