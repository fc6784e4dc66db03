package daemonset_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/test/node"
)

// TestDaemonSet plays the stories one after the other on one cluster; each begins and ends with an agent that is Ready on both nodes.
func TestDaemonSet(t *testing.T) {
	if missing := node.Missing(); missing != "" {
		t.Skip(missing)
	}
	c := stage(t)
	for _, story := range []struct {
		name string
		play func(*cluster)
	}{
		{"start", start},
	} {
		t.Run(story.name, func(t *testing.T) {
			own := *c
			own.T = t
			own.rolledOut()
			story.play(&own)
			own.rolledOut()
		})
	}
}

func start(c *cluster) {
	for _, pod := range c.rolledOut() {
		if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
			c.Errorf("%s has been restarted %d times", pod.Name, n)
		}
	}
}
