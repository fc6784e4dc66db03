package agent_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// service creates a ClusterIP service of TCP port 80 for the pods app=NAME, and returns its cluster
// IP.
func (n *node) service(namespace, name string) string {
	n.Helper()
	made, err := n.Admin.CoreV1().Services(namespace).Create(n.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatalf("create service %s: %v", name, err)
	}
	return made.Spec.ClusterIP
}

// change updates a service.
func (n *node) change(namespace, name string, with func(*corev1.Service)) *corev1.Service {
	n.Helper()
	object, err := n.Admin.CoreV1().Services(namespace).Get(n.Context(), name, metav1.GetOptions{})
	if err == nil {
		with(object)
		object, err = n.Admin.CoreV1().Services(namespace).Update(n.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		n.Fatalf("change service %s: %v", name, err)
	}
	return object
}

// drop deletes a service.
func (n *node) drop(namespace, name string) {
	n.Helper()
	if err := n.Admin.CoreV1().Services(namespace).Delete(n.Context(), name, metav1.DeleteOptions{}); err != nil {
		n.Fatalf("delete service %s: %v", name, err)
	}
}

// pod creates a pod app=APP on a node with an address, ready.
func (n *node) pod(namespace, app, name, on, address string) {
	n.Helper()
	made, err := n.Admin.CoreV1().Pods(namespace).Create(n.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatalf("create pod %s: %v", name, err)
	}
	made.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	n.status(made, corev1.ConditionTrue)
}

// readiness sets the readiness of a pod, as a kubelet does after a probe.
func (n *node) readiness(namespace, name string, ready corev1.ConditionStatus) {
	n.Helper()
	object, err := n.Admin.CoreV1().Pods(namespace).Get(n.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.Fatalf("get pod %s: %v", name, err)
	}
	n.status(object, ready)
}

// status writes the status of a pod.
func (n *node) status(pod *corev1.Pod, ready corev1.ConditionStatus) {
	n.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if _, err := n.Admin.CoreV1().Pods(pod.Namespace).UpdateStatus(n.Context(), pod, metav1.UpdateOptions{}); err != nil {
		n.Fatalf("update status of pod %s: %v", pod.Name, err)
	}
}

// remove deletes a pod after a grace period in seconds; without a kubelet, one with a period above
// 0 stays terminating.
func (n *node) remove(namespace, name string, grace int64) {
	n.Helper()
	if err := n.Admin.CoreV1().Pods(namespace).Delete(n.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		n.Fatalf("delete pod %s: %v", name, err)
	}
}

// row is the row of a TCP address.
func row(address string, port int32, locals string) string {
	return fmt.Sprintf("%s:%d/TCP -> %s", address, port, locals)
}
