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
	"github.com/troupe-vpp/troupe/test/stage"
)

const (
	namespace = stage.Namespace
	daemonSet = stage.DaemonSet
	image     = stage.Image
	nextImage = "troupe.test/troupe:2"
)

// cluster is a cluster of two nodes with a VPP on each, and the agent as a DaemonSet.
type cluster struct {
	stage.Cluster                 // T is that of the story
	third         *node.Node      // joins in the last story
	vpp           []*node.Process // by node; simulated
}

// begun starts the cluster and waits until the agent is ready on both nodes.
func begun(t *testing.T) *cluster {
	t.Helper()
	c := bare(t, image)
	for _, n := range c.Nodes {
		n.Ctr("images", "tag", image, nextImage)
	}
	c.Apply("base", "https://"+c.Address())
	c.RolledOut()
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
	c := &cluster{Cluster: stage.Cluster{T: t, Plane: controlplane.StartForNodes(t, bin), Program: program}}
	c.Nodes, c.third = node.Start(t, c.Plane, archive)
	t.Cleanup(c.Logs)
	for _, n := range c.Nodes {
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
