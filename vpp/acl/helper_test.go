package acl

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// check fails the test where values differ.
func check[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got, protocmp.Transform(), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
		cmp.AllowUnexported(ACL{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// denying makes a rule from "ip:port/PROTO" and a network.
func denying(class Class, at, from string) Rule {
	key, err := rule.ParseKey(at)
	if err != nil {
		panic(err)
	}
	return Rule{Class: class, VIP: key.Addr, Port: key.Port, Proto: key.Proto, From: netip.MustParsePrefix(from)}
}

// prefixes parses networks.
func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
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

// serving makes a rule of Kubernetes that forwards, for clients from the given sources.
func serving(addr string, port uint32, proto messages.Protocol, sources ...string) *messages.Frontend {
	return &messages.Frontend{Address: addr, Port: port, Protocol: proto, PortName: "http", AllowSources: sources}
}

// dropping makes a rule of Kubernetes that drops.
func dropping(addr string, port uint32, proto messages.Protocol, from messages.ClientClass) *messages.Frontend {
	f := serving(addr, port, proto)
	f.Action, f.From = messages.Action_ACTION_DROP, from
	return f
}

// view makes the view of a service.
func view(key string, frontends ...*messages.Frontend) *messages.ServiceView {
	return &messages.ServiceView{Key: key, Frontends: frontends}
}
