package routes

import (
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
