package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// bind stands in for the scheduler: it binds each pod of a DaemonSet to the node that its affinity
// names. Other pods name their node themselves.
func bind(ctx context.Context, client kubernetes.Interface, pods cache.SharedIndexInformer) error {
	waiting := make(chan *corev1.Pod, 100)
	go func() {
		for pod := range waiting {
			binding := &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
				Target:     corev1.ObjectReference{Kind: "Node", Name: nodeOf(pod)},
			}
			if err := client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
				fmt.Fprintln(os.Stderr, "controllers: bind pod:", err)
			}
		}
	}()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if pod := object.(*corev1.Pod); pod.Spec.NodeName == "" && nodeOf(pod) != "" {
			waiting <- pod
		}
	}})
	return err
}

// nodeOf is the node that the affinity of the pod names, or "".
func nodeOf(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
