package status

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// told is what the agents of a cluster record: how many agents record each event, and how many
// events are an agent's own.
type told struct {
	shared map[events.Event]int
	own    int
}

func (o *told) Record(e events.Event) {
	if !e.Shared {
		o.own++
	}
	o.shared[e]++
}

// TestEventsOfACluster starts five agents with 5,000 services each. The services have two families,
// a node port, and endpoints on all nodes. 15 of them ask for something special. Each of these is
// one event, the same one on every node.
func TestEventsOfACluster(t *testing.T) {
	const nodes, services, sticky, sctp = 5, 5000, 10, 5
	o := &told{shared: map[events.Event]int{}}
	for n := range nodes {
		p := newPublisher(&Config{Events: o, NodeName: fmt.Sprintf("n%d", n)})
		for i := range services {
			s := oneOf(i)
			switch {
			case i < sticky:
				s.GetService().AffinitySeconds = 600
			case i < sticky+sctp:
				s.GetService().Ports[0].Protocol, s.GetSlices()[0].Ports[0].Protocol = messages.Protocol_SCTP, messages.Protocol_SCTP
			}
			p.status(planned(s, n))
		}
	}
	kinds := map[string]int{}
	for e, recorded := range o.shared {
		kinds[e.Type+" "+e.Reason]++
		if recorded != nodes {
			t.Errorf("%d nodes record %s %s: %s", recorded, e.Object, e.Reason, e.Note)
		}
	}
	if diff := cmp.Diff(map[string]int{"Normal Approximated": sticky, "Warning FailedToRender": sctp}, kinds); diff != "" || o.own > 0 {
		t.Errorf("%d events of single nodes; events (-want +got):\n%s", o.own, diff)
	}
}

// oneOf returns a service with a node port and endpoints on two nodes.
func oneOf(i int) *messages.ServiceInput {
	name := fmt.Sprintf("s%d", i)
	port := &messages.ServicePort{Name: "x", Protocol: messages.Protocol_TCP, Port: 80, NodePort: 30000}
	s := &messages.Service{
		Namespace: "many", Name: name, Uid: name, Type: messages.ServiceType_NODE_PORT, Ports: []*messages.ServicePort{port},
		ClusterIps: []string{fmt.Sprintf("10.96.%d.%d", i/250, 1+i%250), fmt.Sprintf("fd00::%x", i+1)},
		IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4, messages.IPFamily_IPV6},
	}
	slice := &messages.EndpointSlice{
		Namespace: "many", Name: name + "-1", Service: name, Family: messages.IPFamily_IPV4,
		Ports: []*messages.EndpointPort{{Name: "x", Protocol: messages.Protocol_TCP, Port: 8080}},
	}
	for n := range 2 {
		slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{
			Address: fmt.Sprintf("10.%d.%d.%d", 1+n, i/250, 1+i%250), Ready: true, Serving: true, Node: fmt.Sprintf("n%d", n),
		})
	}
	return &messages.ServiceInput{Key: "many/" + name, Service: s, Slices: []*messages.EndpointSlice{slice}}
}

// planned is the status of a service on a node whose VPP took everything.
func planned(in *messages.ServiceInput, n int) *messages.ServiceStatus {
	node := &messages.NodeContext{Node: &messages.Node{Name: fmt.Sprintf("n%d", n)}, Addresses: []string{fmt.Sprintf("10.0.0.%d", 1+n)}}
	view := service.Resolve(in, node, service.Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	plan := nat44.Plan(view, nat44.Config{Node: node.GetNode().GetName(), Guarded: true})
	ack := &messages.RenderAck{
		Key: in.GetKey(), Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC, Approximations: plan.Approximations, Unrendered: plan.Unrendered,
	}
	return &messages.ServiceStatus{Key: in.GetKey(), View: view, Renders: []*messages.RenderAck{ack}}
}
