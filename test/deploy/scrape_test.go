package deploy

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// scrape returns the metrics of an agent that is in sync with the cluster of the demo.
func scrape(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "troupe") // short: paths of sockets are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	troupe, err := build.Agent(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	control, objects := filepath.Join(dir, "control.sock"), filepath.Join(dir, "objects")
	if err := os.CopyFS(objects, os.DirFS(filepath.Join(build.Root(), "deploy", "demo"))); err != nil {
		t.Fatal(err)
	}
	pool := "apiVersion: troupe.dev/v1alpha1\nkind: AddressPool\nmetadata: {name: edge}\nspec: {addresses: [203.0.113.0/24]}\n"
	if err := os.WriteFile(filepath.Join(objects, "pool.yaml"), []byte(pool), 0o600); err != nil {
		t.Fatal(err)
	}
	controlplane.Spawn(t, dir, troupe, "agent", "--node-name", "shop-a", "--kube-source", "files:"+objects, "--addresses",
		"--vpp", "simulated", "--etcd", "none", "--control-socket", control, "--http-address", "", "--healthz-bind-address", "", "--data-dir", filepath.Join(dir, "data"),
		"--service-cidr", controlplane.ServiceCIDR, "--host-route-interface", "no-such-link", "--host-route-gateway", "172.30.0.1")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", control)
	}}}
	var text string
	controlplane.Eventually(t, "metrics of an agent that is in sync", func() string {
		answer, err := client.Get("http://agent/metrics")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err.Error()
		}
		if text = string(body); !strings.Contains(text, `troupe_vpp_operations_total{outcome="succeeded",renderer="nat44"}`) {
			return text
		}
		return ""
	})
	return text
}
