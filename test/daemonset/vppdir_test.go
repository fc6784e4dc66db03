package daemonset_test

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// replacedDirectory: VPP stops, and its directory is removed and made anew, as by the upgrade of a
// package or by RuntimeDirectory of systemd. The mount of the agent's pod shows the removed
// directory for ever, so the agent ends, and the next container finds the VPP in the new one.
func replacedDirectory(c *cluster) {
	before, rows, counts := c.RolledOut(), c.mustRows("shop/web"), [][2]int{c.counted(0), c.counted(1)}
	if notes := c.lostVPP(0); len(notes) > 0 {
		c.Fatalf("Events before VPP is lost: %q", notes)
	}
	c.vpp[0].Kill()
	controlplane.Eventually(c, "Event at the Node", func() string {
		if notes := c.lostVPP(0); len(notes) == 0 || !strings.HasPrefix(notes[0], "troupe has lost VPP") {
			return strings.Join(append(notes, "it is missing"), "; ")
		}
		return ""
	})
	// until here the agent waits for a VPP that could come back where it was
	c.same(0, before[0], c.says(0, "link", "/run/vpp/api.sock"), 0)

	c.Nodes[0].Do("sh", "-c", "rm -r /run/vpp && mkdir /run/vpp")
	c.vpp[0] = simulated(c.T, c.Nodes[0], c.Program)
	after := c.restarted(0, before[0])
	const why = "directory /run/vpp of vpp.apiSocket was replaced on the node"
	ended := after.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if ended == nil || ended.ExitCode != 1 || !strings.Contains(ended.Message, why) {
		c.Errorf("the agent has ended with %+v, want exit code 1 and %q", ended, why)
	}
	c.logged(0, why)
	c.rows("shop/web", []int{0}, rows...)
	if now := c.counted(0); now[0] == 0 || now[1] != counts[0][1] {
		c.Errorf("the new VPP has had %d changes and has %d rows, want %d rows as the one before", now[0], now[1], counts[0][1])
	}
	c.same(1, before[1], c.RolledOut()[1], 0)
	if now := c.counted(1); now != counts[1] {
		c.Errorf("VPP of the other node was changed: %v, before %v", now, counts[1])
	}
}

// lostVPP returns the notes of the Events VPPLost at a Node, found as kubectl describe node does.
func (c *cluster) lostVPP(on int) (notes []string) {
	c.Helper()
	name := c.Nodes[on].Name
	list, err := c.Admin.CoreV1().Events("").List(context.Background(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + name + ",involvedObject.uid=" + name + ",reason=VPPLost",
	})
	if err != nil {
		c.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Type != corev1.EventTypeWarning {
			c.Errorf("type of the Event %q: %s", e.Message, e.Type)
		}
		notes = append(notes, e.Message)
	}
	return notes
}
