package actorstest

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Names and addresses of the node that every World begins with, unless its Config says Empty. Pods 2 to 5 of the node have the addresses 10.1.1.2 to
// 10.1.1.5 and the interfaces pod2 to pod5; everything else is behind Uplink.
const (
	Node          = "n1"
	UplinkAddress = "192.168.16.1"
	Uplink        = "uplink0"
)

// Serving are the settings of a cluster with one service network.
func Serving() service.Config {
	return service.Config{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
}

// Topology makes the interfaces of the node in VPP.
func Topology(v *simulator.VPP) {
	_, err := v.AddInterface(Uplink, []netip.Prefix{netip.MustParsePrefix(UplinkAddress + "/24")}, true)
	err = errors.Join(err, v.DefaultRoute(Uplink, netip.MustParseAddr("192.168.16.254")))
	for i := byte(2); i <= 5; i++ {
		_, e := v.AddPod(fmt.Sprint("pod", i), netip.AddrFrom4([4]byte{10, 1, 1, i}))
		err = errors.Join(err, e)
	}
	if err != nil {
		panic(err)
	}
}

// ThisNode is the object of the node.
func ThisNode() *messages.Node {
	return &messages.Node{Name: Node, Uid: "u1", Zone: "a", Addresses: []string{UplinkAddress}, PodCidrs: []string{"10.1.1.0/24"}}
}

// Peer is the object of another node.
func Peer(address string) *messages.Node {
	return &messages.Node{Name: "n2", Uid: "u2", Zone: "b", Addresses: []string{address}, PodCidrs: []string{"10.1.2.0/24"}}
}

// Pod is a pod of the node, "default/NAME".
func Pod(name, address string) *messages.Pod {
	return &messages.Pod{Namespace: "default", Name: name, Node: Node, Addresses: []string{address}}
}

// Service is the Service "default/NAME" with the TCP port 80.
func Service(name, ip string) *messages.Service {
	return &messages.Service{
		Namespace: "default", Name: name, Uid: "uid-" + name, Created: 1, ClusterIps: []string{ip}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
		Ports: []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80}},
	}
}

// Slice is the first EndpointSlice of a Service, with ready endpoints at port 8080; 10.1.1.x are on this node.
func Slice(service string, addresses ...string) *messages.EndpointSlice {
	s := &messages.EndpointSlice{
		Namespace: "default", Name: service + "-1", Service: service, Family: messages.IPFamily_IPV4,
		Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080}},
	}
	for _, a := range addresses {
		node := "n2"
		if strings.HasPrefix(a, "10.1.1.") {
			node = Node
		}
		s.Endpoints = append(s.Endpoints, &messages.Endpoint{Address: a, Ready: true, Serving: true, Node: node})
	}
	return s
}

// Serve adds a Service with endpoints to the cluster.
func (s *Source) Serve(name, ip string, addresses ...string) {
	s.Change(func(store *kube.Store) {
		store.SetService(Service(name, ip), nil)
		store.SetSlice(Slice(name, addresses...), nil)
	})
}

// Apply puts objects into the cluster.
func (s *Source) Apply(o *normalize.Objects) {
	s.Change(func(store *kube.Store) {
		for _, one := range o.Nodes {
			store.SetNode(one, nil)
		}
		for _, one := range o.Pods {
			store.SetPod(one, nil)
		}
		for _, one := range o.Services {
			store.SetService(one, nil)
		}
		for _, one := range o.Slices {
			store.SetSlice(one, nil)
		}
	})
}

// furnish puts the node and its pods into the cluster.
func (s *Source) furnish() {
	o := &normalize.Objects{Nodes: []*messages.Node{ThisNode()}}
	for i := 2; i <= 5; i++ {
		o.Pods = append(o.Pods, Pod(fmt.Sprint("p", i), fmt.Sprint("10.1.1.", i)))
	}
	s.Apply(o)
}
