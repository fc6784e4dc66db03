package daemonset_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/stage"
)

// signal sends a signal to the agent of a node.
func (c *cluster) signal(on int, signal syscall.Signal) {
	c.Helper()
	pids := c.Nodes[on].Find("/troupe", "agent")
	if len(pids) != 1 {
		c.Fatalf("%s has agents %v, want one", c.Nodes[on].Name, pids)
	}
	if err := syscall.Kill(pids[0], signal); err != nil {
		c.Fatal(err)
	}
}

// restarted waits until the container of a pod has been restarted once more and is Ready, and
// returns the pod.
func (c *cluster) restarted(on int, before corev1.Pod) (after corev1.Pod) {
	c.Helper()
	controlplane.Eventually(c, "agent of "+c.Nodes[on].Name+" restarted", func() string {
		pod, problem := c.Pod(on)
		if problem != "" {
			return problem
		}
		if after = *pod; pod.Status.ContainerStatuses[0].RestartCount == before.Status.ContainerStatuses[0].RestartCount || !stage.Ready(pod) {
			return fmt.Sprintf("%+v", pod.Status.ContainerStatuses[0])
		}
		return ""
	})
	c.same(on, before, after, 1)
	return after
}

// killed: the kubelet starts an agent again that was killed; VPP is not changed.
func killed(c *cluster) {
	before, count := c.RolledOut(), c.counted(0)
	c.signal(0, syscall.SIGKILL)
	after := c.restarted(0, before[0])
	if ended := after.Status.ContainerStatuses[0].LastTerminationState.Terminated; ended == nil || ended.ExitCode != 128+int32(syscall.SIGKILL) {
		c.Errorf("the agent has ended with %+v", ended)
	}
	c.same(1, before[1], c.RolledOut()[1], 0)
	if now := c.counted(0); now != count {
		c.Errorf("VPP was changed by the restart: %v, before %v", now, count)
	}
}

// stopped: an agent that hangs is found by its liveness probe.
func stopped(c *cluster) {
	before, count := c.RolledOut(), c.counted(0)
	c.signal(0, syscall.SIGSTOP)
	c.restarted(0, before[0])
	c.same(1, before[1], c.RolledOut()[1], 0)
	if now := c.counted(0); now != count {
		c.Errorf("VPP was changed by the restart: %v, before %v", now, count)
	}
}

// restartedAround: the kubelet and containerd of a node restart and take over what runs; the agent
// feels nothing.
func restartedAround(c *cluster) {
	before, count := c.RolledOut(), c.counted(0)
	n := c.Nodes[0]
	n.StopKubelet()
	n.StopContainerd()
	n.StartContainerd()
	n.StartKubelet()
	address := c.runPod("late", "late", 0) // only a kubelet that works again makes it Ready
	c.same(0, before[0], c.RolledOut()[0], 0)
	c.same(1, before[1], c.RolledOut()[1], 0)
	count[0] += 2 // the interface of the new pod takes its roles in NAT44 and in CNAT
	controlplane.Eventually(c, "VPP changed for the interface of the new pod alone", func() string {
		if now := c.counted(0); now != count {
			return fmt.Sprintf("%v, want %v", now, count)
		}
		return ""
	})
	c.rows("shop/late", both, row(c.service("late"), address))
}

// away: while the API server is away, an agent whose container was killed serves what the last one
// has saved, and VPP is not changed. New services are served afterwards.
func away(c *cluster) {
	before, count := c.RolledOut(), c.counted(0)
	rows, problem := c.rowsOf(0, "shop/web")
	if problem != "" || len(rows) != 1 {
		c.Fatalf("rows of shop/web: %v, %s", rows, problem)
	}
	old := c.Nodes[0].Find("/troupe", "agent")
	c.StopAPI()
	c.signal(0, syscall.SIGKILL)
	controlplane.Eventually(c, "another agent on "+c.Nodes[0].Name, func() string {
		if pids := c.Nodes[0].Find("/troupe", "agent"); len(pids) != 1 || pids[0] == old[0] {
			return fmt.Sprintf("agents %v, before %v", pids, old)
		}
		return c.Get(0, "/livez", nil)
	})
	c.rows("shop/web", both, rows...)
	if now := c.counted(0); now != count {
		c.Errorf("VPP was changed: %v, before %v", now, count)
	}
	c.StartAPI()
	c.StartControllers()
	c.restarted(0, before[0])
	c.same(1, before[1], c.RolledOut()[1], 0)
	address := c.runPod("after", "after", 1)
	c.rows("shop/after", both, row(c.service("after"), address))
}

// unready waits until the pod of a node has a running agent that says this in its readiness, and
// checks that its container was never restarted.
func (c *cluster) unready(on int, words ...string) {
	c.Helper()
	if count := c.says(on, words...).Status.ContainerStatuses[0].RestartCount; count != 0 {
		c.Errorf("restart count %d instead of 0", count)
	}
}

// says waits until the pod of a node is not Ready and its agent says this in its readiness, and
// returns the pod.
func (c *cluster) says(on int, words ...string) (unready corev1.Pod) {
	c.Helper()
	controlplane.Eventually(c, "agent of "+c.Nodes[on].Name+" says what is wrong", func() string {
		pod, problem := c.Pod(on)
		if problem != "" {
			return problem
		}
		if stage.Ready(pod) {
			return "it is Ready"
		}
		said := c.Get(on, "/readyz?verbose", nil)
		for _, word := range words {
			if !strings.Contains(said, word) {
				return said
			}
		}
		unready = *pod
		return ""
	})
	return unready
}

// replace deletes the pod of the agent on a node, and waits until another one runs there.
func (c *cluster) replace(on int) {
	c.Helper()
	old, problem := c.Pod(on)
	if problem != "" {
		c.Fatal(problem)
	}
	if err := c.Admin.CoreV1().Pods(namespace).Delete(context.Background(), old.Name, metav1.DeleteOptions{}); err != nil {
		c.Fatalf("delete pod %s: %v", old.Name, err)
	}
	controlplane.Eventually(c, "another pod on "+c.Nodes[on].Name, func() string {
		pod, problem := c.Pod(on)
		if problem == "" && (pod.UID == old.UID || pod.Status.ContainerStatuses[0].State.Running == nil) {
			problem = fmt.Sprintf("%+v", pod.Status)
		}
		return problem
	})
}
