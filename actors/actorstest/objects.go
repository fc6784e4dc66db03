package actorstest

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// Serving are the settings of a cluster with one service network.
func Serving() service.Config {
	return service.Config{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
}

// Serve adds a Service with endpoints to the cluster.
func (s *Source) Serve(name, ip string, addresses ...string) {
	s.Change(func(store *kube.Store) {
		store.SetService(probe.Service(name, ip), nil)
		store.SetSlice(probe.Slice(name, addresses...), nil)
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
func (s *Source) furnish(ip6 bool) {
	o := &normalize.Objects{Nodes: []*messages.Node{probe.ThisNode()}}
	if ip6 {
		o.Nodes[0] = probe.DualNode()
	}
	for i := 2; i <= 5; i++ {
		o.Pods = append(o.Pods, probe.Pod(fmt.Sprint("p", i), fmt.Sprint("10.1.1.", i)))
	}
	s.Apply(o)
}
