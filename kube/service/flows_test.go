package service_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// dnsService is a service with a UDP port at the address of the tables.
func dnsService(changes ...change) *messages.Service {
	s := webService(changes...)
	s.Ports[0].Name, s.Ports[0].Protocol, s.Ports[0].Port = "dns", udp, 53
	return s
}

// dnsSlice is a slice for dnsService.
func dnsSlice(name string, endpoints ...string) *messages.EndpointSlice {
	slice := sliceOf(name, endpoints...)
	slice.Ports[0] = &messages.EndpointPort{Name: "dns", Protocol: udp, Port: 5353}
	return slice
}

// flow is an existing UDP flow from a frontend to a backend, each "ip:port". Backend equals
// frontend for a flow that passed untranslated because the frontend had no endpoints.
type flow struct{ frontend, backend string }

// endedFlows returns the flows to frontends of the view whose backend is in no row of the frontend,
// neither for new connections nor draining. A renderer removes such a backend from its row, and VPP
// then ends the flow.
func endedFlows(view *messages.ServiceView, flows ...flow) (ended []flow) {
	kept := map[string]map[string]bool{} // frontend -> backend
	for _, row := range view.GetFrontends() {
		if row.GetProtocol() != udp {
			continue
		}
		where := service.AddressPortText(row.GetAddress(), row.GetPort())
		if kept[where] == nil {
			kept[where] = map[string]bool{}
		}
		for _, list := range [][]*messages.Backend{row.GetBackends(), row.GetDraining()} {
			for _, b := range list {
				kept[where][service.BackendText(b)] = true
			}
		}
	}
	for _, f := range flows {
		if backends, ours := kept[f.frontend]; ours && !backends[f.backend] {
			ended = append(ended, f)
		}
	}
	return ended
}

// TestUDPFlowsStayWithServingEndpoints: the rows keep each UDP flow to an endpoint that serves,
// whatever policies and termination say, and no other flow. VPP ends the others when their endpoint
// leaves the row: see TestStaleUDPFlowsEnd in actors/render/nat44.
func TestUDPFlowsStayWithServingEndpoints(t *testing.T) {
	all := []flow{
		{"10.96.0.10:53", "10.0.0.1:5353"},     // serving, here
		{"10.96.0.10:53", "10.0.0.2:5353"},     // serving, other node: no policies
		{"10.96.0.10:53", "10.0.0.3:5353"},     // terminating, still serving
		{"10.96.0.10:53", "10.0.0.4:5353"},     // no longer serving
		{"10.96.0.10:53", "10.0.0.1:53"},       // old port of a serving endpoint
		{"192.168.0.2:30053", "10.0.0.9:5353"}, // gone endpoint, through a node port
		{"10.96.0.10:53", "10.96.0.10:53"},     // created while the service refused packets
		{"10.96.0.10:54", "10.0.0.9:5353"},     // no frontend of this service
		{"9.9.9.9:53", "9.9.9.9:53"},           // no service at all
		{"[fd00:96::10]:53", "[fd00:10::1]:5353"},
	}
	s := dnsService(dualStack, nodePort(30053), internalLocal, externalLocal)
	slice := dnsSlice("a", "10.0.0.1@n1", "10.0.0.2@n2", "10.0.0.3@n2 notready serving terminating", "10.0.0.4@n1 notready terminating")
	for _, test := range []struct {
		name   string
		slices []*messages.EndpointSlice
		want   []int
	}{
		{"flows to endpoints that do not serve", []*messages.EndpointSlice{slice, dnsSlice("b", "fd00:10::1")}, []int{3, 4, 5, 6}},
		{"families without a serving endpoint", []*messages.EndpointSlice{slice}, []int{3, 4, 5, 6, 9}},
		{"no serving endpoint at all", nil, []int{0, 1, 2, 3, 4, 5, 6, 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []flow
			for _, i := range test.want {
				want = append(want, all[i])
			}
			view := service.Resolve(input(s, test.slices...), nodeN1(), detect())
			if diff := cmp.Diff(want, endedFlows(view, all...), cmp.AllowUnexported(flow{})); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a frontend of another protocol", func(t *testing.T) {
		view := service.Resolve(input(webService(), sliceOf("a", "10.0.0.1")), nodeN1(), detect())
		if got := endedFlows(view, flow{"10.96.0.10:80", "10.0.0.9:8080"}); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
}
