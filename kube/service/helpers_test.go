package service_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// The tables use one service default/web at 10.96.0.10:80 with slice port 8080. The node is n1
// (192.168.0.2) in zone a; pods are in 10.0.0.0/8. Rows are compared as lines of text, see line.

const (
	tcp = messages.Protocol_TCP
	udp = messages.Protocol_UDP
	v4  = messages.IPFamily_IPV4
	v6  = messages.IPFamily_IPV6
)

// change alters the Service of a table entry.
type change func(*messages.Service)

// webService makes the service of the tables.
func webService(changes ...change) *messages.Service {
	s := &messages.Service{
		Namespace: "default", Name: "web", ClusterIps: []string{"10.96.0.10"}, IpFamilies: []messages.IPFamily{v4},
		Ports: []*messages.ServicePort{{Name: "http", Protocol: tcp, Port: 80}},
	}
	for _, apply := range changes {
		apply(s)
	}
	return s
}

func nodePort(port uint32) change {
	return func(s *messages.Service) {
		s.Type = max(s.GetType(), messages.ServiceType_NODE_PORT)
		s.Ports[0].NodePort = port
	}
}

func loadBalancer(ips ...string) change {
	return func(s *messages.Service) {
		s.Type = messages.ServiceType_LOAD_BALANCER
		for _, ip := range ips {
			s.LoadBalancer = append(s.LoadBalancer, &messages.LoadBalancerIngress{Ip: ip})
		}
	}
}

func externalIPs(ips ...string) change { return func(s *messages.Service) { s.ExternalIps = ips } }

func ranges(cidrs ...string) change { return func(s *messages.Service) { s.SourceRanges = cidrs } }

func internalLocal(s *messages.Service) { s.InternalPolicy = messages.TrafficPolicy_POLICY_LOCAL }

func externalLocal(s *messages.Service) { s.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL }

func dualStack(s *messages.Service) {
	s.ClusterIps = []string{"10.96.0.10", "fd00:96::10"}
	s.IpFamilies = []messages.IPFamily{v4, v6}
}

// ep makes an endpoint from words such as "10.0.0.1@n1 ready". The words are ready, notready,
// serving, terminating, zone=a, node=n1. Without a word about conditions it is ready and serving.
func ep(words string) *messages.Endpoint {
	fields := strings.Fields(words)
	e := &messages.Endpoint{}
	e.Address, e.Node, _ = strings.Cut(fields[0], "@")
	e.Ready, e.Serving = true, true
	for _, word := range fields[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "ready":
			e.Ready = true
		case "notready":
			e.Ready, e.Serving = false, false
		case "serving":
			e.Serving = true
		case "notserving":
			e.Serving = false
		case "terminating":
			e.Terminating = true
		case "zone":
			e.ZoneHints = append(e.ZoneHints, value)
		case "node":
			e.NodeHints = append(e.NodeHints, value)
		default:
			panic("unknown word " + word)
		}
	}
	return e
}

// sliceOf makes a slice of default/web with one port http 8080/TCP. The family is the family of the
// first endpoint.
func sliceOf(name string, endpoints ...string) *messages.EndpointSlice {
	s := &messages.EndpointSlice{
		Namespace: "default", Name: name, Service: "web", Family: v4,
		Ports: []*messages.EndpointPort{{Name: "http", Protocol: tcp, Port: 8080}},
	}
	for _, words := range endpoints {
		s.Endpoints = append(s.Endpoints, ep(words))
	}
	if len(endpoints) > 0 && strings.Contains(s.GetEndpoints()[0].GetAddress(), ":") {
		s.Family = v6
	}
	return s
}

// input puts a service and slices together.
func input(s *messages.Service, endpointSlices ...*messages.EndpointSlice) *messages.ServiceInput {
	return &messages.ServiceInput{Key: "default/web", Service: s, Slices: endpointSlices}
}

// nodeN1 is the node of the tables.
func nodeN1(addresses ...string) *messages.NodeContext {
	if len(addresses) == 0 {
		addresses = []string{"192.168.0.2"}
	}
	return &messages.NodeContext{Node: &messages.Node{Name: "n1", Zone: "a", Addresses: addresses}, Addresses: addresses}
}

// detect is a configuration that recognises pods of both families.
func detect() service.Config {
	return service.Config{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00:10::/32")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
	}
}

func mustNodePorts(t *testing.T, words ...string) service.NodePortAddresses {
	t.Helper()
	n, err := service.ParseNodePortAddresses(words)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// line returns a row as text: "10.96.0.10:80/TCP any forward 10.0.0.1:8080,10.0.0.2:8080", then
// affinity=, masq= and allow= if they are set.
func line(row *messages.Frontend) string {
	words := []string{service.FrontendText(row), service.Word(row.GetFrom()), service.Word(row.GetAction())}
	if len(row.GetBackends()) > 0 {
		words = append(words, strings.Join(backendTexts(row.GetBackends()), ","))
	}
	if row.GetAffinitySeconds() > 0 {
		words = append(words, "affinity")
	}
	if len(row.GetMasqueradeFrom()) > 0 {
		words = append(words, "masq="+strings.Join(row.GetMasqueradeFrom(), ","))
	}
	if len(row.GetAllowSources()) > 0 {
		words = append(words, "allow="+strings.Join(row.GetAllowSources(), ","))
	}
	return strings.Join(words, " ")
}

func lines(view *messages.ServiceView) []string {
	all := []string{}
	for _, row := range view.GetFrontends() {
		all = append(all, line(row))
	}
	return all
}

// wantLines compares the rows of a view with lines, and checks the invariants of the view.
func wantLines(t *testing.T, view *messages.ServiceView, want ...string) {
	t.Helper()
	if problem := invariantBroken(view); problem != "" {
		t.Error(problem)
	}
	if diff := cmp.Diff(append([]string{}, want...), lines(view)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
