package stage

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
)

const (
	Namespace = "troupe-system" // of the agent
	DaemonSet = "troupe-agent"
	Image     = "troupe.test/troupe:1" // of the agent, which Apply uses
)

// Cluster is a cluster with the agent as a DaemonSet. A copy with another T is for a part of a
// test.
type Cluster struct {
	*testing.T
	*controlplane.Plane
	Nodes   []*node.Node
	Program string // path of the agent
}

// RolledOut waits until each node has one pod, of the latest template and Ready, and returns the
// pods by node.
func (c *Cluster) RolledOut() (pods []corev1.Pod) {
	c.Helper()
	controlplane.Eventually(c, "DaemonSet rolled out", func() string {
		object, err := c.Admin.AppsV1().DaemonSets(Namespace).Get(context.Background(), DaemonSet, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		s := object.Status
		want := int32(len(c.Nodes))
		if s.ObservedGeneration != object.Generation || s.DesiredNumberScheduled != want || s.UpdatedNumberScheduled != want || s.NumberReady != want {
			return fmt.Sprintf("generation %d, status %+v; %s", object.Generation, s, c.Said())
		}
		pods = nil
		for i := range c.Nodes {
			pod, problem := c.Pod(i)
			if problem != "" {
				return problem
			}
			if !Ready(pod) {
				return pod.Name + " is not Ready"
			}
			pods = append(pods, *pod)
		}
		return ""
	})
	return pods
}

// Pod returns the only pod of the agent on a node, or what is wrong.
func (c *Cluster) Pod(on int) (*corev1.Pod, string) {
	list, err := c.Admin.CoreV1().Pods(Namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + c.Nodes[on].Name})
	switch {
	case err != nil:
		return nil, err.Error()
	case len(list.Items) != 1:
		return nil, fmt.Sprintf("%s has %d pods of the agent", c.Nodes[on].Name, len(list.Items))
	case list.Items[0].DeletionTimestamp != nil || len(list.Items[0].Status.ContainerStatuses) != 1:
		return nil, fmt.Sprintf("the pod of %s has not started, or stops: %+v", c.Nodes[on].Name, list.Items[0].Status)
	}
	return &list.Items[0], ""
}

// Ready reports whether the pod is Ready.
func Ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Said is what the agents say of their readiness, for a test that fails.
func (c *Cluster) Said() (all string) {
	for i := range c.Nodes {
		all += c.Nodes[i].Name + ": " + c.Get(i, "/readyz?verbose", nil) + "\n"
	}
	return all
}

// Get asks the agent of a node and decodes the answer into v, or returns what went wrong.
func (c *Cluster) Get(on int, path string, v any) string {
	return controlplane.Get(c.Nodes[on].Client(), "http://127.0.0.1:9990"+path, v)
}

// Logs shows, if the test has failed, the end of the logs of agent and VPP, the network of the nodes
// and all warnings.
func (c *Cluster) Logs() {
	if !c.Failed() {
		return
	}
	for _, n := range c.Nodes {
		out, _ := n.Try("sh", "-c", "tail -n 20 /var/log/pods/*/agent/*.log /var/log/pods/example-cni_*/*/*.log; ip address; ip route")
		c.Logf("%s: %s", n.Name, out)
	}
	events, err := c.Admin.CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			c.Logf("event: %s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}
