package daemonset_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/test/node"
)

// TestDaemonSet plays the stories one after the other on one cluster; each begins and ends with an
// agent that is Ready on both nodes.
func TestDaemonSet(t *testing.T) {
	if missing := node.Missing(); missing != "" {
		t.Skip(missing)
	}
	c := begun(t)
	for _, story := range []struct {
		name string
		play func(*cluster)
	}{
		{"Start", start},
		{"Pods", realPods},
		{"RollingUpdate", rollingUpdate},
		{"BrokenImage", brokenImage},
		{"Killed", killed},
		{"Stopped", stopped},
		{"SecondAgent", secondAgent},
		{"KubeletAndContainerd", restartedAround},
		{"APIServerAway", away},
		{"RBAC", withoutRights},
		{"Unwritable", unwritable},
		{"SocketRights", socketRights},
		{"ReplacedDirectory", replacedDirectory},
		{"ClusterIP", clusterIP},
		{"CheckPackets", checkPackets},
		{"Packets", packets},
		{"Operator", operator},
		{"HostileNode", hostileNode},
	} {
		t.Run(story.name, func(t *testing.T) {
			own := *c
			own.T = t
			own.RolledOut()
			story.play(&own)
			own.RolledOut()
		})
	}
}
