package service_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestDraining: the endpoints of the slices that keep their connections and get no new ones.
func TestDraining(t *testing.T) {
	sticky := func(s *messages.Service) { s.AffinitySeconds = 60 }
	overUDP := func(s *messages.Service) { s.Ports[0].Protocol = messages.Protocol_UDP }
	for _, test := range []struct {
		name      string
		service   *messages.Service
		endpoints []string
		want      string
	}{
		{"all are used", webService(), []string{"10.0.0.1@n1", "10.0.0.2@n2"}, ""},
		{"not ready", webService(), []string{"10.0.0.1@n1", "10.0.0.2@n2 notready"}, "10.0.0.2"},
		{"terminating and serving", webService(), []string{"10.0.0.1@n1", "10.0.0.2@n2 notready serving terminating"}, "10.0.0.2"},
		{"terminating, and used because no other endpoint is ready", webService(), []string{"10.0.0.2@n2 notready serving terminating"}, ""},
		{"none is ready: refused", webService(), []string{"10.0.0.1@n1 notready", "10.0.0.2@n2 notready"}, "10.0.0.1,10.0.0.2"},
		{"not of this zone", webService(), []string{"10.0.0.1@n1 zone=a", "10.0.0.2@n2 zone=b"}, "10.0.0.2"},
		{"not on this node", webService(internalLocal), []string{"10.0.0.1@n1", "10.0.0.2@n2"}, "10.0.0.2"},
		{"none on this node: dropped", webService(internalLocal), []string{"10.0.0.2@n2"}, "10.0.0.2"},
		{"UDP: not ready", webService(overUDP), []string{"10.0.0.1@n1", "10.0.0.2@n2 notready"}, ""},
		{"UDP: terminating and serving", webService(overUDP), []string{"10.0.0.1@n1", "10.0.0.2@n2 notready serving terminating"}, "10.0.0.2"},
		{"affinity: not ready", webService(sticky), []string{"10.0.0.1@n1", "10.0.0.2@n2 notready"}, ""},
		{"affinity: terminating and serving", webService(sticky), []string{"10.0.0.1@n1", "10.0.0.2@n2 notready serving terminating"}, "10.0.0.2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			slice := sliceOf("a", test.endpoints...)
			slice.Ports[0].Protocol = test.service.GetPorts()[0].GetProtocol()
			view := service.Resolve(input(test.service, slice), nodeN1(), detect())
			var got []string
			for _, b := range view.GetFrontends()[0].GetDraining() {
				got = append(got, b.GetAddress())
			}
			if strings.Join(got, ",") != test.want {
				t.Errorf("draining %v, want %s; %v", got, test.want, lines(view))
			}
			other := service.Resolve(input(test.service, sliceOf("a")), nodeN1(), detect())
			if proto.Equal(view, other) || service.Hash(view) == service.Hash(other) {
				t.Error("the view is the same as without endpoints")
			}
		})
	}
}
