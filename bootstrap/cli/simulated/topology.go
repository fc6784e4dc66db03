package simulated

import (
	"errors"
	"fmt"
	"net/netip"

	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// topology is the file of `troupe simulator --topology`: the configuration that a CNI and an
// administrator make in a real VPP.
type topology struct {
	// Interfaces to the node and to its network.
	Interfaces []topologyInterface `json:"interfaces"`
	// Pods get a tap interface, a host route and a neighbour each.
	Pods []topologyPod `json:"pods"`
	// Routes to other networks.
	Routes []topologyRoute `json:"routes"`
}

// topologyInterface is an interface of VPP that does not lead to a pod.
type topologyInterface struct {
	Name string `json:"name"`
	// Addresses are "ip/len".
	Addresses []netip.Prefix `json:"addresses"`
	// Gateway makes the interface the uplink: the default route leads to this neighbour.
	Gateway netip.Addr `json:"gateway"`
	// Down leaves the interface administratively down.
	Down bool `json:"down"`
}

// topologyPod is a pod of the node.
type topologyPod struct {
	// Name of its interface.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
}

// topologyRoute is a static route.
type topologyRoute struct {
	To netip.Prefix `json:"to"`
	// Via is the next hop; Interface the outgoing interface, which is optional.
	Via       netip.Addr `json:"via"`
	Interface string     `json:"interface"`
}

// parseTopology reads a file strictly.
func parseTopology(content []byte) (*topology, error) {
	t := &topology{}
	if err := yaml.UnmarshalStrict(content, t); err != nil {
		return nil, err
	}
	var problems []error
	for i, one := range t.Interfaces {
		if one.Name == "" {
			problems = append(problems, fmt.Errorf("interfaces[%d].name: is required", i))
		}
	}
	for i, pod := range t.Pods {
		if pod.Name == "" || !pod.Address.IsValid() {
			problems = append(problems, fmt.Errorf("pods[%d]: name and address are required", i))
		}
	}
	for i, route := range t.Routes {
		if !route.To.IsValid() || !route.Via.IsValid() && route.Interface == "" {
			problems = append(problems, fmt.Errorf("routes[%d]: to, and via or interface, are required", i))
		}
	}
	return t, errors.Join(problems...)
}

// build configures a VPP that has just started empty.
func (t *topology) build(vpp *simulator.VPP) error {
	for _, one := range t.Interfaces {
		if _, err := vpp.AddInterface(one.Name, one.Addresses, !one.Down); err != nil {
			return err
		}
		if one.Gateway.IsValid() {
			if err := errors.Join(vpp.AddNeighbor(one.Name, one.Gateway, true), vpp.DefaultRoute(one.Name, one.Gateway)); err != nil {
				return err
			}
		}
	}
	for _, pod := range t.Pods {
		if _, err := vpp.AddPod(pod.Name, pod.Address); err != nil {
			return err
		}
	}
	for _, r := range t.Routes {
		if err := vpp.AddRoute(simulator.Route{Prefix: r.To.Masked(), Interface: r.Interface, NextHop: r.Via}); err != nil {
			return err
		}
	}
	return nil
}
