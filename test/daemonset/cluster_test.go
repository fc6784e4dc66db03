package daemonset_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
)

const (
	namespace = "troupe-system" // of the agent
	daemonSet = "troupe-agent"
	image     = "troupe.test/troupe:1"
	nextImage = "troupe.test/troupe:2"
)

// cluster is a cluster of two nodes with a VPP on each, and the agent as a DaemonSet.
type cluster struct {
	*testing.T // of the story
	*controlplane.Plane
	nodes []*node.Node
	third *node.Node      // joins in the last story
	vpp   []*node.Process // by node; simulated

	program string // path of the agent, which is the simulator too
}

// stage starts the cluster and waits until the agent is ready on both nodes.
func stage(t *testing.T) *cluster {
	t.Helper()
	c := bare(t, image)
	for _, n := range c.nodes {
		n.Ctr("images", "tag", image, nextImage)
	}
	c.apply("base", "https://"+c.Address())
	c.rolledOut()
	return c
}

// bare starts the cluster without the agent, of which the nodes have an image of this name.
func bare(t *testing.T, image string) *cluster {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	program, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "troupe.tar")
	if err := build.Image(t.Context(), archive, image); err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, Plane: controlplane.StartForNodes(t, bin), program: program}
	c.nodes, c.third = node.Start(t, c.Plane, archive)
	t.Cleanup(c.logs)
	for _, n := range c.nodes {
		n.Do("mkdir", "-p", "/run/vpp")
		c.vpp = append(c.vpp, simulated(t, n, program))
	}
	return c
}

// simulated starts a simulated VPP on the node, with the sockets and the rights of a real one. It
// has an interface for each of the first addresses that the kubelet gives to pods: an agent whose
// VPP has none of the node's pods is not ready.
func simulated(t *testing.T, n *node.Node, program string) *node.Process {
	t.Helper()
	topology := fmt.Sprintf("interfaces:\n- {name: uplink0, addresses: [%s/24], gateway: 172.31.250.254}\npods:\n", n.Address)
	pod := n.Pods.Addr().Next() // of the bridge
	for i := range 50 {
		pod = pod.Next()
		topology += fmt.Sprintf("- {name: tap%d, address: %s}\n", i, pod)
	}
	n.Write("/run/vpp-topology.yaml", topology)
	return n.Spawn(program, "simulator", "--api-socket", "/run/vpp/api.sock", "--stats-socket", "/run/vpp/stats.sock", "--topology", "/run/vpp-topology.yaml")
}

// agentOf is the container of the agent.
func agentOf(d *appsv1.DaemonSet) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

// change updates the DaemonSet.
func (c *cluster) change(with func(*appsv1.DaemonSet)) {
	c.Helper()
	sets := c.Admin.AppsV1().DaemonSets(namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := sets.Get(context.Background(), daemonSet, metav1.GetOptions{})
		if err != nil {
			return err
		}
		with(object)
		_, err = sets.Update(context.Background(), object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		c.Fatalf("change DaemonSet: %v", err)
	}
}

// rolledOut waits until each node has one pod, of the latest template and Ready, and returns the
// pods by node.
func (c *cluster) rolledOut() (pods []corev1.Pod) {
	c.Helper()
	controlplane.Eventually(c, "DaemonSet rolled out", func() string {
		object, err := c.Admin.AppsV1().DaemonSets(namespace).Get(context.Background(), daemonSet, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		s := object.Status
		want := int32(len(c.nodes))
		if s.ObservedGeneration != object.Generation || s.DesiredNumberScheduled != want || s.UpdatedNumberScheduled != want || s.NumberReady != want {
			return fmt.Sprintf("generation %d, status %+v; %s", object.Generation, s, c.said())
		}
		pods = nil
		for i := range c.nodes {
			pod, problem := c.pod(i)
			if problem != "" {
				return problem
			}
			if !ready(pod) {
				return pod.Name + " is not Ready"
			}
			pods = append(pods, *pod)
		}
		return ""
	})
	return pods
}

// pod returns the only pod of the agent on a node, or what is wrong.
func (c *cluster) pod(on int) (*corev1.Pod, string) {
	list, err := c.Admin.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + c.nodes[on].Name})
	switch {
	case err != nil:
		return nil, err.Error()
	case len(list.Items) != 1:
		return nil, fmt.Sprintf("%s has %d pods of the agent", c.nodes[on].Name, len(list.Items))
	case list.Items[0].DeletionTimestamp != nil || len(list.Items[0].Status.ContainerStatuses) != 1:
		return nil, fmt.Sprintf("the pod of %s has not started, or stops: %+v", c.nodes[on].Name, list.Items[0].Status)
	}
	return &list.Items[0], ""
}

// ready reports whether the pod is Ready.
func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// said is what the agents say of their readiness, for a test that fails.
func (c *cluster) said() (all string) {
	for i := range c.nodes {
		all += c.nodes[i].Name + ": " + c.get(i, "/readyz?verbose", nil) + "\n"
	}
	return all
}

// logs shows the end of the agents' logs of a test that has failed.
func (c *cluster) logs() {
	if !c.Failed() {
		return
	}
	for _, n := range c.nodes {
		out, _ := n.Try("sh", "-c", "tail -n 12 /var/log/pods/*/agent/*.log")
		c.Logf("%s: logs of the agent:\n%s", n.Name, out)
	}
}
