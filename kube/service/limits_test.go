package service_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// wide returns a service with the given numbers of ports and external addresses, and a slice with
// the given number of endpoints for all of its ports.
func wide(ports, addresses, endpoints int) *messages.ServiceInput {
	s := &messages.Service{Namespace: "shop", Name: "wide", ClusterIps: []string{"10.96.0.10"}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4}}
	slice := &messages.EndpointSlice{Namespace: "shop", Name: "wide-1", Service: "wide", Family: messages.IPFamily_IPV4}
	for i := range ports {
		name := fmt.Sprint("p", i)
		s.Ports = append(s.Ports, &messages.ServicePort{Name: name, Protocol: messages.Protocol_TCP, Port: uint32(1 + i)})
		slice.Ports = append(slice.Ports, &messages.EndpointPort{Name: name, Protocol: messages.Protocol_TCP, Port: 8080})
	}
	address := netip.MustParseAddr("203.0.113.1")
	for range addresses {
		s.ExternalIps = append(s.ExternalIps, address.String())
		address = address.Next()
	}
	address = netip.MustParseAddr("10.1.1.2")
	for range endpoints {
		slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{Address: address.String(), Ready: true, Serving: true})
		address = address.Next()
	}
	return &messages.ServiceInput{Key: "shop/wide", Service: s, Slices: []*messages.EndpointSlice{slice}}
}

func TestMeasure(t *testing.T) {
	node := &messages.NodeContext{Node: &messages.Node{Name: "n1"}, Addresses: []string{"192.168.0.2", "192.168.0.3", "fd00::2"}}
	all, err := service.ParseNodePortAddresses([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	with := func(in *messages.ServiceInput, change func(s *messages.Service, slice *messages.EndpointSlice)) *messages.ServiceInput {
		change(in.Service, in.Slices[0])
		return in
	}
	for name, tt := range map[string]struct {
		in   *messages.ServiceInput
		want service.Size
	}{
		"a cluster IP":                     {wide(1, 0, 3), service.Size{Frontends: 1, Backends: 3}},
		"ports times addresses":            {wide(500, 500, 0), service.Size{Frontends: 500 * 501}},
		"each frontend has its endpoints":  {wide(2, 3, 10), service.Size{Frontends: 8, Backends: 80}},
		"what no port of the service uses": {with(wide(1, 0, 9), func(_ *messages.Service, slice *messages.EndpointSlice) { slice.Ports[0].Name = "x" }), service.Size{Frontends: 1, Backends: 9}},
		"node ports at all addresses": {with(wide(2, 0, 1), func(s *messages.Service, _ *messages.EndpointSlice) {
			s.Ports[0].NodePort = 30080
		}), service.Size{Frontends: 4, Backends: 4}},
		"a load balancer": {with(wide(1, 0, 1), func(s *messages.Service, _ *messages.EndpointSlice) {
			s.LoadBalancer = []*messages.LoadBalancerIngress{{Ip: "203.0.113.9"}, {Ip: ""}}
		}), service.Size{Frontends: 2, Backends: 2}},
		"the other family has no cluster IP": {with(wide(1, 0, 1), func(s *messages.Service, _ *messages.EndpointSlice) {
			s.ExternalIps = []string{"2001:db8::1"}
		}), service.Size{Frontends: 1, Backends: 1}},
		"headless": {with(wide(3, 3, 3), func(s *messages.Service, _ *messages.EndpointSlice) { s.Headless = true }), service.Size{}},
		"gone":     {&messages.ServiceInput{Key: "shop/wide"}, service.Size{}},
	} {
		if got := service.Measure(tt.in, node, &service.Config{NodePortAddresses: all}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestAServiceAboveALimitIsNotServed: a service at the limit is served.
func TestAServiceAboveALimitIsNotServed(t *testing.T) {
	limited := func(frontends, backends int) service.Config {
		return service.Config{Limits: service.Limits{Service: service.Size{Frontends: frontends, Backends: backends}}}
	}
	for name, tt := range map[string]struct {
		in   *messages.ServiceInput
		cfg  service.Config
		says string
	}{
		"no limits":           {wide(5, 1, 1), service.Config{}, ""},
		"at the limits":       {wide(5, 1, 2), limited(10, 20), ""},
		"too many frontends":  {wide(5, 1, 2), limited(9, 20), "it has 10 frontends, a service may have 9 (services.limits.frontendsPerService)"},
		"too many endpoints":  {wide(5, 1, 2), limited(10, 19), "it has 20 endpoints behind its frontends, a service may have 19"},
		"a million frontends": {wide(1000, 1000, 1000), limited(4096, 262_144), "it has 1001000 frontends"},
	} {
		view := service.Resolve(tt.in, nil, tt.cfg)
		refused := view.GetRefused() != ""
		if refused != (tt.says != "") || !strings.Contains(view.GetRefused(), tt.says) || refused != (len(view.GetFrontends()) == 0) {
			t.Errorf("%s: %d frontends, refused %q", name, len(view.GetFrontends()), view.GetRefused())
		}
		if refused && (len(view.GetErrors()) != 1 || !strings.Contains(view.GetErrors()[0].GetMessage(), tt.says) || len(view.GetHealthChecks()) > 0) {
			t.Errorf("%s: errors %v", name, view.GetErrors())
		}
	}
}
