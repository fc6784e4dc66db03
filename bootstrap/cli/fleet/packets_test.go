package fleet

import (
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube/check"
)

// TestJudge: a line for each node and kind of addresses, failed where one address does not answer.
func TestJudge(t *testing.T) {
	result := func(from, kind, address, node string, talk check.Talk) check.Result {
		return check.Result{From: from, Target: check.Target{Kind: kind, Address: address, Node: node}, Talk: talk}
	}
	answered := func(node string) check.Talk { return check.Talk{Answers: map[string]int{node: connections}} }
	c := &checks{}
	c.judge([]check.Result{
		result("n1", check.Pods, "10.1.1.2:8080", "n1", answered("n1")),
		result("n1", check.Pods, "10.1.2.2:8080", "n2", answered("n2")),
		result("n1", check.ClusterIPs, "10.96.0.9:80", "", check.Talk{Answers: map[string]int{"n1": 4, "n2": 6}}),
		result("n2", check.Pods, "10.1.1.2:8080", "n1", answered("n2")),
		result("n2", check.ClusterIPs, "10.96.0.9:80", "", check.Talk{Answers: map[string]int{"n1": 7}, Failed: 3, Error: "i/o timeout"}),
		result("n2", check.NodePorts, "192.0.2.1:30001", "", answered("n1")),
	})
	var have []string
	for _, l := range c.lines {
		have = append(have, l.State+" | "+l.Check+" | "+l.Found)
	}
	want := []string{
		"ok | packets from a pod of n1 to pods | 2 of 2 addresses answer, 10 connections to each",
		"ok | packets from a pod of n1 to cluster IPs | 1 of 1 addresses answer, 10 connections to each",
		"skipped | packets from a pod of n1 to node ports | no address of a Node serves them",
		"failed | packets from a pod of n2 to pods | 0 of 1 addresses answer, 10 connections to each; not 10.1.1.2:8080 (the pod of n2 answers, not the pod of n1)",
		"failed | packets from a pod of n2 to cluster IPs | 0 of 1 addresses answer, 10 connections to each; not 10.96.0.9:80 (3 failed: i/o timeout)",
		"ok | packets from a pod of n2 to node ports | 1 of 1 addresses answer, 10 connections to each",
	}
	if !slices.Equal(have, want) {
		t.Errorf("lines:\n%q\nwant:\n%q", have, want)
	}
	if c.lines[0].Do != "" || c.lines[3].Do == "" {
		t.Errorf("advice %q, %q", c.lines[0].Do, c.lines[3].Do)
	}
}
