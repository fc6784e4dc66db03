package informers

import (
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// TestTokenIsReadAgainAfterUnauthorized rotates the token file: only the refused request has the
// old token.
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
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
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
	client, err := NewClient(ClientConfig{Kubeconfig: writeKubeconfig(t, text), Servers: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{})
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

// expiring is an API server without objects. A token is the time until which it is valid. When a
// token expires, its watches end too.
type expiring struct {
	now  atomic.Int64
	tick chan struct{} // closed and replaced when the clock moves
	mu   sync.Mutex
}

// advance sets the clock.
func (e *expiring) advance(to int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now.Store(to)
	close(e.tick)
	e.tick = make(chan struct{})
}

// ServeHTTP satisfies http.Handler.
func (e *expiring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	tick := e.tick
	e.mu.Unlock()
	until, err := strconv.ParseInt(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case err != nil || until <= e.now.Load():
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`))
	case r.URL.Query().Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case r.URL.Query().Has("watch"):
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick:
		case <-r.Context().Done():
		}
	default:
		kinds := map[string][2]string{
			"services": {"v1", "ServiceList"}, "nodes": {"v1", "NodeList"}, "pods": {"v1", "PodList"}, "endpointslices": {"discovery.k8s.io/v1", "EndpointSliceList"},
		}
		kind := kinds[path.Base(r.URL.Path)]
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind[1], kind[0])
	}
}

// TestTokenExpires: if the kubelet replaces a token in time, only one request is refused. If it
// replaces the token late, there is an outage until then. In both cases the source goes on with the
// new token.
func TestTokenExpires(t *testing.T) {
	api := &expiring{tick: make(chan struct{})}
	server := httptest.NewTLSServer(api)
	defer server.Close()
	dir := t.TempDir()
	file, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca")
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(file, "10")
	text := strings.NewReplacer("token: t", "tokenFile: "+file, "cluster: {", "cluster: {certificate-authority: "+ca+", ").Replace(kubeconfig)
	client, err := NewClient(ClientConfig{Kubeconfig: writeKubeconfig(t, text), Servers: []string{server.URL}, QPS: 100, Burst: 100})
	if err != nil {
		t.Fatal(err)
	}
	mirror, done := kubetest.NewMirror(), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- New(client, Config{NodeName: "n1"}, slog.New(slog.DiscardHandler)).Run(ctx, mirror)
	}()
	mirror.Wait(t, "the first list", func(v kubetest.View) bool { return v.Snapshots == 1 && v.Healthy() })

	write(file, "20") // in time
	api.advance(15)
	view := mirror.Wait(t, "the outage that the old token in memory is", func(v kubetest.View) bool { return len(v.Healths) > 1 && v.Healthy() })
	for _, h := range view.Healths[1 : len(view.Healths)-1] {
		if !strings.HasPrefix(h.Reason, string(unauthorized)) {
			t.Errorf("health %+v", h)
		}
	}
	api.advance(25) // the kubelet is late
	mirror.Wait(t, "no valid token", func(v kubetest.View) bool {
		return !v.Healthy() && strings.HasPrefix(v.Healths[len(v.Healths)-1].Reason, string(unauthorized))
	})
	write(file, "30")
	mirror.Wait(t, "the new token", kubetest.View.Healthy)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	mirror.Check(t)
}
