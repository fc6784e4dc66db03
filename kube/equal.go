package kube

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

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
