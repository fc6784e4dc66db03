package kubetest

import (
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// sliceOf makes a slice with one port dns. Each endpoint is an address; "!" behind it means that
// the endpoint does not serve.
func sliceOf(protocol messages.Protocol, endpoints ...string) *messages.EndpointSlice {
	s := &messages.EndpointSlice{
		Family: messages.IPFamily_IPV4,
		Ports:  []*messages.EndpointPort{{Name: "dns", Protocol: protocol, Port: 5353}},
	}
	for _, text := range endpoints {
		address, silent := strings.CutSuffix(text, "!")
		s.Endpoints = append(s.Endpoints, &messages.Endpoint{Address: address, Serving: !silent})
	}
	return s
}

func TestCleanupRequired(t *testing.T) {
	const udp, tcp = messages.Protocol_UDP, messages.Protocol_TCP
	input := func(endpointSlices ...*messages.EndpointSlice) *messages.ServiceInput {
		return &messages.ServiceInput{Service: &messages.Service{}, Slices: endpointSlices}
	}
	base := input(sliceOf(udp, "10.0.0.1", "10.0.0.2"))
	terminating := sliceOf(udp, "10.0.0.1", "10.0.0.2")
	terminating.Endpoints[1].Terminating = true
	headless := sliceOf(udp, "10.0.0.1")
	headless.Headless = true
	for _, test := range []struct {
		name              string
		previous, current *messages.ServiceInput
		want              bool
	}{
		{"nothing changed", base, input(sliceOf(udp, "10.0.0.1", "10.0.0.2")), false},
		{"the order changed", base, input(sliceOf(udp, "10.0.0.2"), sliceOf(udp, "10.0.0.1")), false},
		{"an endpoint came", base, input(sliceOf(udp, "10.0.0.1", "10.0.0.2", "10.0.0.3")), true},
		{"an endpoint went", base, input(sliceOf(udp, "10.0.0.1")), true},
		{"an endpoint stopped serving", base, input(sliceOf(udp, "10.0.0.1", "10.0.0.2!")), true},
		{"an endpoint terminates but serves", base, input(terminating), false},
		{"only the Service changed", base, &messages.ServiceInput{Slices: base.GetSlices()}, false},
		{"everything went", base, nil, true},
		{"everything came", nil, base, true},
		{"nothing before and after", nil, nil, false},
		{"a TCP endpoint went", input(sliceOf(tcp, "10.0.0.1")), input(sliceOf(tcp)), false},
		{"a headless slice came", nil, input(headless), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			world := func(in *messages.ServiceInput) map[string]*messages.ServiceInput {
				if in == nil {
					return nil
				}
				return map[string]*messages.ServiceInput{"default/dns": in}
			}
			if got := CleanupRequired(world(test.previous), world(test.current)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
