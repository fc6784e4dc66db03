package service_test

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// A service with the Local external policy, on the node n1. Remote clients get the endpoint on this
// node and keep their address. Clients on this node get all endpoints.
func ExampleResolve() {
	in := &messages.ServiceInput{
		Key: "default/web",
		Service: &messages.Service{
			Namespace: "default", Name: "web",
			Type:           messages.ServiceType_NODE_PORT,
			ClusterIps:     []string{"10.96.0.10"},
			IpFamilies:     []messages.IPFamily{messages.IPFamily_IPV4},
			ExternalPolicy: messages.TrafficPolicy_POLICY_LOCAL,
			Ports:          []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80, NodePort: 30080}},
		},
		Slices: []*messages.EndpointSlice{{
			Namespace: "default", Name: "web-abc", Service: "web", Family: messages.IPFamily_IPV4,
			Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080}},
			Endpoints: []*messages.Endpoint{
				{Address: "10.1.1.3", Ready: true, Serving: true, Node: "n1"},
				{Address: "10.1.2.7", Ready: true, Serving: true, Node: "n2"},
			},
		}},
	}
	node := &messages.NodeContext{Node: &messages.Node{Name: "n1", Addresses: []string{"192.168.0.2"}}, Addresses: []string{"192.168.0.2"}}

	view := service.Resolve(in, node, service.Config{})
	for _, row := range view.GetFrontends() {
		fmt.Print(service.FrontendText(row), " from ", service.Word(row.GetFrom()), ": ", service.Word(row.GetAction()))
		for _, backend := range row.GetBackends() {
			fmt.Print(" ", service.BackendText(backend))
		}
		fmt.Println()
	}
	// Output:
	// 10.96.0.10:80/TCP from any: forward 10.1.1.3:8080 10.1.2.7:8080
	// 192.168.0.2:30080/TCP from local: forward 10.1.1.3:8080 10.1.2.7:8080
	// 192.168.0.2:30080/TCP from remote: forward 10.1.1.3:8080
}

// A Table returns the treatment of single packets.
func ExampleTable_Verdict() {
	cfg := service.Config{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
	view := service.Resolve(&messages.ServiceInput{
		Key: "default/web",
		Service: &messages.Service{
			Namespace: "default", Name: "web", ClusterIps: []string{"10.96.0.10"},
			Ports: []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80}},
		},
	}, nil, cfg)
	table := service.NewTable([]*messages.ServiceView{view}, nil, cfg)
	for _, text := range []string{"10.96.0.10:80/TCP", "10.96.0.10:443/TCP", "10.96.0.11:80/TCP", "192.0.2.1:80/TCP"} {
		destination, protocol, err := service.ParseFrontendText(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		packet := service.Packet{Source: netip.MustParseAddr("10.1.1.9"), Destination: destination, Protocol: protocol}
		fmt.Println(text, table.Verdict(packet).Word())
	}
	// Output:
	// 10.96.0.10:80/TCP reject
	// 10.96.0.10:443/TCP reject
	// 10.96.0.11:80/TCP drop
	// 192.0.2.1:80/TCP none
}

// The node ports of a node with several addresses.
func ExampleParseNodePortAddresses() {
	addresses := []string{"192.168.0.2", "172.16.0.2", "127.0.0.1"}
	node := &messages.NodeContext{Node: &messages.Node{Addresses: addresses}, Addresses: addresses}
	for _, words := range [][]string{{"primary"}, {"172.16.0.0/12"}, nil} {
		chosen, err := service.ParseNodePortAddresses(words)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(chosen, chosen.Select(node, messages.IPFamily_IPV4))
	}
	// Output:
	// primary [192.168.0.2]
	// 172.16.0.0/12 [172.16.0.2]
	// all [192.168.0.2 172.16.0.2]
}
