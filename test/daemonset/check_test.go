package daemonset_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// checkPackets: `troupe check --packets` finds that the pods of the nodes reach each other, and
// that a simulated VPP forwards no packet to a service. It deletes what a run has left that was
// killed an hour ago.
func checkPackets(c *cluster) {
	killed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "troupe-check-killed", Labels: map[string]string{"app.kubernetes.io/managed-by": "troupe-check"},
		Annotations: map[string]string{"troupe.dev/deadline": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
	}}
	if _, err := c.Admin.CoreV1().Namespaces().Create(c.Context(), killed, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.packetsChecked(map[string]string{
		"node1 to pods": "ok 2 of 2 addresses answer, 10 connections to each", "node2 to pods": "ok 2 of 2 addresses answer, 10 connections to each",
		"node1 to cluster IPs": "failed 0 of 1 addresses answer", "node2 to cluster IPs": "failed 0 of 1 addresses answer",
		"node1 to node ports": "failed 0 of 2 addresses answer", "node2 to node ports": "failed 0 of 2 addresses answer",
	})
}

// packetsChecked runs `troupe check --packets` as a user of the cluster outside of it, and compares
// the lines with the starts of these.
func (c *cluster) packetsChecked(want map[string]string, flags ...string) {
	c.Helper()
	arguments := append([]string{"check", "--packets", "all", "--all-nodes", "-o", "json", "--kubeconfig", c.Kubeconfig("check", controlplane.Credentials)}, flags...)
	cmd := exec.CommandContext(c.Context(), c.Program, arguments...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, _ := cmd.Output() // VPP of this machine fails
	var lines []struct{ Check, State, Found string }
	if err := json.Unmarshal(out, &lines); err != nil {
		c.Fatalf("troupe check: %v\n%s%s", err, out, errs.String())
	}
	have := 0
	for _, l := range lines {
		what, is := strings.CutPrefix(l.Check, "packets from a pod of ")
		if !is {
			continue
		}
		have++
		if begin := want[what]; begin == "" || !strings.HasPrefix(l.State+" "+l.Found, begin) {
			c.Errorf("%s: %s %s; want %q", what, l.State, l.Found, begin)
		}
	}
	if have != len(want) {
		c.Errorf("%d lines of packets, want %d:\n%s%s", have, len(want), out, errs.String())
	}
	namespaces, err := c.Admin.CoreV1().Namespaces().List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, n := range namespaces.Items {
		if strings.HasPrefix(n.Name, "troupe-check-") && n.DeletionTimestamp == nil {
			c.Errorf("namespace %s is still there", n.Name)
		}
	}
}
