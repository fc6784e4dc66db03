package server_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestListsHaveLimits: interfaces and nodes come in pages, too, each once.
func TestListsHaveLimits(t *testing.T) {
	backend := apitest.New(0)
	backend.Hooks.Uplink = "uplink0"
	a := apitest.Start(t, backend, nil)
	first := ask[api.Nodes](t, a, "/api/v1/nodes?limit=1")
	second := ask[api.Nodes](t, a, "/api/v1/nodes?limit=1&cursor="+first.Next)
	if first.Total != 2 || len(first.Items) != 1 || first.Items[0].Name != "shop-a" || second.Items[0].Name != "shop-b" || second.Next != "" || first.Self != "shop-a" {
		t.Errorf("%+v\n%+v", first, second)
	}
	if set := ask[api.Interfaces](t, a, "/api/v1/interfaces?limit=1"); set.Total != 1 || len(set.Items) != 1 || set.Next != "" || set.Uplink != "uplink0" {
		t.Errorf("%+v", set)
	}
	for _, target := range []string{"nodes", "interfaces", "services", "actors", "events", "top"} {
		if code, _, _ := call(t, tcp(a), "GET", "/api/v1/"+target+"?limit=1001", ""); code != 400 {
			t.Errorf("%s above the limit: %d", target, code)
		}
	}
}
