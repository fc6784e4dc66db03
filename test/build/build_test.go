package build_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
)

// TestControlPlane builds what the cache does not have, so that later tests find it there.
func TestControlPlane(t *testing.T) {
	dir, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	etcd := map[string]string{"v1.31.14": "3.5.14", "v1.36.3": "3.6.8", "v1.37.2": "3.7.0"}[build.Kubernetes()]
	says(t, dir, "etcd", "etcd Version: "+etcd)
	says(t, dir, "kube-apiserver", "Kubernetes "+build.Kubernetes())
	again, err := build.ControlPlane(t.Context(), func(format string, args ...any) { t.Errorf("built twice: "+format, args...) })
	if err != nil || again != dir {
		t.Errorf("second call = %s, %v, expected %s", again, err, dir)
	}
}

// TestNode does the same with what runs on a node.
func TestNode(t *testing.T) {
	kubelet, containerd, err := build.Node(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	says(t, kubelet, "kubelet", "Kubernetes "+build.Kubernetes())
	says(t, containerd, "containerd", "containerd github.com/containerd/containerd/v2 v2.4.2")
	says(t, containerd, "ctr", "ctr github.com/containerd/containerd/v2 v2.4.2")
	if _, _, err = build.Node(t.Context(), func(format string, args ...any) { t.Errorf("built twice: "+format, args...) }); err != nil {
		t.Error(err)
	}
}

// TestConsul does the same with Consul.
func TestConsul(t *testing.T) {
	dir, err := build.Consul(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	says(t, dir, "consul", "Consul v1.13.9")
}

// says compares what a binary says of its version.
func says(t *testing.T, dir, binary, want string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(dir, binary), "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%s --version = %q, %v, expected %q", binary, out, err, want)
	}
}
