package page_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestTree: the drawing begins at the given actor, leaves out closed actors, and groups too many
// actors by namespace.
func TestTree(t *testing.T) {
	h := handler(t, apitest.New(40))
	for _, tt := range []struct {
		path          string
		with, without []string
	}{
		{"/tree", []string{">agent<", ">nat44<", "shop: 15 more", "namespace=shop", "9 of 10 failures left", "any number of failures", "&minus; 40<"}, nil},
		{"/tree?under=agent%2Fworld", []string{">services<", "the whole tree"}, []string{">nat44<"}},
		{"/tree?closed=agent%2Fworld%2Fservices", []string{">nat44<", "&#43; 40<", `href="/tree"`}, []string{"shop"}},
		{"/tree?closed=agent%2Fworld,agent%2Fdataplane", []string{">world<", ">dataplane<"}, []string{">services<", ">nat44<"}},
		{"/tree?under=nonsense", []string{"the whole tree"}, []string{">nat44<"}},
	} {
		status, _, body := get(h, tt.path)
		for _, text := range tt.with {
			if !strings.Contains(body, text) && !strings.Contains(body, strings.ReplaceAll(text, "&#43;", "+")) {
				t.Errorf("%s: %d, no %q in\n%s", tt.path, status, text, body)
			}
		}
		for _, text := range tt.without {
			if strings.Contains(body, text) || status != http.StatusOK {
				t.Errorf("%s: %d, %q is in it", tt.path, status, text)
			}
		}
	}
}

// TestTreeGroups: of many namespaces the largest are named.
func TestTreeGroups(t *testing.T) {
	troupe := apitest.New(0)
	for namespace := range 20 {
		for service := range 3 + namespace {
			troupe.AddActor(fmt.Sprintf("agent/world/services/ns-%02d~%d", namespace, service), "service")
		}
	}
	_, _, body := get(handler(t, troupe), "/tree")
	if !strings.Contains(body, "ns-19: 22 more") || strings.Contains(body, "ns-05: ") || strings.Count(body, " more<") != 11 {
		t.Error(body)
	}
}
