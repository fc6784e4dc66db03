package kube

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Changes are the new values of one commit.
type Changes struct {
	// Services holds the new values, ordered by key and by generation.
	Services []*messages.ServiceInput
	// Node holds the new surroundings of the services (nodes, pods, ServiceCIDRs); nil if they did
	// not change.
	Node *messages.NodeInput
}

// Deliver hands the changes to a sink in the order of their generations.
func (c Changes) Deliver(sink Sink) {
	for _, input := range c.Services {
		sink.ServiceChanged(input)
	}
	if c.Node != nil {
		sink.NodeChanged(c.Node)
	}
}

// Commit makes new values of everything recorded since the last commit. It publishes and returns
// the values that differ from the ones published last; each gets the next generation.
func (s *Store) Commit() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes Changes
	// The keys are taken in order, so that the same history gives the same generations and a
	// simulation can be repeated.
	for _, key := range sortedKeys(s.dirty) {
		if input := s.commitService(key); input != nil {
			changes.Services = append(changes.Services, input)
		}
	}
	// A new map, because clear() walks the whole old one, which is large after a list of
	// everything.
	s.dirty = map[string]struct{}{}
	if s.changed.surroundings {
		changes.Node = s.commitSurroundings()
		s.changed.nodes, s.changed.surroundings = false, false
	}
	return changes
}

// commitService returns the new value of a service, or nil if it means the same as the published
// one.
func (s *Store) commitService(key string) *messages.ServiceInput {
	// A service without a Service object and without slices is deleted, or was never complete.
	e := s.services[key]
	if e.service == nil && len(e.slices) == 0 {
		return s.commitGone(key, e)
	}
	input := &messages.ServiceInput{Key: key, Service: e.service, Errors: s.serviceProblems(key, e)}
	if e.published == nil && len(s.problems) > 0 {
		s.changed.surroundings = true // its problems move from the surroundings to the service
	}
	if e.published != nil {
		// The comparison comes before the copy of the slices: most updates of metadata end here.
		input.Slices = e.slices
		if equalInput(e.published, input) {
			return nil
		}
	}
	input.Slices = slices.Clone(e.slices)
	s.generation++
	input.Generation = s.generation
	e.published = input
	return input
}

// commitGone forgets a service without content. The returned value says that the service is gone;
// it is nil if the service was never published.
func (s *Store) commitGone(key string, e *entry) *messages.ServiceInput {
	delete(s.services, key)
	if len(s.problems) > 0 {
		s.changed.surroundings = true // its problems move from the service to the surroundings
	}
	if e.published == nil {
		return nil
	}
	s.generation++
	return &messages.ServiceInput{Key: key, Generation: s.generation}
}

// serviceProblems returns the problems of a service and its slices, in order.
func (s *Store) serviceProblems(key string, e *entry) []*messages.ObjectError {
	if len(s.problems) == 0 {
		return nil
	}
	out := slices.Clone(s.problems[ref{normalize.KindService, key}])
	for _, slice := range e.slices {
		out = append(out, s.problems[ref{normalize.KindEndpointSlice, normalize.SliceKey(slice)}]...)
	}
	return sorted(out)
}

// commitSurroundings returns the new NodeInput, or nil if it means the same as the published one.
// Values share the map of nodes as long as no node changes: pods come and go much more often, and
// there may be thousands of nodes.
func (s *Store) commitSurroundings() *messages.NodeInput {
	last := s.surround
	input := &messages.NodeInput{Nodes: last.Nodes, Errors: s.otherProblems()}
	// The kubelet updates the status of each Node every few minutes. Most of these updates change
	// no field that the normalised Node has.
	if s.changed.nodes && !maps.EqualFunc(s.nodes, last.Nodes, equalMessage) {
		input.Nodes = maps.Clone(s.nodes)
	}
	input.Self = input.Nodes[s.node]
	input.Pods = slices.SortedFunc(maps.Values(s.pods), func(a, b *messages.Pod) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	input.ServiceCidrs = s.serviceNetworks()
	for _, name := range sortedKeys(s.pools) {
		input.AddressPools = append(input.AddressPools, s.pools[name])
	}
	sameNodes := input.Self == last.Self && len(input.Nodes) == len(last.Nodes) && (!s.changed.nodes || maps.Equal(input.Nodes, last.Nodes))
	if sameNodes && slices.EqualFunc(input.Pods, last.Pods, equalMessage) && equalErrors(input.Errors, last.Errors) &&
		slices.Equal(input.ServiceCidrs, last.ServiceCidrs) && slices.EqualFunc(input.AddressPools, last.AddressPools, equalMessage) {
		return nil
	}
	s.generation++
	input.Generation = s.generation
	s.surround = input
	return input
}

// serviceNetworks returns the networks of all ServiceCIDRs, in order.
func (s *Store) serviceNetworks() []string {
	var out []string
	for _, networks := range s.cidrs {
		out = append(out, networks...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// otherProblems returns the problems that no known service carries, in order.
func (s *Store) otherProblems() []*messages.ObjectError {
	var out []*messages.ObjectError
	for r, problems := range s.problems {
		if owner := s.ownerOf(r); owner == "" || s.services[owner] == nil {
			out = append(out, problems...)
		}
	}
	return sorted(out)
}

// sorted puts problems into a fixed order, so that the same problems are the same value.
func sorted(problems []*messages.ObjectError) []*messages.ObjectError {
	slices.SortStableFunc(problems, func(a, b *messages.ObjectError) int {
		return cmp.Or(
			cmp.Compare(a.GetSource(), b.GetSource()), cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetObject(), b.GetObject()), cmp.Compare(a.GetField(), b.GetField()), cmp.Compare(a.GetMessage(), b.GetMessage()))
	})
	return problems
}

// Snapshot returns all published values that still exist, marked as complete and ordered by key. It
// does not contain changes recorded since the last commit.
func (s *Store) Snapshot() *messages.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &messages.Snapshot{Node: s.surround, Complete: true, Generation: s.generation}
	for _, key := range sortedKeys(s.services) {
		if published := s.services[key].published; published != nil {
			out.Services = append(out.Services, published)
		}
	}
	return out
}

// equalInput reports whether two values of one service mean the same, apart from their generations.
func equalInput(a, b *messages.ServiceInput) bool {
	return equalMessage(a.Service, b.Service) &&
		slices.EqualFunc(a.Slices, b.Slices, equalSlice) &&
		equalErrors(a.Errors, b.Errors) &&
		equalDisputes(a, b)
}

// equalSlice compares the content of a slice, not its time: an update of metadata changes the
// trigger time and the generation of a slice without changing its meaning.
func equalSlice(a, b *messages.EndpointSlice) bool {
	return a == b || a.Namespace == b.Namespace && a.Name == b.Name && a.Service == b.Service &&
		a.Family == b.Family && a.Headless == b.Headless &&
		slices.EqualFunc(a.Ports, b.Ports, equalEndpointPort) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, equalEndpoint)
}

// equalEndpointPort is proto.Equal for this type; a test keeps it complete.
func equalEndpointPort(a, b *messages.EndpointPort) bool {
	return a == b || a.Name == b.Name && a.Protocol == b.Protocol && a.Port == b.Port
}

// equalEndpoint is proto.Equal for this type, without its reflection: large slices are compared on
// every update. A test keeps it complete.
func equalEndpoint(a, b *messages.Endpoint) bool {
	return a == b || a.Address == b.Address &&
		a.Ready == b.Ready && a.Serving == b.Serving && a.Terminating == b.Terminating &&
		a.Node == b.Node && a.Pod == b.Pod &&
		slices.Equal(a.ZoneHints, b.ZoneHints) && slices.Equal(a.NodeHints, b.NodeHints)
}

// equalErrors compares problems in their order, which sorted fixes.
func equalErrors(a, b []*messages.ObjectError) bool {
	return slices.EqualFunc(a, b, equalMessage)
}

// equalMessage is proto.Equal with a short cut for shared messages.
func equalMessage[M interface {
	comparable
	proto.Message
}](a, b M) bool {
	return a == b || proto.Equal(a, b)
}

// equalDisputes compares the generations of slices that share an address with another slice,
// because there the generation decides which slice counts. Apart from generations and times, a and
// b hold the same slices.
func equalDisputes(a, b *messages.ServiceInput) bool {
	for i := range a.Slices {
		if a.Slices[i].Generation != b.Slices[i].Generation && disputed(a.Slices, i) {
			return false
		}
	}
	return true
}

// disputed reports whether an address of slice i is in another slice too.
func disputed(all []*messages.EndpointSlice, i int) bool {
	if len(all) == 1 {
		return false
	}
	mine := make(map[string]struct{}, len(all[i].Endpoints))
	for _, e := range all[i].Endpoints {
		mine[e.Address] = struct{}{}
	}
	for j, other := range all {
		for _, e := range other.Endpoints {
			if _, both := mine[e.Address]; both && i != j {
				return true
			}
		}
	}
	return false
}
