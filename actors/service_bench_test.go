package actors_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// BenchmarkResolveAndPlan is the whole computation for one changed service before a message to VPP:
// from the API objects to the rows of a service with a cluster IP and a node port. It has no access
// lists. The endpoints are in slices of 100, out of order, and have hints. The aims are 10 us for 5
// endpoints and 500 us for 1,000.
func BenchmarkResolveAndPlan(b *testing.B) {
	for _, endpoints := range []int{5, 1000} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			in, node, serving := manyEndpointsInput(endpoints)
			rendering := nat44.Config{Node: "node-1", Pads: true, Guarded: true, TwiceNAT: netip.MustParseAddr("10.1.1.254")}
			b.ReportAllocs()
			for b.Loop() {
				view := service.Resolve(in, node, serving)
				guard, plan := acl.Plan(view, acl.Config{}), nat44.Plan(view, rendering)
				if guard.Needs != 0 || len(plan.Rows) != 2 || len(plan.Rows[1].Locals) != min(endpoints, nat44.MaxBackends) {
					b.Fatalf("%d rules, rows %v", guard.Needs, plan.Rows)
				}
			}
		})
	}
}

func manyEndpointsInput(endpoints int) (*messages.ServiceInput, *messages.NodeContext, service.Config) {
	in := &messages.ServiceInput{Key: "default/web", Service: &messages.Service{
		Namespace: "default", Name: "web", Uid: "0af3", Type: messages.ServiceType_NODE_PORT, ClusterIps: []string{"10.96.0.10"},
		IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
		Ports:      []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80, NodePort: 30080}},
	}}
	for i := range endpoints {
		if i%100 == 0 {
			in.Slices = append(in.Slices, &messages.EndpointSlice{
				Namespace: "default", Name: fmt.Sprintf("web-%d", i/100), Service: "web", Family: messages.IPFamily_IPV4,
				Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080}},
			})
		}
		n := i * 7919 % 65536 // a walk, so that they do not come in order
		slice := in.Slices[i/100]
		slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{
			Address: fmt.Sprintf("10.1.%d.%d", n/256, n%256), Ready: true, Serving: true, Node: fmt.Sprintf("node-%d", i%10), ZoneHints: []string{"a"},
		})
	}
	node := &messages.NodeContext{Node: &messages.Node{Name: "node-1", Zone: "a"}, Addresses: []string{"192.168.0.2"}}
	return in, node, service.Config{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
	}
}
