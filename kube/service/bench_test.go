package service

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// benchInput is a service with one port and the given number of endpoints, in slices of 100 like
// the slices of the EndpointSlice controller.
func benchInput(endpoints int) (*messages.ServiceInput, *messages.NodeContext, Config) {
	in := &messages.ServiceInput{Key: "default/web", Service: &messages.Service{
		Namespace: "default", Name: "web", Uid: "0af3", Type: messages.ServiceType_NODE_PORT, ClusterIps: []string{"10.96.0.10"},
		IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
		Ports:      []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80, NodePort: 30080}},
	}}
	var slice *messages.EndpointSlice
	for i := range endpoints {
		if i%100 == 0 {
			slice = &messages.EndpointSlice{
				Namespace: "default", Name: fmt.Sprintf("web-%d", i/100), Service: "web", Family: messages.IPFamily_IPV4,
				Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080}},
			}
			in.Slices = append(in.Slices, slice)
		}
		// A multiplicative walk, so that the endpoints do not come in order.
		n := i * 7919 % 65536
		slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{
			Address: fmt.Sprintf("10.1.%d.%d", n/256, n%256), Ready: true, Serving: true, Node: fmt.Sprintf("node-%d", i%10),
			ZoneHints: []string{"a"},
		})
	}
	node := &messages.NodeContext{
		Node:      &messages.Node{Name: "node-1", Zone: "a"},
		Addresses: []string{"192.168.0.2"},
	}
	return in, node, Config{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, endpoints := range []int{5, 1000} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			in, node, cfg := benchInput(endpoints)
			b.ReportAllocs()
			for b.Loop() {
				if view := Resolve(in, node, cfg); len(view.GetFrontends()) != 2 {
					b.Fatalf("%d rows", len(view.GetFrontends()))
				}
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	view := Resolve(benchInput(1000))
	b.ReportAllocs()
	for b.Loop() {
		Hash(view)
	}
}
