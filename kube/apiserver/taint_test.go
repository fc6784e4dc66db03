package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// TestRemoveTaint: the patch removes all taints with the key and no other; a Node without it is not
// patched.
func TestRemoveTaint(t *testing.T) {
	taints := []map[string]string{
		{"key": "troupe.dev/agent-not-ready", "effect": "NoExecute"}, {"key": "other", "effect": "NoSchedule"}, {"key": "troupe.dev/agent-not-ready", "effect": "NoSchedule"},
	}
	var patches []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			patches = append(patches, r.Header.Get("Content-Type")+" "+r.URL.Path+" "+string(body))
			taints = taints[1:2]
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": "n1"}, "spec": map[string]any{"taints": taints},
		})
	}))
	defer server.Close()
	client, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if removed, err := client.RemoveTaint(t.Context(), "n1", "troupe.dev/agent-not-ready"); err != nil || removed != want {
			t.Errorf("removed %t, %v, want %t", removed, err, want)
		}
	}
	want := `application/json-patch+json /api/v1/nodes/n1 [{"op":"test","path":"/spec/taints/2/key","value":"troupe.dev/agent-not-ready"},{"op":"remove","path":"/spec/taints/2"},` +
		`{"op":"test","path":"/spec/taints/0/key","value":"troupe.dev/agent-not-ready"},{"op":"remove","path":"/spec/taints/0"}]`
	if len(patches) != 1 || patches[0] != want {
		t.Errorf("patches %q, want %s", patches, want)
	}
}
