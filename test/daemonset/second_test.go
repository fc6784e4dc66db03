package daemonset_test

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// secondAgent: another agent on the node of an agent ends, says what the first one has, and leaves
// the first one and its VPP alone. This holds also where its ports and its state are its own.
func secondAgent(c *cluster) {
	before, rows, count := c.RolledOut(), c.mustRows("shop/web"), c.counted(0)
	for _, second := range []struct {
		name string
		want []string
		with func(*corev1.PodSpec)
	}{
		{"same-data", []string{"dataDir: another agent has " + state + ": "}, func(*corev1.PodSpec) {}},
		{"other-data", []string{"vpp.apiSocket: another agent programs the VPP at /run/vpp/api.sock: "}, func(spec *corev1.PodSpec) {
			agent := &spec.Containers[0]
			agent.Args = append(agent.Args, "--http-address=127.0.0.1:9991", "--healthz-bind-address=127.0.0.1:9992")
			for i, volume := range spec.Volumes {
				if volume.Name == "state" {
					spec.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
				}
			}
		}},
	} {
		ended := c.ended(second.name, second.with)
		for _, want := range append(second.want, "(agent of node "+c.Nodes[0].Name+", process ") {
			if ended.ExitCode != 1 || !strings.Contains(ended.Message, want) {
				c.Errorf("%s: ended with %d, %s; want 1 and %q", second.name, ended.ExitCode, ended.Message, want)
			}
		}
		c.same(0, before[0], c.RolledOut()[0], 0)
		c.rows("shop/web", both, rows...)
		if now := c.counted(0); now != count {
			c.Errorf("%s: VPP was changed: %v, before %v", second.name, now, count)
		}
	}
}

// ended runs a pod of the DaemonSet's template on the first node until its agent has ended, removes
// it, and returns how the agent has ended.
func (c *cluster) ended(name string, with func(*corev1.PodSpec)) (end corev1.ContainerStateTerminated) {
	c.Helper()
	set, err := c.Admin.AppsV1().DaemonSets(namespace).Get(context.Background(), daemonSet, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	pods := c.Admin.CoreV1().Pods(namespace)
	if _, err := pods.Create(context.Background(), c.extraPod(set, name, with), metav1.CreateOptions{}); err != nil {
		c.Fatalf("create pod %s: %v", name, err)
	}
	controlplane.Eventually(c, "agent of pod "+name+" ended", func() string {
		pod, err := pods.Get(context.Background(), name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err.Error()
		case len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil:
			return fmt.Sprintf("%+v", pod.Status)
		}
		end = *pod.Status.ContainerStatuses[0].State.Terminated
		return ""
	})
	if err := pods.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		c.Fatalf("delete pod %s: %v", name, err)
	}
	controlplane.Eventually(c, "pod "+name+" gone", func() string {
		if pod, err := pods.Get(context.Background(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v, %+v", err, pod.Status)
		}
		return ""
	})
	return end
}

// extraPod is a pod of the DaemonSet's template on the first node, which is not restarted and does
// not belong to the DaemonSet. It has no probes, because at their port the first agent answers.
func (c *cluster) extraPod(set *appsv1.DaemonSet, name string, with func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Spec.NodeName, pod.Spec.RestartPolicy = c.Nodes[0].Name, corev1.RestartPolicyNever
	agent := &pod.Spec.Containers[0]
	agent.StartupProbe, agent.LivenessProbe, agent.ReadinessProbe = nil, nil, nil
	with(&pod.Spec)
	return pod
}
