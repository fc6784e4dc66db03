package connector

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAMissingNamespaceIsSaid: lists of a namespace that does not exist are empty, a write says it.
func TestAMissingNamespaceIsSaid(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "/namespaces/there/") {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"kind":"Service","apiVersion":"v1"}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"namespaces \"gone\" not found"}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]string{"there": "", "gone": `--sync-namespace gone: the namespace does not exist: namespaces "gone" not found`} {
		c := &Connector{config: &Config{Namespace: namespace, Kubeconfig: kubeconfig}, log: slog.New(slog.DiscardHandler)}
		if err := c.output(t.Context(), &deps{}); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := c.MissingNamespace(t.Context()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", namespace, got, want)
		}
	}
	for _, request := range asked {
		if !strings.HasPrefix(request, "POST ") || !strings.Contains(request, "dryRun=All") {
			t.Errorf("a request with an effect: %s", request)
		}
	}
}
