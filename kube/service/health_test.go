package service_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func healthPort(port uint32) change {
	return func(s *messages.Service) { s.HealthCheckNodePort = port }
}

func TestHealthCheckPortExistsOnlyForLocalLoadBalancers(t *testing.T) {
	for _, test := range []struct {
		name    string
		service *messages.Service
		want    int
	}{
		{"LoadBalancer with the Local policy", webService(loadBalancer("1.2.3.4"), externalLocal, healthPort(31000)), 1},
		{"even without an address yet", webService(loadBalancer(), externalLocal, healthPort(31000)), 1},
		{"not with the Cluster policy", webService(loadBalancer("1.2.3.4"), healthPort(31000)), 0},
		{"not without a port", webService(loadBalancer("1.2.3.4"), externalLocal), 0},
		{"not with a port that is none", webService(loadBalancer("1.2.3.4"), externalLocal, healthPort(65536)), 0},
		{"not for NodePort services", webService(nodePort(30080), externalLocal, healthPort(31000)), 0},
		{"not for ClusterIP services", webService(externalIPs("1.2.3.4"), externalLocal, healthPort(31000)), 0},
		{"one for each family", webService(dualStack, loadBalancer("1.2.3.4"), externalLocal, healthPort(31000)), 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := service.Resolve(input(test.service), nodeN1("192.168.0.2", "2001:db8::2"), detect())
			if got := view.GetHealthChecks(); len(got) != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
}

func TestHealthCheckCountsAddressesOfReadyLocalEndpoints(t *testing.T) {
	for _, test := range []struct {
		name      string
		endpoints []string
		want      uint32
	}{
		{"nothing", nil, 0},
		{"ready ones here", []string{"10.0.0.1@n1", "10.0.0.2@n1", "10.0.0.3@n2", "10.0.0.4"}, 2},
		{"the same address twice", []string{"10.0.0.1@n1", "10.0.0.1@n1"}, 1},
		{"terminating ones that still get traffic do not count", []string{"10.0.0.1@n1 notready serving terminating"}, 0},
		{"terminating ones that are ready do", []string{"10.0.0.1@n1 terminating"}, 1},
		{"unready ones do not count", []string{"10.0.0.1@n1 notready serving"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			slice := sliceOf("a", test.endpoints...)
			// The slice has two ports, and the Service has only one of them.
			slice.Ports = append(slice.Ports, &messages.EndpointPort{Name: "other", Protocol: tcp, Port: 9090})
			s := webService(loadBalancer("1.2.3.4"), externalLocal, healthPort(31000))
			checks := service.Resolve(input(s, slice), nodeN1(), detect()).GetHealthChecks()
			if len(checks) != 1 || checks[0].GetLocalEndpoints() != test.want || checks[0].GetPort() != 31000 {
				t.Errorf("got %v, want %d", checks, test.want)
			}
		})
	}
	t.Run("over all slice ports, even those the Service does not have", func(t *testing.T) {
		slice := sliceOf("a", "10.0.0.1@n1")
		slice.Ports[0].Name = "other"
		s := webService(loadBalancer("1.2.3.4"), externalLocal, healthPort(31000))
		if checks := service.Resolve(input(s, slice), nodeN1(), detect()).GetHealthChecks(); checks[0].GetLocalEndpoints() != 1 {
			t.Errorf("got %v", checks)
		}
	})
}

func TestHealthCheckListensOnTheNodePortAddressesOfItsFamily(t *testing.T) {
	s := webService(dualStack, loadBalancer("1.2.3.4"), externalLocal, healthPort(31000))
	cfg := detect()
	cfg.NodePortAddresses = mustNodePorts(t, "192.168.0.0/16", "2001:db8::/64")
	in := input(s, sliceOf("a", "10.0.0.1@n1"), sliceOf("b", "fd00:10::1@n2"))
	got := service.Resolve(in, nodeN1("192.168.0.2", "2001:db8::2", "172.16.0.1", "192.168.1.2"), cfg).GetHealthChecks()
	if len(got) != 2 {
		t.Fatalf("got %v", got)
	}
	if diff := cmp.Diff([]string{"192.168.0.2:31000", "192.168.1.2:31000"}, got[0].GetListenAddresses()); diff != "" {
		t.Errorf("IPv4 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"[2001:db8::2]:31000"}, got[1].GetListenAddresses()); diff != "" {
		t.Errorf("IPv6 (-want +got):\n%s", diff)
	}
	if got[0].GetLocalEndpoints() != 1 || got[1].GetLocalEndpoints() != 0 {
		t.Errorf("families are not counted apart: %v", got)
	}
	if checks := service.Resolve(in, nodeN1("192.168.0.2"), cfg).GetHealthChecks(); len(checks) != 1 {
		t.Errorf("a family without node addresses has a health check: %v", checks)
	}
}

func TestHealthAnswer(t *testing.T) {
	for _, test := range []struct {
		check   *messages.HealthCheck
		healthy bool
		status  int
		body    string
	}{
		{&messages.HealthCheck{LocalEndpoints: 2}, true, 200, "{\n\t\"service\": {\n\t\t\"namespace\": \"a\",\n\t\t\"name\": \"b\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}"},
		{&messages.HealthCheck{}, true, 503, "{\n\t\"service\": {\n\t\t\"namespace\": \"a\",\n\t\t\"name\": \"b\"\n\t},\n\t\"localEndpoints\": 0,\n\t\"serviceProxyHealthy\": true\n}"},
		{&messages.HealthCheck{LocalEndpoints: 2}, false, 503, "{\n\t\"service\": {\n\t\t\"namespace\": \"a\",\n\t\t\"name\": \"b\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": false\n}"},
		{nil, true, 503, "{\n\t\"service\": {\n\t\t\"namespace\": \"a\",\n\t\t\"name\": \"b\"\n\t},\n\t\"localEndpoints\": 0,\n\t\"serviceProxyHealthy\": true\n}"},
	} {
		got := service.HealthAnswer("a/b", test.check, test.healthy)
		if got.Status != test.status || string(got.Body) != test.body {
			t.Errorf("%v healthy %t: %d %s", test.check, test.healthy, got.Status, got.Body)
		}
		header := fmt.Sprint(got.Header.Get("Content-Type"), got.Header.Get("X-Content-Type-Options"), got.Header.Get("X-Load-Balancing-Endpoint-Weight"))
		if want := fmt.Sprint("application/json", "nosniff", test.check.GetLocalEndpoints()); header != want {
			t.Errorf("header %v", got.Header)
		}
	}
}
