package check

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// Marks of the namespace of a run. The next run deletes one whose deadline has passed, because a
// process that was killed has left it.
const (
	managedBy, manager = "app.kubernetes.io/managed-by", "troupe-check"
	deadline           = "troupe.dev/deadline" // annotation, RFC 3339
)

// longest is the longest time of a run: its pods end then, and its namespace may be deleted.
const longest = 10 * time.Minute

// namespaceObject returns the namespace of one run; the API server completes its name.
func namespaceObject(now time.Time) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "troupe-check-", Labels: map[string]string{managedBy: manager}, Annotations: map[string]string{deadline: now.Add(longest).UTC().Format(time.RFC3339)},
	}}
}

// leftBehind reports whether the run of a namespace must have ended.
func leftBehind(n *corev1.Namespace, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, n.Annotations[deadline])
	return n.Labels[managedBy] == manager && n.DeletionTimestamp == nil && err == nil && now.After(end)
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
	never, user, grace, most := false, int64(65532), int64(1), int64(longest/time.Second)
	always := !never
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: task + "-" + node, Labels: map[string]string{label: task}},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSDefault, TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &most,
			AutomountServiceAccountToken: &never, EnableServiceLinks: &never,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: task, Image: image, Args: append([]string{"packets", task}, arguments...), ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				},
				SecurityContext: &corev1.SecurityContext{
					RunAsNonRoot: &always, RunAsUser: &user, AllowPrivilegeEscalation: &never, ReadOnlyRootFilesystem: &always,
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
			}},
		},
	}
}
