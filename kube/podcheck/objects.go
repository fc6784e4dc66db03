package podcheck

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// Service is the name of the service.
	Service = "answer"
	// AnswerPort is the TCP port of the pods that answer.
	AnswerPort = 8080
	// servicePort is the port of the service at its cluster IPs.
	servicePort = 80
	// label tells pods that answer from pods that ask.
	label         = "app.kubernetes.io/name"
	answers, asks = "answer", "ask"
)

// namespaceObject returns the namespace of one run; the API server completes its name.
func namespaceObject() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "troupe-check-"}}
}

// serviceObject returns the service of all pods that answer, in each family that the cluster has.
func serviceObject() *corev1.Service {
	families := corev1.IPFamilyPolicyPreferDualStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: Service},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: &families, Selector: map[string]string{label: answers},
			Ports: []corev1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(AnswerPort)}},
		},
	}
}

// podObject returns a pod with a task on a node, with the arguments of `troupe packets`. The Pod
// Security level "restricted" admits it. It names its node: a check does not depend on the
// scheduler or on taints.
func podObject(image, task, node string, arguments ...string) *corev1.Pod {
	never, user, grace := false, int64(65532), int64(1)
	always := !never
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: task + "-" + node, Labels: map[string]string{label: task}},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSDefault, TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken: &never, EnableServiceLinks: &never,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: task, Image: image, Args: append([]string{"packets", task}, arguments...), ImagePullPolicy: corev1.PullIfNotPresent,
				SecurityContext: &corev1.SecurityContext{
					RunAsNonRoot: &always, RunAsUser: &user, AllowPrivilegeEscalation: &never, ReadOnlyRootFilesystem: &always,
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
			}},
		},
	}
}
