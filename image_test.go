package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImageHasOnlyTheAgent: the build tag agent, with which the image is built, leaves out what
// only development needs.
func TestImageHasOnlyTheAgent(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-tags", "agent,grpcnotrace", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("list the packages of the image: %v\n%s", err, out)
	}
	packages := strings.Fields(string(out))
	for _, needed := range []string{module + "/bootstrap/agent", module + "/bootstrap/page", module + "/actors/chaos/live"} {
		if !slices.Contains(packages, needed) {
			t.Errorf("the image lacks %s", needed)
		}
	}
	forbidden := []string{
		"go.etcd.io/etcd/server/", "go.etcd.io/bbolt", "go.etcd.io/raft/", "golang.org/x/net/trace", "k8s.io/client-go/kubernetes", "k8s.io/client-go/testing",
		module + "/bootstrap/cli/simulated", module + "/deploy/", module + "/vpp/simulator", module + "/vpp/virtual", module + "/actors/actorstest",
	}
	for _, p := range packages {
		if slices.ContainsFunc(forbidden, func(f string) bool { return strings.HasPrefix(p, f) }) || p == module+"/actors/chaos" {
			t.Errorf("the image has %s, which only development needs", p)
		}
	}
}
