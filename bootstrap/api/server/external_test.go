package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

func TestExternal(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), func(*server.Config) {})
	const target = "/api/v1/external/edge"
	for _, tt := range []struct {
		name, method, target, body string
		over                       *http.Client
		code                       int
		text                       string
	}{
		{"apply JSON", "PUT", target, `{"kind": "x"}`, control(a), 200, `"source": "edge"`},
		{"apply YAML", "PUT", "/api/v1/external/edge-2", "kind: x # y\n", control(a), 200, `"source": "edge-2"`},
		{"list", "GET", "/api/v1/external", "", tcp(a), 200, `"source": "edge-2"`},
		{"one", "GET", target, "", tcp(a), 200, `"kind": "x"`},
		{"an unknown one", "GET", "/api/v1/external/etcd:n1/web", "", tcp(a), 200, `"layers": []`},
		{"a parameter", "GET", target + "?x=1", "", tcp(a), 400, "x"},
		{"delete", "DELETE", target, "", control(a), 200, `"source": "edge"`},
		{"over TCP", "PUT", target, `{}`, tcp(a), 403, "read-only"},
		{"delete over TCP", "DELETE", target, "", tcp(a), 403, "read-only"},
		{"no document", "PUT", target, "", control(a), 400, "expected a document"},
		{"no YAML", "PUT", target, "a: [", control(a), 400, "body: "},
		{"a key twice", "PUT", target, "a: 1\na: 2\n", control(a), 400, "body: "},
		{"invalid", "PUT", target, "[]", control(a), 400, "expected an object"},
		{"the file", "PUT", "/api/v1/external/file", "{}", control(a), 400, "expected a name"},
		{"etcd", "DELETE", "/api/v1/external/etcd:x", "", control(a), 400, "expected a name"},
		{"a path", "PUT", "/api/v1/external/a/b", "{}", control(a), 400, "expected a name"},
		{"too large", "PUT", target, strings.Repeat(" ", 1<<21), control(a), 413, ""},
	} {
		if code, body, _ := call(t, tt.over, tt.method, tt.target, tt.body); code != tt.code || !strings.Contains(body, tt.text) {
			t.Errorf("%s: %d %s, want %d with %q", tt.name, code, body, tt.code, tt.text)
		}
	}
}
