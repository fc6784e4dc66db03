package daemonset_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
	"github.com/troupe-vpp/troupe/test/stage"
)

// both are the two nodes.
var both = []int{0, 1}

// start: one pod on each node, which has never been restarted, on the network of the node.
func start(c *cluster) {
	for i, pod := range c.RolledOut() {
		if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
			c.Errorf("%s has been restarted %d times", pod.Name, n)
		}
		if pod.Status.PodIP != c.Nodes[i].Address.String() {
			c.Errorf("%s has address %s, want that of %s, %s", pod.Name, pod.Status.PodIP, c.Nodes[i].Name, c.Nodes[i].Address)
		}
	}
}

// realPods: a service of pods that the kubelets run is in VPP of both nodes, and follows the pods.
func realPods(c *cluster) {
	c.Namespace("shop")
	vip := c.service("web")
	first := c.runPod("web", "a", 0)
	c.rows("shop/web", both, row(vip, first))
	second := c.runPod("web", "b", 1)
	c.rows("shop/web", both, row(vip, first, second))
	c.removePod("a")
	c.rows("shop/web", both, row(vip, second))
	for command, want := range map[string]string{
		"troupe get services -o wide":      `(?m)^shop/web +\S+ +served +in-sync +1 +1 +1 `,
		"troupe explain shop/web":          `(?m)^` + regexp.QuoteMeta(vip) + `:80/TCP +clusterIP +any +forward +\S+:8080 +as wanted$`,
		"troupe actors tree":               ` shop~web +service +(idle|running) `,
		"troupe diff":                      `nat44 +VPP is in the desired state`,
		"troupe get services --address no": "", // fails
	} {
		out, err := c.inside(0, strings.Fields(command)...)
		if (err != nil) != (want == "") || !regexp.MustCompile(want).MatchString(out) {
			c.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// inside runs a command in the pod of the agent of a node.
func (c *cluster) inside(on int, command ...string) (string, error) {
	c.Helper()
	return c.exec(namespace, c.RolledOut()[on].Name, command...)
}

// exec runs a command in a pod through the API server and the kubelet, as kubectl exec does.
func (c *cluster) exec(namespace, pod string, command ...string) (string, error) {
	c.Helper()
	request := c.Admin.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.AdminConfig(), http.MethodGet, request.URL().String())
	if err != nil {
		c.Fatalf("prepare exec: %v", err)
	}
	var stdout, stderr strings.Builder
	err = executor.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	return stdout.String() + stderr.String(), err
}

// service creates a service of TCP port 80 for the pods app=NAME in namespace shop, and returns its
// cluster IP.
func (c *cluster) service(name string) string {
	c.Helper()
	made, err := c.Admin.CoreV1().Services("shop").Create(context.Background(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.Fatalf("create service %s: %v", name, err)
	}
	return made.Spec.ClusterIP
}

// runPod runs a pod app=APP that answers with its name, waits until it does, and returns its
// address. More arguments of the program may follow.
func (c *cluster) runPod(app, name string, on int, more ...string) (address string) {
	c.Helper()
	pods := c.Admin.CoreV1().Pods("shop")
	grace := int64(1)
	controlplane.Eventually(c, "service account of namespace shop", func() string {
		_, err := pods.Create(context.Background(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
			Spec: corev1.PodSpec{
				NodeName: c.Nodes[on].Name, TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{
					Name: "c", Image: node.PodImage, Args: append([]string{":8080"}, more...), ImagePullPolicy: corev1.PullNever,
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	controlplane.Eventually(c, "pod "+name+" Ready", func() string {
		pod, err := pods.Get(context.Background(), name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err.Error()
		case !stage.Ready(pod):
			return fmt.Sprintf("%+v", pod.Status)
		}
		address = pod.Status.PodIP
		return ""
	})
	if answer, err := ask(c.Nodes[on], address+":8080"); err != nil || answer != name {
		c.Errorf("pod %s answers %q, %v", name, answer, err)
	}
	return address
}

// removePod deletes a pod and waits until the kubelet has stopped it.
func (c *cluster) removePod(name string) {
	c.Helper()
	pods := c.Admin.CoreV1().Pods("shop")
	if err := pods.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		c.Fatalf("delete pod %s: %v", name, err)
	}
	controlplane.Eventually(c, "pod "+name+" gone", func() string {
		if pod, err := pods.Get(context.Background(), name, metav1.GetOptions{}); err == nil {
			return fmt.Sprintf("%+v", pod.Status)
		}
		return ""
	})
}

// ask connects from a node and returns the line that it gets.
func ask(from *node.Node, address string) (string, error) {
	connection, err := from.Dial(address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	line, err := io.ReadAll(connection)
	return strings.TrimSpace(string(line)), err
}

// row is the row of a service of these pods.
func row(vip string, pods ...string) string {
	var locals []string
	for _, pod := range pods {
		locals = append(locals, net.JoinHostPort(pod, "8080"))
	}
	return vip + ":80/TCP -> " + strings.Join(locals, ",")
}
