package routes

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Path types of VPP.
const (
	toNormal  = fib_types.FIB_API_PATH_TYPE_NORMAL
	toDrop    = fib_types.FIB_API_PATH_TYPE_DROP
	toUnreach = fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH
)

// TestReadStranger: a VPP that does not know us is asked for its sources, and whether it refuses.
func TestReadStranger(t *testing.T) {
	m := newModel()
	m.fault = func(msg api.Message) error {
		switch msg.(type) {
		case *fib.FibSourceDump, *vlib.CliInband:
		default:
			t.Errorf("%s was sent", msg.GetMessageName())
		}
		return nil
	}
	want := NewState()
	want.Unable = NoSessionLayer
	check(t, "state", want, m.read(t, nil, Want{pfx("10.96.0.0/16"): plainReject}))
}

func TestRead(t *testing.T) {
	m := newModel()
	old, firm, again := m.register("troupe", 0xd7), m.register("troupe", 0xcf), m.register("troupe", 0xcf)
	m.register("troubadour", 0xcf)
	network, network6, odd, hidden := pfx("10.96.0.0/16"), pfx("fd96::/108"), pfx("10.98.0.0/16"), pfx("10.97.0.0/16")
	vip, lb, neighbour, free := pfx("10.96.0.1/32"), pfx("203.0.113.7/32"), pfx("192.168.50.9/32"), pfx("10.99.0.0/16")
	m.set(network, firm, toUnreach)
	m.set(network6, firm, toDrop)
	m.set(odd, firm, toNormal)
	m.set(hidden, firm, toUnreach)
	m.set(hidden, fromAPI, toNormal)
	m.set(pfx("10.100.0.0/16"), fromAPI, toNormal)
	m.set(vip, again, toUnreach)
	m.set(vip, fromNAT, toNormal)
	m.set(pfx("10.96.0.2/32"), old, toUnreach)
	m.set(lb, old, toUnreach)
	m.set(neighbour, old, toUnreach)
	m.set(neighbour, fromNeighbour, toNormal)

	want := NewState()
	want.Unable = NoSessionLayer
	want.Source, want.Older = firm, []uint8{old, again}
	want.Routes = map[Place]Kind{
		{network, firm}: Reject, {network6, firm}: Drop, {odd, firm}: 0, {vip, again}: Reject, {pfx("10.96.0.2/32"), old}: Reject,
		{lb, old}: Reject,
	}
	want.Beneath = map[netip.Prefix]string{hidden: "API", neighbour: "adjacency"}
	got, err := Read(t.Context(), m, []netip.Prefix{network, hidden, neighbour, free, lb, {}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", want, got)
}

func TestReadFails(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		fault func(api.Message) error
		want  error
		is    bool // ErrUnsupported
	}{
		{"no sources in this VPP", only[*fib.FibSourceDump](fmt.Errorf("dump: %w", link.ErrUnsupported)), link.ErrUnsupported, true},
		{"no routes by source", only[*ip.IPRouteV2Dump](link.ErrUnsupported), link.ErrUnsupported, true},
		{"no look-up by source", only[*ip.IPRouteLookupV2](link.ErrUnsupported), link.ErrUnsupported, true},
		{"sources", only[*fib.FibSourceDump](broken), broken, false},
		{"routes", only[*ip.IPRouteV2Dump](broken), broken, false},
		{"look-up", only[*ip.IPRouteLookupV2](broken), broken, false},
		{"look-up refused", only[*ip.IPRouteLookupV2](&link.RetvalError{Message: "ip_route_lookup_v2", Retval: -3}), api.NO_SUCH_FIB, false},
	} {
		m := newModel()
		m.register("troupe", 0xcf)
		m.fault = c.fault
		state, err := Read(t.Context(), m, []netip.Prefix{pfx("10.96.0.0/16")}, nil)
		if !errors.Is(err, c.want) || errors.Is(err, ErrUnsupported) != c.is {
			t.Errorf("%s: state %+v, error %v", c.name, state, err)
		}
	}
}

// only makes a fault of the messages of one type.
func only[M api.Message](err error) func(api.Message) error {
	return func(msg api.Message) error {
		if _, ok := msg.(M); ok {
			return err
		}
		return nil
	}
}
