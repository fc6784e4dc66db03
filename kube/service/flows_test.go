package service_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// dnsService is a service with a UDP port at the address of the tables.
func dnsService(changes ...change) *messages.Service {
	s := webService(changes...)
	s.Ports[0].Name, s.Ports[0].Protocol, s.Ports[0].Port = "dns", udp, 53
	return s
}

// dnsSlice is a slice for it.
func dnsSlice(name string, endpoints ...string) *messages.EndpointSlice {
	slice := sliceOf(name, endpoints...)
	slice.Ports[0] = &messages.EndpointPort{Name: "dns", Protocol: udp, Port: 5353}
	return slice
}

func flow(frontend, backend string) service.Flow {
	return service.Flow{Frontend: netip.MustParseAddrPort(frontend), Backend: netip.MustParseAddrPort(backend)}
}

func TestStaleFlows(t *testing.T) {
	all := []service.Flow{
		flow("10.96.0.10:53", "10.0.0.1:5353"),     // serving, here
		flow("10.96.0.10:53", "10.0.0.2:5353"),     // serving, other node: no policies
		flow("10.96.0.10:53", "10.0.0.3:5353"),     // terminating, still serving
		flow("10.96.0.10:53", "10.0.0.4:5353"),     // no longer serving
		flow("10.96.0.10:53", "10.0.0.1:53"),       // old port of a serving endpoint
		flow("192.168.0.2:30053", "10.0.0.9:5353"), // gone endpoint, through a node port
		flow("10.96.0.10:53", "10.96.0.10:53"),     // created while the service refused packets
		flow("10.96.0.10:54", "10.0.0.9:5353"),     // no frontend of this service
		flow("9.9.9.9:53", "9.9.9.9:53"),           // no service at all
		flow("[fd00:96::10]:53", "[fd00:10::1]:5353"),
	}
	s := dnsService(dualStack, nodePort(30053), internalLocal, externalLocal)
	slice := dnsSlice("a", "10.0.0.1@n1", "10.0.0.2@n2", "10.0.0.3@n2 notready serving terminating", "10.0.0.4@n1 notready terminating")
	for _, test := range []struct {
		name    string
		slices  []*messages.EndpointSlice
		orphans service.Orphans
		want    []int
	}{
		{"flows to endpoints that do not serve", []*messages.EndpointSlice{slice, dnsSlice("b", "fd00:10::1")}, service.OrphansDeleted, []int{3, 4, 5, 6}},
		{"families without a serving endpoint", []*messages.EndpointSlice{slice}, service.OrphansDeleted, []int{3, 4, 5, 6, 9}},
		{"the same as kube-proxy 1.36 has it", []*messages.EndpointSlice{slice}, service.OrphansKept, []int{3, 4, 5, 6}},
		{"no serving endpoint at all", nil, service.OrphansDeleted, []int{0, 1, 2, 3, 4, 5, 6, 9}},
		{"no serving endpoint at all, as kube-proxy 1.36 has it", nil, service.OrphansKept, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []service.Flow
			for _, i := range test.want {
				want = append(want, all[i])
			}
			view := service.Resolve(input(s, test.slices...), nodeN1(), detect())
			got := service.StaleFlows(view, all, test.orphans)
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
				t.Errorf("stale (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStaleFlowsIgnoresFrontendsOfOtherProtocols(t *testing.T) {
	view := service.Resolve(input(webService(), sliceOf("a", "10.0.0.1")), nodeN1(), detect())
	if got := service.StaleFlows(view, []service.Flow{flow("10.96.0.10:80", "10.0.0.9:8080")}, service.OrphansDeleted); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	if got := service.StaleFlows(nil, []service.Flow{flow("10.96.0.10:80", "10.0.0.9:8080")}, service.OrphansDeleted); len(got) > 0 {
		t.Errorf("no view: %v", got)
	}
}

func TestFlowCleanupRequired(t *testing.T) {
	base := input(dnsService(), dnsSlice("a", "10.0.0.1@n1", "10.0.0.2@n2"))
	for _, test := range []struct {
		name              string
		previous, current *messages.ServiceInput
		want              bool
	}{
		{"nothing changed", base, input(dnsService(), dnsSlice("a", "10.0.0.1@n1", "10.0.0.2@n2")), false},
		{"the order changed", base, input(dnsService(), dnsSlice("b", "10.0.0.2@n2"), dnsSlice("a", "10.0.0.1@n1")), false},
		{"an endpoint came", base, input(dnsService(), dnsSlice("a", "10.0.0.1", "10.0.0.2", "10.0.0.3")), true},
		{"an endpoint went", base, input(dnsService(), dnsSlice("a", "10.0.0.1")), true},
		{"an endpoint stopped serving", base, input(dnsService(), dnsSlice("a", "10.0.0.1", "10.0.0.2 notready terminating")), true},
		{"an endpoint terminates but serves", base, input(dnsService(), dnsSlice("a", "10.0.0.1", "10.0.0.2 notready serving terminating")), false},
		{"only the Service changed", base, input(webService(), base.GetSlices()...), false},
		{"everything went", base, nil, true},
		{"everything came", nil, base, true},
		{"nothing before and after", nil, nil, false},
		{"a TCP endpoint went", input(webService(), sliceOf("a", "10.0.0.1")), input(webService(), sliceOf("a")), false},
		{"a headless slice came", nil, input(dnsService(), func() *messages.EndpointSlice {
			slice := dnsSlice("a", "10.0.0.1")
			slice.Headless = true
			return slice
		}()), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := service.FlowCleanupRequired(test.previous, test.current); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
