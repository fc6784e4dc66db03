package service_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func TestServicesThatAreNotServed(t *testing.T) {
	for _, test := range []struct {
		name    string
		service *messages.Service
		want    string
	}{
		{"only slices", nil, service.NotServedNoService},
		{"headless", webService(func(s *messages.Service) { s.Headless, s.ClusterIps = true, nil }), service.NotServedHeadless},
		{"headless with node port", webService(nodePort(30080), func(s *messages.Service) { s.Headless = true }), service.NotServedHeadless},
		{"another proxy's", webService(func(s *messages.Service) { s.ForeignProxy = true }), service.NotServedForeignProxy},
		{"another proxy's headless", webService(func(s *messages.Service) { s.ForeignProxy, s.Headless = true, true }), service.NotServedForeignProxy},
		{"ExternalName", webService(func(s *messages.Service) { s.Type, s.ClusterIps = messages.ServiceType_EXTERNAL_NAME, nil }), service.NotServedExternalName},
		{
			"ExternalName with the addresses of an earlier life",
			webService(externalIPs("1.2.3.4"), func(s *messages.Service) { s.Type = messages.ServiceType_EXTERNAL_NAME }),
			service.NotServedExternalName,
		},
		{"no cluster IP yet", webService(externalIPs("1.2.3.4"), func(s *messages.Service) { s.ClusterIps = nil }), service.NotServedNoClusterIP},
		{"a cluster IP that is none", webService(externalIPs("1.2.3.4"), func(s *messages.Service) { s.ClusterIps[0] = "10.96" }), service.NotServedNoClusterIP},
		{"a cluster IP of a family it has not", webService(func(s *messages.Service) { s.IpFamilies[0] = v6 }), service.NotServedNoClusterIP},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := service.Resolve(input(test.service, sliceOf("a", "10.0.0.1@n1")), nodeN1(), detect())
			if view.GetNotServed() != test.want || view.GetKey() != "default/web" {
				t.Errorf("%s: not served: %q, want %q", view.GetKey(), view.GetNotServed(), test.want)
			}
			wantLines(t, view)
		})
	}
}

func TestViewCarriesTheIdentityOfTheService(t *testing.T) {
	view := service.Resolve(input(webService(func(s *messages.Service) { s.Uid, s.Created = "0af3", 1700000000 })), nodeN1(), service.Config{})
	if view.GetKey() != "default/web" || view.GetUid() != "0af3" || view.GetCreated() != 1700000000 {
		t.Errorf("view: %v", view)
	}
}

func TestNilArgumentsAreAllowed(t *testing.T) {
	for _, in := range []*messages.ServiceInput{
		nil,
		{},
		{Slices: []*messages.EndpointSlice{nil}},
		{Service: &messages.Service{ClusterIps: []string{"10.0.0.1"}, Ports: []*messages.ServicePort{nil}}, Slices: []*messages.EndpointSlice{nil}},
		{Service: webService(), Errors: []*messages.ObjectError{nil, nil}, Slices: []*messages.EndpointSlice{{
			Namespace: "default", Service: "web", Family: v4, Endpoints: []*messages.Endpoint{nil}, Ports: []*messages.EndpointPort{nil},
		}}},
	} {
		if problem := invariantBroken(service.Resolve(in, nil, service.Config{})); problem != "" {
			t.Errorf("%v: %s", in, problem)
		}
	}
}

// TestProblems: an unusable part is reported, and the rest is served.
func TestProblems(t *testing.T) {
	s := webService(externalIPs("1.2.3.4", "1.2.3"), loadBalancer("5.6.7.8", "lb.example.com", ""), ranges("0.0.0.0/64"))
	s.ClusterIps, s.IpFamilies = []string{"10.96.0.10", "10.96.0.11"}, []messages.IPFamily{v4, v6}
	s.Ports[0].NodePort = 70000
	s.Ports = append(s.Ports, &messages.ServicePort{Name: "icmp", Protocol: 1, Port: 1}, &messages.ServicePort{Name: "zero", Protocol: tcp})
	in := input(s)
	in.Errors = []*messages.ObjectError{{Source: "file.yaml", Kind: "EndpointSlice", Object: "default/web-1", Field: "ports", Message: "broken"}}
	view := service.Resolve(in, nodeN1(), service.Config{})
	wantLines(t, view, "1.2.3.4:80/TCP any reject", "10.96.0.10:80/TCP any reject", "5.6.7.8:80/TCP any drop")
	var got []string
	for _, e := range view.GetErrors() {
		got = append(got, e.GetSource()+" "+e.GetKind()+" "+e.GetObject()+" "+e.GetField()+": "+e.GetMessage())
	}
	want := []string{
		"file.yaml EndpointSlice default/web-1 ports: broken",
		`kubernetes Service default/web spec.clusterIPs[1]: "10.96.0.11" is not of the family in ipFamilies`,
		`kubernetes Service default/web spec.externalIPs: "1.2.3" is not an address`,
		`kubernetes Service default/web spec.loadBalancerSourceRanges: "0.0.0.0/64" is not a CIDR; it admits no client`,
		"kubernetes Service default/web spec.ports[0].nodePort: 70000 is not a port number",
		"kubernetes Service default/web spec.ports[1].protocol: unsupported protocol 1",
		"kubernetes Service default/web spec.ports[2].port: 0 is not a port number",
		`kubernetes Service default/web status.loadBalancer.ingress: "lb.example.com" is not an address`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestInputsAreNotModified(t *testing.T) {
	s := webService(dualStack, nodePort(30080), loadBalancer("1.2.3.4"), ranges("203.0.113.0/24", "10.0.0.0/8"), externalLocal)
	in := input(s, sliceOf("b", "10.0.0.2@n2", "10.0.0.1@n1"), sliceOf("a", "fd00:10::2", "fd00:10::1"))
	in.Errors = []*messages.ObjectError{{Kind: "Z"}, {Kind: "A"}}
	node, cfg := nodeN1(), detect()
	before, nodeBefore := proto.Clone(in), proto.Clone(node)
	for range 2 {
		service.Hash(service.Resolve(in, node, cfg))
	}
	if diff := cmp.Diff(before, proto.Message(in), protocmp.Transform()); diff != "" {
		t.Errorf("input (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(nodeBefore, proto.Message(node), protocmp.Transform()); diff != "" {
		t.Errorf("node (-before +after):\n%s", diff)
	}
}
