package relay

import (
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// Observer sees every delivery of the source before the listener gets it. So on a simulated node
// the interface of a pod exists before its service, as on a real node. The methods are called one
// at a time and must not block.
type Observer interface {
	// NodeChanged gets the nodes and the pods of this node.
	NodeChanged(*messages.NodeInput)
	// ObjectsChanged gets the number of Services and EndpointSlices that are new, changed or gone.
	ObjectsChanged(services, slices int)
	// Health gets the health that the source reports.
	Health(kube.Health)
}

// counted holds the last value of each service, to count changes as kube-proxy does. The values are
// shared with the listener.
type counted map[string]*messages.ServiceInput

// change counts the objects of one service that are new, changed or gone. Unchanged objects are
// shared between inputs, so that comparing pointers is enough.
func (c counted) change(in *messages.ServiceInput) (services, slices int) {
	before := c[in.GetKey()]
	if before == in {
		return 0, 0
	}
	if before.GetService() != in.GetService() {
		services = 1
	}
	old, gone := map[*messages.EndpointSlice]bool{}, map[string]bool{}
	for _, s := range before.GetSlices() {
		old[s], gone[s.GetName()] = true, true
	}
	for _, s := range in.GetSlices() {
		if !old[s] {
			slices++
		}
		delete(gone, s.GetName())
	}
	if in.GetService() == nil && len(in.GetSlices()) == 0 {
		delete(c, in.GetKey())
	} else {
		c[in.GetKey()] = in
	}
	return services, slices + len(gone)
}

// replace counts the changes in a list of everything.
func (c counted) replace(snapshot *messages.Snapshot) (services, slices int) {
	present := make(map[string]bool, len(snapshot.GetServices()))
	add := func(in *messages.ServiceInput) {
		a, b := c.change(in)
		services, slices = services+a, slices+b
	}
	for _, in := range snapshot.GetServices() {
		present[in.GetKey()] = true
		add(in)
	}
	for key := range c {
		if !present[key] {
			add(&messages.ServiceInput{Key: key})
		}
	}
	return services, slices
}
