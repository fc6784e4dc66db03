package daemonset_test

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/stage"
)

// rollingUpdate: another image comes to one node after the other, both agents stop by themselves,
// and no VPP is changed by it.
func rollingUpdate(c *cluster) {
	before := c.RolledOut()
	counts := [][2]int{c.counted(0), c.counted(1)}
	list, err := c.Admin.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	watch, err := c.Admin.CoreV1().Pods(namespace).Watch(context.Background(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		c.Fatal(err)
	}
	c.change(func(d *appsv1.DaemonSet) { agentOf(d).Image = nextImage })
	after := c.RolledOut()
	watch.Stop()

	well := map[types.UID]bool{before[0].UID: true, before[1].UID: true}
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			c.Fatalf("watch: %v", event)
		}
		delete(well, pod.UID)
		if event.Type != "DELETED" && pod.DeletionTimestamp == nil && stage.Ready(pod) {
			well[pod.UID] = true
		}
		if len(well) == 0 {
			c.Errorf("no pod is Ready after %s of %s", event.Type, pod.Name)
		}
		for _, state := range pod.Status.ContainerStatuses {
			if ended := state.State.Terminated; ended != nil && ended.ExitCode != 0 {
				c.Errorf("the agent of %s has ended with %d: %s", pod.Name, ended.ExitCode, ended.Message)
			}
		}
	}
	for i := range c.Nodes {
		if after[i].UID == before[i].UID || after[i].Spec.Containers[0].Image != nextImage {
			c.Errorf("%s was not updated", before[i].Name)
		}
		if now := c.counted(i); now != counts[i] {
			c.Errorf("VPP of %s was changed by the update: %v, before %v", c.Nodes[i].Name, now, counts[i])
		}
	}
}

// brokenImage: an image that does not exist stops at the first node, the other agent is not
// touched, and undo needs nothing else.
func brokenImage(c *cluster) {
	before := c.RolledOut()
	var good string
	c.change(func(d *appsv1.DaemonSet) {
		good, agentOf(d).Image = agentOf(d).Image, "troupe.test/troupe:broken"
		agentOf(d).ImagePullPolicy = corev1.PullNever
	})
	var broken int
	controlplane.Eventually(c, "an image is missing", func() string {
		for i := range c.Nodes {
			pod, problem := c.Pod(i)
			if problem == "" && pod.Status.ContainerStatuses[0].State.Waiting != nil && pod.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImageNeverPull" {
				broken = i
				return ""
			}
		}
		return "every container runs"
	})
	other := 1 - broken
	if pod, problem := c.Pod(other); problem != "" || pod.UID != before[other].UID || !stage.Ready(pod) {
		c.Errorf("the agent of the other node was touched: %s", problem)
	}
	c.change(func(d *appsv1.DaemonSet) {
		agentOf(d).Image, agentOf(d).ImagePullPolicy = good, before[0].Spec.Containers[0].ImagePullPolicy
	})
	after := c.RolledOut()
	if after[other].UID != before[other].UID {
		c.Errorf("undo has replaced %s, which was never broken", before[other].Name)
	}
	c.same(other, before[other], after[other], 0)
}

// same checks that a pod is the same, restarted so many times since.
func (c *cluster) same(on int, before, after corev1.Pod, restarts int32) {
	c.Helper()
	if after.UID != before.UID {
		c.Errorf("%s: another pod, %s instead of %s", c.Nodes[on].Name, after.Name, before.Name)
	}
	then, now := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if now.RestartCount != then.RestartCount+restarts || (now.ContainerID != then.ContainerID) != (restarts > 0) {
		c.Errorf("%s: restart count %d, before %d, want %d more; container %s, before %s",
			c.Nodes[on].Name, now.RestartCount, then.RestartCount, restarts, now.ContainerID, then.ContainerID)
	}
}

// replaced waits until the pod of one of the nodes is another one, and returns which.
func (c *cluster) replaced(before []corev1.Pod) (on int) {
	c.Helper()
	controlplane.Eventually(c, "a pod is replaced", func() string {
		for i := range c.Nodes {
			if pod, problem := c.Pod(i); problem == "" && pod.UID != before[i].UID {
				on = i
				return ""
			}
		}
		return "none is"
	})
	return on
}
