package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
)

// TestSystemd: the agent takes the flags and the configuration of the unit, and systemd the unit,
// where its tool is installed.
func TestSystemd(t *testing.T) {
	dir := filepath.Join(build.Root(), "deploy", "systemd")
	unit, err := os.ReadFile(filepath.Join(dir, "troupe.service"))
	if err != nil {
		t.Fatal(err)
	}
	// the rest of the file system is read-only, and without its lock beside VPP's socket the
	// agent does not use VPP
	if !strings.Contains(string(unit), "\nReadWritePaths=-/run/vpp\n") {
		t.Error("the agent cannot lock VPP")
	}
	_, line, _ := strings.Cut(string(unit), "\nExecStart=")
	line, _, _ = strings.Cut(line, "\n")
	arguments := strings.Fields(strings.NewReplacer("/etc/troupe/agent.yaml", filepath.Join(dir, "agent.yaml"), "%H", "").Replace(line))
	troupe, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), troupe, arguments[1:]...).CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "nodeName: is required") {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd does not check the unit: systemd-analyze is not installed")
	}
	copied := filepath.Join(t.TempDir(), "troupe.service")
	if err := os.WriteFile(copied, []byte(strings.Replace(string(unit), "/usr/local/bin/troupe", troupe, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
