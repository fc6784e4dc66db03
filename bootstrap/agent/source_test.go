package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/informers"
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

// TestPublishedServer: the agent reads the address of the API server through the ClusterIP, keeps
// it, and takes the kept one while the ClusterIP does not answer. Without either the error names
// the cause.
func TestPublishedServer(t *testing.T) {
	const published = "https://192.0.2.1:6443"
	var down atomic.Bool
	clusterIP := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() || r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" {
			http.NotFound(w, r)
			return
		}
		kubeconfig := "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster: {server: \"" + published + "\"}\n"
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "data": map[string]string{"kubeconfig": kubeconfig}})
	}))
	defer clusterIP.Close()
	a := &Agent{cfg: everything(t), log: quiet()}
	a.cfg.DataDir = t.TempDir()
	for _, step := range []struct {
		name string
		down bool
		keep bool
		want string
	}{
		{"first start", false, true, published},
		{"the ClusterIP is away", true, true, published},
		{"and nothing was kept", true, false, ""},
	} {
		t.Run(step.name, func(t *testing.T) {
			down.Store(step.down)
			if !step.keep {
				a.cfg.DataDir = t.TempDir()
			}
			got, err := a.publishedServer(informers.ClientConfig{Kubeconfig: kubeconfig(t, strings.TrimPrefix(clusterIP.URL, "http://"))})
			if got != step.want || (err != nil) != (step.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, step.want)
			}
			if err != nil && err.Error() != "read kube-public/cluster-info: 404 Not Found" {
				t.Errorf("error: %v", err)
			}
		})
	}
}
