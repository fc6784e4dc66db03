package desired

import (
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// endpointsTick computes the local endpoints, shortly after the first of several changes.
type endpointsTick struct{}

// endpointsDelay gathers changes of local endpoints. Only the backend set depends on them, so the
// delay does no harm.
const endpointsDelay = 50 * time.Millisecond

// host notes the endpoints of a service on this node.
func (r *registry) host(c *runtime.Context, in *messages.ServiceInput) {
	addresses := localEndpoints(in, r.config.NodeName)
	if slices.Equal(r.hosted[in.GetKey()], addresses) {
		return
	}
	if len(addresses) == 0 {
		delete(r.hosted, in.GetKey())
	} else {
		r.hosted[in.GetKey()] = addresses
	}
	if !r.stale {
		r.stale = true
		c.After(endpointsDelay, &endpointsTick{})
	}
}

// computeEndpoints joins the addresses of all endpoints on this node. The set is computed, not
// counted: a pod that backs several services stays a backend until the last of them drops it.
func (r *registry) computeEndpoints(c *runtime.Context) {
	r.stale = false
	if addresses := union(r.hosted); r.endpoints == nil || !slices.Equal(addresses, r.endpoints.GetAddresses()) {
		r.generation++
		r.endpoints = &messages.LocalEndpoints{Addresses: addresses, Generation: r.generation}
	}
	r.tellEndpoints(c)
}

// tellEndpoints sends the local endpoints, if they are known.
func (r *registry) tellEndpoints(c *runtime.Context) {
	if r.endpoints != nil && r.known() {
		c.Send(c.PID(address.Interfaces), r.endpoints)
	}
}

// localEndpoints are the addresses of the endpoints of one service on the node, ordered; slices
// without a service count for nothing.
func localEndpoints(in *messages.ServiceInput, node string) []string {
	if in.GetService() == nil {
		return nil
	}
	var found []string
	for _, slice := range in.GetSlices() {
		for _, e := range slice.GetEndpoints() {
			if e.GetNode() == node && e.GetAddress() != "" {
				found = append(found, e.GetAddress())
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// union joins lists into one that is ordered and without duplicates.
func union(lists map[string][]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
