package forwarding

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// table is a VPP with entries, by prefix, and their sources; err = it does not answer as it should.
type table struct {
	entries map[ip_types.Prefix]uint8
	sources []fib.FibSource
	err     error
	strange bool // it answers with something else
}

func (t table) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	if errors.Is(t.err, link.ErrDown) {
		return nil, t.err
	}
	results := make([]link.Result, len(reqs))
	for i, req := range reqs {
		m := req.(*ip.IPRouteLookupV2)
		source, found := t.entries[m.Prefix]
		switch {
		case t.err != nil:
			results[i].Err = t.err
		case t.strange || m.Exact != 1:
			results[i].Reply = &ip.IPRouteAddDelV2Reply{}
		case !found:
			results[i].Err = &link.RetvalError{Message: req.GetMessageName(), Retval: -6}
		default:
			results[i].Reply = &ip.IPRouteLookupV2Reply{Route: ip.IPRouteV2{Prefix: m.Prefix, Src: source}}
		}
	}
	return results, nil
}

func (t table) Dump(_ context.Context, _ api.Message, each func(api.Message)) error {
	for _, s := range t.sources {
		each(&fib.FibSourceDetails{Src: s})
	}
	return t.err
}

func TestWinners(t *testing.T) {
	four, six, none := netip.MustParsePrefix("10.96.0.1/32"), netip.MustParsePrefix("fd00::/64"), netip.MustParsePrefix("10.0.0.0/8")
	all := []netip.Prefix{none, four, six}
	entries := map[ip_types.Prefix]uint8{Prefix(four): 7, Prefix(six): 9}
	winners, err := Winners(t.Context(), table{entries: entries}, 0, all)
	if err != nil || len(winners) != 3 || winners[1] != (Winner{Prefix: four, Source: 7}) || winners[2] != (Winner{Prefix: six, Source: 9}) {
		t.Errorf("%+v, %v", winners, err)
	}
	if retval, answered := link.Retval(winners[0].Err); !answered || retval != -6 {
		t.Errorf("where nothing is: %v", winners[0].Err)
	}
	for name, c := range map[string]struct {
		vpp       table
		each, all error
	}{
		"no answer":      {table{err: link.ErrUnknown}, link.ErrUnknown, nil},
		"unsupported":    {table{err: link.ErrUnsupported}, link.ErrUnsupported, nil},
		"another answer": {table{strange: true}, link.ErrProtocol, nil},
		"down":           {table{err: link.ErrDown}, nil, link.ErrDown},
	} {
		winners, err := Winners(t.Context(), c.vpp, 0, all)
		if !errors.Is(err, c.all) || (err == nil) != (c.all == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, w := range winners {
			if !errors.Is(w.Err, c.each) {
				t.Errorf("%s: %v", name, w.Err)
			}
		}
	}
	if winners, err := Winners(t.Context(), table{err: link.ErrDown}, 0, nil); winners != nil || err != nil {
		t.Errorf("no prefixes: %v, %v", winners, err)
	}
}

func TestSources(t *testing.T) {
	want := []fib.FibSource{{ID: 3, Name: "interface", Priority: 1}, {ID: 26, Name: "troupe", Priority: 200}}
	if got, err := Sources(t.Context(), table{sources: want}); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Sources(t.Context(), table{sources: want, err: link.ErrUnsupported}); got != nil || !errors.Is(err, link.ErrUnsupported) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestPrefixesSurviveTheWire, masked.
func TestPrefixesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "four")))
		if rapid.Bool().Draw(t, "IPv6") {
			addr = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "six")))
		}
		prefix := netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "bits"))
		if got := FromPrefix(Prefix(prefix)); got != prefix.Masked() {
			t.Fatalf("%s, want %s", got, prefix.Masked())
		}
	})
}
