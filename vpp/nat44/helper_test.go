package nat44

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// mustKey parses a key that a test has written down.
func mustKey(text string) rule.Key {
	key, err := rule.ParseKey(text)
	if err != nil {
		panic(err)
	}
	return key
}

// locals makes backends of weight 7 from "ip:port".
func locals(endpoints ...string) []Local {
	var all []Local
	for _, text := range endpoints {
		ap := netip.MustParseAddrPort(text)
		all = append(all, Local{Addr: ap.Addr(), Port: ap.Port(), Weight: 7})
	}
	slices.SortFunc(all, compareEndpoint)
	return all
}

// newRow makes a padded row with SELF_TWICE_NAT.
func newRow(key string, endpoints ...string) Row {
	return Row{
		Key: mustKey(key), Flags: Out2InOnly | SelfTwiceNAT, Pads: true, Locals: locals(endpoints...),
		Tag: Tag{Hash: ServiceHash("default/web")}.String(),
	}
}

// with returns the row after a change.
func (r Row) with(change func(*Row)) Row {
	r = r.clone()
	change(&r)
	return r
}

// withAffinity returns the row with an affinity.
func withAffinity(r Row, seconds uint32) Row {
	r.Affinity = seconds
	r.Tag = Tag{Hash: ServiceHash("default/web"), Affinity: seconds}.String()
	return r
}

// many makes n backends 10.1.x.y:8080 of the weight of their class.
func many(n int) []Local {
	all := make([]Local, n)
	for i := range all {
		all[i] = Local{Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Port: 8080, Weight: Weight(n)}
	}
	return all
}

// byKey makes the map that Want has.
func byKey(rows ...Row) map[rule.Key]Row {
	all := map[rule.Key]Row{}
	for _, row := range rows {
		all[row.Key] = row
	}
	return all
}

// describe returns the operations as text.
func describe(ops []Op) []string {
	var all []string
	for _, op := range ops {
		all = append(all, op.Describe())
	}
	return all
}

// diff compares values of this package and messages.
func diff[T any](want, got T) string {
	return cmp.Diff(want, got, protocmp.Transform(), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }))
}

// check fails the test where values differ.
func check[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if d := diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// serving makes a rule that forwards; backends are "ip:port" of remote endpoints, or "ip:port*" of
// local ones.
func serving(addr string, port uint32, proto messages.Protocol, backends ...string) *messages.Frontend {
	f := &messages.Frontend{Address: addr, Port: port, Protocol: proto, PortName: "http"}
	for _, text := range backends {
		b := &messages.Backend{}
		if text[len(text)-1] == '*' {
			b.Local, text = true, text[:len(text)-1]
		}
		ap := netip.MustParseAddrPort(text)
		b.Address, b.Port = ap.Addr().String(), uint32(ap.Port())
		f.Backends = append(f.Backends, b)
	}
	return f
}

// endpoints makes n remote backends for serving.
func endpoints(n int) []string {
	var all []string
	for _, l := range many(n) {
		all = append(all, fmt.Sprintf("%s:%d", l.Addr, l.Port))
	}
	return all
}
