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
	for binary, want := range map[string]string{"etcd": "etcd Version: 3.6.8", "kube-apiserver": "Kubernetes v1.36.3"} {
		out, err := exec.Command(filepath.Join(dir, binary), "--version").Output()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s --version = %q, %v, expected %q", binary, out, err, want)
		}
	}
	again, err := build.ControlPlane(t.Context(), func(format string, args ...any) { t.Errorf("built twice: "+format, args...) })
	if err != nil || again != dir {
		t.Errorf("second call = %s, %v, expected %s", again, err, dir)
	}
}
