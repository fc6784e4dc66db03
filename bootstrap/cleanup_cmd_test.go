package bootstrap

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestCleanup: the command says that VPP has nothing of the agent, refuses to work beside one, and
// says why VPP does not answer.
func TestCleanup(t *testing.T) {
	dir := t.TempDir()
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	socket, control := filepath.Join(dir, "api.sock"), filepath.Join(dir, "control.sock")
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"cleanup", "--vpp-api-socket", socket, "--control-socket", control, "--http-address", ""}
	if r := troupe("", arguments...); r.code != 0 || r.out != "VPP has nothing of the agent\n" {
		t.Errorf("%+v", r)
	}
	if r := troupe("", append(arguments, "--dry-run", "-o", "json")...); r.code != 0 || !strings.Contains(r.out, `"operations": []`) {
		t.Errorf("%+v", r)
	}
	// any program may listen at the addresses of the agent; the agent has the lock of VPP
	other, err := net.Listen("unix", control)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if r := troupe("", arguments...); r.code != 0 {
		t.Errorf("%+v", r)
	}
	agent, err := os.OpenFile(socket+".troupe", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	if err := syscall.Flock(int(agent.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if r := troupe("", append(arguments, "--control-socket", control+".other")...); r.code != 1 || r.out != "" || !strings.Contains(r.errs, "an agent is running and would restore everything") {
		t.Errorf("%+v", r)
	}
	if r := troupe("", append(arguments, "--dry-run")...); r.code != 0 {
		t.Errorf("%+v", r)
	}
	r := troupe("", "cleanup", "--vpp-api-socket", socket+".none", "--control-socket", "", "--http-address", "", "--timeout", "1s")
	if r.code != 1 || r.out != "" || !strings.Contains(r.errs, "no such file or directory") || strings.Count(r.errs, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}
