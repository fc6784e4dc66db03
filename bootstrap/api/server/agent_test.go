package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// TestAnswersOfTheAgentAreAsDescribed: the OpenAPI document holds for what a real agent answers,
// and its journal has each change with the client.
func TestAnswersOfTheAgentAreAsDescribed(t *testing.T) {
	dir, err := os.MkdirTemp("", "ag") // the directory of a test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := config.Defaults()
	cfg.NodeName, cfg.Kubernetes.Source, cfg.VPP.Mode = "shop-a", config.SourceFilesPrefix+"../../../deploy/demo", config.VPPSimulated
	cfg.Etcd.Mode, cfg.Etcd.DataDir = config.EtcdEmbedded, filepath.Join(dir, "etcd")
	cfg.Services.ServiceCIDRs, cfg.Services.ClusterCIDRs = []string{"10.96.0.0/16"}, []string{"10.1.0.0/16"}
	cfg.API.HTTPAddress, cfg.API.ControlSocket, cfg.API.HealthzBindAddress, cfg.API.EnableChaos = "", filepath.Join(dir, "ctl"), "", true
	a, err := agent.Start(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	eventually(t, "ready", func() bool { return a.Backend().Readiness().Ready })
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", cfg.API.ControlSocket)
	}}
	for target, method := range map[string]string{
		"/api/v1/services": "GET", "/api/v1/services/shop/web": "GET", "/api/v1/interfaces": "GET", "/api/v1/nodes": "GET", "/api/v1/actors?limit=1000": "GET",
		"/api/v1/actors/agent/dataplane/nat44": "GET", "/api/v1/actors/agent/dataplane/nat44/mailbox": "GET", "/api/v1/actors/agent/world/services/shop~web/state": "GET",
		"/api/v1/actors/agent/dataplane/nat44/failures": "GET", "/api/v1/tree": "GET", "/api/v1/top?by=busy": "GET", "/api/v1/events?limit=1000": "GET",
		"/api/v1/resync": "POST", "/api/v1/resync?": "GET", "/api/v1/diff": "GET", "/api/v1/external": "GET", "/api/v1/sessions": "GET", "/api/v1/packet?source=10.1.1.3&destination=10.96.20.1:80/TCP": "GET", "/api/v1/external/none": "DELETE",
		"/api/v1/chaos": "GET", "/api/v1/chaos?": "DELETE", "/api/v1/actors/agent/none:kill": "POST", "/healthz": "GET", "/readyz?verbose": "GET", "/livez": "GET",
	} {
		r, err := http.NewRequest(method, "http://agent"+target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := described(method, target, response.StatusCode, response.Header.Get("Content-Type"), body); err != nil {
			t.Errorf("%s %s: %d %v\n%.2000s", method, target, response.StatusCode, err, body)
		}
	}
	changed := map[string]string{"/api/v1/resync": "POST by uid ", "/api/v1/external/none": "DELETE by uid ", "/api/v1/chaos": "DELETE by uid ", "/api/v1/actors/agent/none:kill": "POST by uid "}
	eventually(t, "audit records", func() bool {
		page, err := a.Backend().Events(t.Context(), api.EventQuery{Limit: 1000, Kind: "audit"})
		if err != nil || len(page.Items) < len(changed) {
			return false
		}
		for _, e := range page.Items {
			if !strings.HasPrefix(e.Text, changed[e.Object]) || (e.Error == "") == strings.Contains(e.Object, "none:kill") {
				t.Fatalf("%+v", e)
			}
		}
		return true
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}
