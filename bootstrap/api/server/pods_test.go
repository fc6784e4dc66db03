package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

func TestPodInterface(t *testing.T) {
	backend := apitest.New(0)
	backend.Hooks.Uplink = "tap0"
	a := apitest.Start(t, backend, func(*server.Config) {})
	const target = "/api/v1/pods/shop/web-1/interface"
	for _, tt := range []struct {
		name, method, target, body string
		over                       *http.Client
		code                       int
		text                       string
	}{
		{"attach", "PUT", target, `{"interface":"tap0"}`, control(a), 200, `"pod": "shop/web-1",`},
		{"detach", "DELETE", target, "", control(a), 200, `"interface": "",`},
		{"no such interface", "PUT", target, `{"interface":"tap9"}`, control(a), 409, "VPP has no such interface"},
		{"no name", "PUT", target, `{}`, control(a), 400, "expected the name of an interface"},
		{"no body", "PUT", target, "", control(a), 400, "expected the name of an interface"},
		{"a name that none has", "PUT", target, `{"interface":"a b"}`, control(a), 400, "expected the name of an interface"},
		{"an unknown field", "PUT", target, `{"iface":"tap0"}`, control(a), 400, "unknown field"},
		{"a pod that none is", "PUT", "/api/v1/pods/shop/a%2Fb/interface", `{"interface":"tap0"}`, control(a), 400, "pods/NAMESPACE/NAME/interface"},
		{"over TCP", "PUT", target, `{"interface":"tap0"}`, tcp(a), 403, "read-only"},
		{"detach over TCP", "DELETE", target, "", tcp(a), 403, "read-only"},
		{"read", "GET", target, "", control(a), 405, "expected DELETE, OPTIONS, PUT"},
	} {
		if code, body, _ := call(t, tt.over, tt.method, tt.target, tt.body); code != tt.code || !strings.Contains(body, tt.text) {
			t.Errorf("%s: %d %s, want %d with %q", tt.name, code, body, tt.code, tt.text)
		}
	}
}

func TestResyncMethods(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	for body, code := range map[string]int{
		"": 202, `{"method":"full"}`: 202, `{"method":"upstream","reason":"drill"}`: 202, `{"method":"downstream"}`: 202, `{"method":"sideways"}`: 400,
	} {
		if got, text, _ := call(t, control(a), http.MethodPost, "/api/v1/resync", body); got != code {
			t.Errorf("%s: %d %s, want %d", body, got, text, code)
		}
	}
}
