package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCgroups: a node gets its cgroup in every hierarchy of version 1, and in the only one of
// version 2, where its children get the controllers. The files are those that the kernel has.
func TestCgroups(t *testing.T) {
	v1, v2, poor := t.TempDir(), t.TempDir(), t.TempDir()
	files := map[string]string{
		filepath.Join(v1, "memory", "cgroup.procs"): "", filepath.Join(v1, "cpuset", "cgroup.procs"): "",
		filepath.Join(v1, "cpuset", "cpuset.cpus"): "0-1", filepath.Join(v1, "cpuset", "cpuset.mems"): "0",
		filepath.Join(v2, "cgroup.controllers"): "cpuset cpu io memory hugetlb pids rdma misc\n", filepath.Join(v2, "cgroup.procs"): "",
		filepath.Join(poor, "cgroup.controllers"): "cpu pids\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, mounted := range []string{v1, v2} {
		if missing := missingCgroups(mounted); missing != "" {
			t.Error(missing)
		}
		if err := makeCgroup(mounted, "troupe-test-1-node1"); err != nil {
			t.Error(err)
		}
	}
	if missing := missingCgroups(poor); !strings.Contains(missing, "the cgroup controller cpuset") {
		t.Errorf("missing %q", missing)
	}
	if missing := missingCgroups(t.TempDir()); !strings.Contains(missing, "of version 1 with the controller memory or of version 2") {
		t.Errorf("missing %q", missing)
	}
	for name, want := range map[string]string{
		filepath.Join(v1, "cpuset", "troupe-test-1-node1", "cpuset.cpus"):  "0-1",
		filepath.Join(v2, "cgroup.subtree_control"):                        "+cpu +cpuset +memory +pids",
		filepath.Join(v2, "troupe-test-1-node1", "cgroup.subtree_control"): "+cpu +cpuset +memory +pids",
	} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if groups := groupsOf(v1, groupPrefix); len(groups) != 2 {
		t.Errorf("cgroups of version 1: %v", groups)
	}
	if groups := groupsOf(v2, groupPrefix); len(groups) != 1 {
		t.Errorf("cgroups of version 2: %v", groups)
	}
}
