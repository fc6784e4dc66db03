package node

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	hierarchies = "/sys/fs/cgroup"
	groupPrefix = "troupe-test-"
)

// needed are the controllers of version 2 that the kubelet wants in its cgroup.
var needed = []string{"cpu", "cpuset", "memory", "pids"}

// unified reports whether cgroups are those of version 2, which have one hierarchy.
func unified(mounted string) bool {
	_, err := os.Stat(filepath.Join(mounted, "cgroup.controllers"))
	return err == nil
}

// parents are the roots of the hierarchies: of all controllers with version 1, the only one with
// version 2.
func parents(mounted string) (roots []string) {
	if unified(mounted) {
		return []string{mounted}
	}
	groups, _ := filepath.Glob(filepath.Join(mounted, "*", "cgroup.procs"))
	for _, procs := range groups {
		roots = append(roots, filepath.Dir(procs))
	}
	return roots
}

// missingCgroups says what the cgroups of the machine lack; "" = nothing.
func missingCgroups(mounted string) string {
	if !unified(mounted) {
		if _, err := os.Stat(filepath.Join(mounted, "memory", "cgroup.procs")); err != nil {
			return "a node needs cgroups, of version 1 with the controller memory or of version 2: " + err.Error()
		}
		return ""
	}
	have, err := os.ReadFile(filepath.Join(mounted, "cgroup.controllers"))
	if err != nil {
		return "a node needs cgroups: " + err.Error()
	}
	for _, controller := range needed {
		if !slices.Contains(strings.Fields(string(have)), controller) {
			return fmt.Sprintf("a node needs the cgroup controller %s, %s has: %s", controller, mounted, strings.TrimSpace(string(have)))
		}
	}
	return ""
}

// delegate gives the children of a cgroup of version 2 the controllers.
func delegate(group string) error {
	if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+strings.Join(needed, " +")), 0o644); err != nil {
		return fmt.Errorf("give the children of %s their cgroup controllers: %w", group, err)
	}
	return nil
}

// makeCgroup makes a cgroup in every hierarchy.
func makeCgroup(mounted, name string) error {
	for _, parent := range parents(mounted) {
		group := filepath.Join(parent, name)
		if unified(mounted) {
			if err := delegate(parent); err != nil {
				return err
			}
		}
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		if unified(mounted) {
			if err := delegate(group); err != nil {
				return err
			}
			continue
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
	for _, root := range groupsOf(hierarchies, prefix) {
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

// groupsOf returns the cgroups with the prefix in all hierarchies.
func groupsOf(mounted, prefix string) (groups []string) {
	for _, parent := range parents(mounted) {
		found, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
		groups = append(groups, found...)
	}
	return groups
}

// removeAbandoned removes the cgroups of tests that were killed.
func removeAbandoned() {
	for _, root := range groupsOf(hierarchies, groupPrefix) {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(root), groupPrefix+"%d-", &pid); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			removeCgroups(filepath.Base(root))
		}
	}
}

// groupName is the name of the cgroup of a node of this test.
func groupName(node string) string { return fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), node) }
