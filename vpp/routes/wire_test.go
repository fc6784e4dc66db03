package routes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
)

func TestMessage(t *testing.T) {
	four, err := ip_types.ParsePrefix("10.96.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	six, err := ip_types.ParsePrefix("fd96::/108")
	if err != nil {
		t.Fatal(err)
	}
	path := func(kind fib_types.FibPathType, proto fib_types.FibPathNhProto) []fib_types.FibPath {
		return []fib_types.FibPath{{SwIfIndex: ^uint32(0), Type: kind, Proto: proto, Weight: 1}}
	}
	for _, c := range []struct {
		op   Op
		want api.Message
	}{
		{Op{Verb: Register}, &fib.FibSourceAdd{Src: fib.FibSource{Name: "troupe", Priority: 0xcf}}},
		{
			Op{Verb: Add, Source: 26, Prefix: pfx("10.96.0.0/16"), Route: Route{Kind: Reject}},
			&ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{
				Prefix: four, Src: 26, NPaths: 1, Paths: path(fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_NH_PROTO_IP4),
			}},
		},
		{
			Op{Verb: Add, Source: 27, Prefix: pfx("fd96::/108"), Route: Route{Kind: Drop}},
			&ip.IPRouteAddDelV2{IsAdd: true, Route: ip.IPRouteV2{
				Prefix: six, Src: 27, NPaths: 1, Paths: path(fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_NH_PROTO_IP6),
			}},
		},
		{Op{Verb: Delete, Source: 26, Prefix: pfx("fd96::/108")}, &ip.IPRouteAddDelV2{Route: ip.IPRouteV2{Prefix: six, Src: 26}}},
		{Op{}, nil},
	} {
		if d := cmp.Diff(c.want, Message(c.op)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.op, d)
		}
	}
}

func TestKindOf(t *testing.T) {
	unreach := fib_types.FibPath{Type: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH}
	for name, c := range map[string]struct {
		paths []fib_types.FibPath
		want  Kind
	}{
		"unreachable": {[]fib_types.FibPath{unreach}, Reject},
		"drop":        {[]fib_types.FibPath{{Type: fib_types.FIB_API_PATH_TYPE_DROP}}, Drop},
		"normal":      {[]fib_types.FibPath{{Type: fib_types.FIB_API_PATH_TYPE_NORMAL}}, 0},
		"none":        {nil, 0},
		"two":         {[]fib_types.FibPath{unreach, unreach}, 0},
	} {
		if got := kindOf(c.paths); got != c.want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
