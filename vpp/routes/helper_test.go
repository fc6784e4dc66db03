package routes

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-vpp/troupe/messages"
)

// pfx and at parse constants of tests.
func pfx(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func at(text string) netip.Addr    { return netip.MustParseAddr(text) }

// Routes of most tests.
var (
	plainReject    = Route{Kind: Reject}
	plainDrop      = Route{Kind: Drop}
	externalReject = Route{Kind: Reject, External: true}
)

// describe returns the operations as text.
func describe(ops []Op) []string {
	var all []string
	for _, op := range ops {
		all = append(all, op.Describe())
	}
	return all
}

// diff compares values of this package.
func diff[T any](want, got T) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}))
}

// check fails the test where values differ.
func check[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// prefixes returns prefixes as text.
func prefixes(all []netip.Prefix) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return texts
}

// idle makes a frontend without backends on TCP port 80.
func idle(addr string, scope messages.Scope, action messages.Action) *messages.Frontend {
	kind := map[messages.Scope]messages.FrontendKind{
		cluster: messages.FrontendKind_KIND_CLUSTER_IP, external: messages.FrontendKind_KIND_LOAD_BALANCER_IP, nodePort: messages.FrontendKind_KIND_NODE_PORT,
	}[scope]
	return &messages.Frontend{Address: addr, Port: 80, Protocol: messages.Protocol_TCP, Scope: scope, Kind: kind, Action: action}
}

const (
	cluster  = messages.Scope_SCOPE_CLUSTER
	external = messages.Scope_SCOPE_EXTERNAL
	nodePort = messages.Scope_SCOPE_NODEPORT
	forward  = messages.Action_ACTION_FORWARD
	reject   = messages.Action_ACTION_REJECT
	drop     = messages.Action_ACTION_DROP
)
