package routes

import (
	"cmp"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
)

// noInterface is ~0, because 0 is the interface local0.
const noInterface = ^uint32(0)

// Message returns the binary API message of an operation. Op.Source has to be filled in for Add and
// Delete.
func Message(op Op) api.Message {
	switch op.Verb {
	case Register:
		return &fib.FibSourceAdd{Src: fib.FibSource{Name: sourceName, Priority: sourcePriority}}
	case Add:
		return &ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{
			Prefix: forwarding.Prefix(op.Prefix), Src: op.Source, NPaths: 1, Paths: []fib_types.FibPath{wirePath(op)},
		}}
	case Delete: // without paths VPP deletes the whole entry of this source
		return &ip.IPRouteAddDelV2{Route: ip.IPRouteV2{Prefix: forwarding.Prefix(op.Prefix), Src: op.Source}}
	default:
		return nil
	}
}

// wirePath returns the only path of a route.
func wirePath(op Op) fib_types.FibPath {
	path := fib_types.FibPath{
		SwIfIndex: noInterface, Type: fib_types.FIB_API_PATH_TYPE_DROP, Proto: fib_types.FIB_API_PATH_NH_PROTO_IP4, Weight: 1,
	}
	switch op.Kind {
	case Reject:
		path.Type = fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH
	case Local:
		path.Type = fib_types.FIB_API_PATH_TYPE_LOCAL
	}
	if op.Prefix.Addr().Is6() {
		path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	return path
}

// kindOf returns the kind of a route in VPP; 0 for a path that this package never adds.
func kindOf(paths []fib_types.FibPath) Kind {
	if len(paths) != 1 {
		return 0
	}
	switch paths[0].Type {
	case fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH:
		return Reject
	case fib_types.FIB_API_PATH_TYPE_LOCAL:
		return Local
	case fib_types.FIB_API_PATH_TYPE_DROP:
		return Drop
	default:
		return 0
	}
}

// Our source. Lower priorities win; doc.go lists those around it. VPP cannot change the priority of
// a source, so another priority makes another source, and Diff moves the routes of the old one.
const (
	sourceName     = "troupe"
	sourcePriority = 0xcf
)

// noSource is no id of a source of ours: in a route, 0 means the source of the API.
const noSource = 0

// sources are our sources in VPP.
type sources struct {
	// current is the source that is used; noSource where it is not registered.
	current uint8
	// all are the ids of the current and of older sources, ordered.
	all []uint8
	// names of all sources of VPP, by id.
	names map[uint8]string
}

// newSources finds our sources among the sources of VPP: by name, and among several of one name the
// first with the right priority.
func newSources(all []fib.FibSource) sources {
	s := sources{names: make(map[uint8]string, len(all))}
	slices.SortFunc(all, func(a, b fib.FibSource) int { return cmp.Compare(a.ID, b.ID) })
	for _, known := range all {
		s.names[known.ID] = known.Name
		if known.ID == noSource || known.Name != sourceName {
			continue
		}
		s.all = append(s.all, known.ID)
		if s.current == noSource && known.Name == sourceName && known.Priority == sourcePriority {
			s.current = known.ID
		}
	}
	return s
}

// ours reports whether the id is one of our sources.
func (s sources) ours(id uint8) bool { return slices.Contains(s.all, id) }
