package main

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// big adds services of many endpoints. One endpoint of each becomes ready and unready in turn; the
// figures are what the agent does in VPP for it.
func (n *node) big(_ options, services int, out *figures) error {
	p, err := n.proxied()
	if err != nil {
		return err
	}
	f := n.source.(*feed)
	for i, many := range []int{1000, 5000} {
		p.calm(calm)
		slices, err := f.addBig(maxServices+i, many)
		if err != nil {
			return err
		}
		flapping, slice := p.used(slices)
		if flapping == nil {
			return fmt.Errorf("VPP got no endpoint of a service of %d", many)
		}
		before, err := n.operations()
		if err != nil {
			return err
		}
		const flaps = 40
		var times []time.Duration
		for flap := range flaps {
			p.calm(calm)
			ready := flap%2 == 1
			flapping.Conditions.Ready = &ready
			began := time.Now()
			if err := f.change(f.of, slice); err != nil {
				return err
			}
			answered, err := p.answer(n)
			if err != nil {
				return err
			}
			times = append(times, answered.Sub(began))
		}
		p.calm(calm)
		after, err := n.operations()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("one of %d endpoints flaps", many)
		out.add(name+": operations on VPP each time", services, "", (after-before)/flaps)
		out.addTimes(name, services, times)
	}
	return nil
}

// used returns an endpoint that VPP has got since the last calm: a row of VPP holds a part of so
// many.
func (p *proxy) used(slices []*discoveryv1.EndpointSlice) (*discoveryv1.Endpoint, *discoveryv1.EndpointSlice) {
	for _, answer := range p.settled() {
		for _, slice := range slices {
			for i := range slice.Endpoints {
				if slice.Endpoints[i].Addresses[0] == netip.AddrFrom4(answer.added).String() {
					return &slice.Endpoints[i], slice
				}
			}
		}
	}
	return nil, nil
}

// addBig adds a service with so many endpoints.
func (f *feed) addBig(number, many int) (slices []*discoveryv1.EndpointSlice, err error) {
	const perSlice = 100 // as the EndpointSlice controller makes them
	s := serviceOf(number)
	s.Spec.ClusterIP = clusterIP(number)
	s.Spec.ClusterIPs, s.Spec.IPFamilies = []string{s.Spec.ClusterIP}, []corev1.IPFamily{corev1.IPv4Protocol}
	if err := f.change(f.watched[servicesPath], s); err != nil {
		return nil, err
	}
	for first := 0; first < many; first += perSlice {
		slice := sliceOf(number)
		slice.Name = fmt.Sprintf("s%d-%d", number, first)
		one := slice.Endpoints[0]
		slice.Endpoints = nil
		for e := first; e < first+perSlice; e++ {
			address, node := endpoint(e)
			one := *one.DeepCopy()
			one.Addresses, one.NodeName = []string{address}, &node
			slice.Endpoints = append(slice.Endpoints, one)
		}
		if err := f.change(f.of, slice); err != nil {
			return nil, err
		}
		slices = append(slices, slice)
	}
	return slices, nil
}
