package node

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	hierarchies = "/sys/fs/cgroup"
	groupPrefix = "troupe-test-"
)

// makeCgroup makes a cgroup in every hierarchy.
func makeCgroup(name string) error {
	groups, err := filepath.Glob(filepath.Join(hierarchies, "*", "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, procs := range groups {
		parent := filepath.Dir(procs)
		group := filepath.Join(parent, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		for _, set := range []string{"cpuset.cpus", "cpuset.mems"} { // empty in a new cgroup
			value, err := os.ReadFile(filepath.Join(parent, set))
			if err != nil {
				continue // not the hierarchy of cpuset
			}
			if err := os.WriteFile(filepath.Join(group, set), value, 0o644); err != nil {
				return fmt.Errorf("set %s: %w", set, err)
			}
		}
	}
	return nil
}

// removeCgroups removes the cgroups with the prefix that have no process any more, and returns the
// first one that stays.
func removeCgroups(prefix string) (left string) {
	roots, _ := filepath.Glob(filepath.Join(hierarchies, "*", prefix+"*"))
	for _, root := range roots {
		var groups []string
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil // one that is gone meanwhile
		})
		slices.Reverse(groups) // children first
		for _, group := range groups {
			if err := syscall.Rmdir(group); err != nil && err != syscall.ENOENT {
				left = fmt.Sprintf("%s: %v", group, err)
			}
		}
	}
	return left
}

// removeAbandoned removes the cgroups of tests that were killed.
func removeAbandoned() {
	roots, _ := filepath.Glob(filepath.Join(hierarchies, "memory", groupPrefix+"*"))
	for _, root := range roots {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(root), groupPrefix+"%d-", &pid); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			removeCgroups(filepath.Base(root))
		}
	}
}

// groupName is the name of the cgroup of a node of this test.
func groupName(node string) string { return fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), node) }
