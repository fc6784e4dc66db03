package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// list has two nodes; the address of the second one's kernel is that of its VPP in IPv6.
const list = `{"items":[
{"metadata":{"name":"b","annotations":{"example-cni.troupe.dev/uplink":"192.0.2.2/24, 2001:db8::2/64"}},"spec":{"podCIDRs":["10.1.2.0/24","fd00:1:0:2::/64"]},
 "status":{"addresses":[{"type":"InternalIP","address":"172.31.250.2"},{"type":"InternalIP","address":"2001:db8::2"},{"type":"Hostname","address":"b"}]}},
{"metadata":{"name":"a"},"spec":{"podCIDRs":["10.1.1.0/24"]}},
{"metadata":{"name":"c"},"spec":{"podCIDRs":["10.1.3.0/24"]}}]}`

// TestRoutes: from the answer of the API server to the routes of VPP.
func TestRoutes(t *testing.T) {
	answer := list
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/api/v1/nodes" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	nodes, err := readNodes(t.Context(), server.Client(), server.URL, "secret")
	if err != nil {
		t.Fatal(err)
	}
	n := &nodeProcess{name: "a", nodes: nodes, gateways: []netip.Addr{netip.MustParseAddr("192.0.2.254")}}
	want := map[netip.Prefix]netip.Addr{ // nothing leads to c, whose VPP has no address yet
		netip.MustParsePrefix("0.0.0.0/0"):       netip.MustParseAddr("192.0.2.254"),
		netip.MustParsePrefix("10.1.2.0/24"):     netip.MustParseAddr("192.0.2.2"),
		netip.MustParsePrefix("fd00:1:0:2::/64"): netip.MustParseAddr("2001:db8::2"),
		netip.MustParsePrefix("172.31.250.2/32"): netip.MustParseAddr("192.0.2.2"),
	}
	if got := n.wantedRoutes(); !maps.Equal(got, want) {
		t.Errorf("routes %v, want %v", got, want)
	}

	for name, tc := range map[string]struct{ token, answer, want string }{
		"refused": {"old", list, "list nodes: the API server answers 401 Unauthorized"},
		"no JSON": {"secret", "<html>", "list nodes: "},
	} {
		answer = tc.answer
		if _, err := readNodes(t.Context(), server.Client(), server.URL, tc.token); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestOddNode: a node with something that cannot be read does not hide the others, nor the rest of
// it.
func TestOddNode(t *testing.T) {
	for odd, want := range map[string]struct {
		from, to, why string
		uplink, pods  int // of node b
	}{
		"annotation": {"192.0.2.2/24", "192.0.2.2", "annotation example-cni.troupe.dev/uplink of node b: ", 1, 2},
		"network":    {"10.1.2.0/24", "10.1.2/24", "podCIDRs of node b: ", 2, 1},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Replace(list, want.from, want.to, 1)))
		}))
		nodes, err := readNodes(t.Context(), server.Client(), server.URL, "secret")
		server.Close()
		if err == nil || !strings.HasPrefix(err.Error(), want.why) || len(nodes) != 3 || len(nodes[1].uplink) != want.uplink || len(nodes[1].pods) != want.pods {
			t.Errorf("%s: %+v, %v", odd, nodes, err)
		}
	}
}
