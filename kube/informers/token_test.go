package informers

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestTokenIsReadAgainAfterUnauthorized rotates the token file: the request that is refused is the only one that carries the old token.
func TestTokenIsReadAgainAfterUnauthorized(t *testing.T) {
	var asked []string // the requests follow each other
	valid := "first"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		asked = append(asked, token)
		if token != valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major":"1","minor":"36"}`))
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	text := strings.NewReplacer("token: t", "tokenFile: "+file, "cluster: {", "cluster: {certificate-authority: "+ca+", ").Replace(kubeconfig)
	client, err := NewClient(ClientConfig{Kubeconfig: writeKubeconfig(t, text), Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := client.Discovery().ServerVersion()
		return err
	}
	if err := ask(); err != nil {
		t.Fatalf("with the first token: %v", err)
	}
	write("second")
	valid = "second"
	if err := ask(); !apierrors.IsUnauthorized(err) {
		t.Errorf("with the cached token: %v, want unauthorized", err)
	}
	if err := ask(); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	if want := []string{"first", "first", "second"}; !slices.Equal(asked, want) {
		t.Errorf("tokens %q, want %q", asked, want)
	}
}
