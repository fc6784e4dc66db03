package agent

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// TestAPIServerOverridesKubeconfig gives a kubeconfig whose server does not answer, and two
// addresses in its place, of which the first does not answer.
func TestAPIServerOverridesKubeconfig(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
	}))
	defer server.Close()
	cfg := everything(t)
	cfg.Kubernetes.Source, cfg.Kubernetes.Kubeconfig = config.SourceKubernetes, kubeconfig(t, dead(t))
	cfg.Kubernetes.APIServer = config.OneOrMore{dead(t), server.URL}
	_, client, err := (&Agent{cfg: cfg, log: quiet()}).kubeSource()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil || asked.Load() != 1 {
		t.Errorf("nodes: %v after %d requests, want 1", err, asked.Load())
	}
}
