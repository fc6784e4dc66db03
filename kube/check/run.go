package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
)

const (
	// interval is the time between two looks at the state of the cluster.
	interval = 500 * time.Millisecond
	// forDeletion is the time that the deletion of the namespace may take to be accepted.
	forDeletion = 10 * time.Second
	// mostPeers is the largest number of nodes whose addresses one node asks: with more nodes
	// each asks that many, and each is asked by that many.
	mostPeers = 30
	// mostLog limits the log of a pod, in bytes.
	mostLog = 1 << 20
)

// Kinds of addresses.
const (
	Pods       = "pods"
	ClusterIPs = "cluster IPs"
	NodePorts  = "node ports"
)

// Target is an address that a pod of each node asks.
type Target struct {
	// Kind is Pods, ClusterIPs or NodePorts.
	Kind string
	// Address is HOST:PORT.
	Address string
	// Node is the node of the pod that has to answer; "" = any node of the run.
	Node string
}

// Result is what a pod of a node got from one target.
type Result struct {
	// From is the node of the pod that asked.
	From string
	Target
	Talk
}

// Options say where packets go.
type Options struct {
	// Core sends requests to the core group of the API server, as the user.
	Core rest.Interface
	// Image of the agent, which the nodes have.
	Image string
	// Nodes are their names.
	Nodes []string
	// NodePortsAt returns at which of its addresses a node serves node ports.
	NodePortsAt func(addresses []string) []string
	// Times is the number of connections from each pod to each address.
	Times int
}

// run is one run.
type run struct {
	*Options
	namespace string
}

// Run sends the packets. It returns a result for each target from each node, in the order of Nodes.
// First it deletes what runs that were killed have left.
func Run(ctx context.Context, options *Options) (results []Result, err error) {
	if err := sweep(ctx, options.Core, time.Now()); err != nil {
		return nil, err
	}
	made := &corev1.Namespace{}
	if err := options.Core.Post().Resource("namespaces").Body(namespaceObject(time.Now())).Do(ctx).Into(made); err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	r := &run{options, made.Name}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forDeletion)
		defer cancel()
		if gone := options.Core.Delete().Resource("namespaces").Name(r.namespace).Do(ctx).Error(); gone != nil {
			err = errors.Join(err, fmt.Errorf("delete namespace %s: %w", r.namespace, gone))
		}
	}()
	service := &corev1.Service{}
	if err := r.create(ctx, "services", serviceObject(), service); err != nil {
		return nil, err
	}
	targets := map[string][]Target{}
	if err := r.answering(ctx, targets); err != nil {
		return nil, err
	}
	if err := r.served(ctx, &service.Spec, targets); err != nil {
		return nil, err
	}
	return r.ask(ctx, targets)
}

// sweep deletes the namespaces of runs that must have ended.
func sweep(ctx context.Context, core rest.Interface, now time.Time) error {
	left := &corev1.NamespaceList{}
	if err := core.Get().Resource("namespaces").Param("labelSelector", managedBy+"="+manager).Do(ctx).Into(left); err != nil {
		return fmt.Errorf("list namespaces of earlier runs: %w", err)
	}
	for i := range left.Items {
		if n := &left.Items[i]; leftBehind(n, now) {
			if err := core.Delete().Resource("namespaces").Name(n.Name).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete namespace %s of an earlier run: %w", n.Name, err)
			}
		}
	}
	return nil
}

// targetsOf returns what a node asks, by kind: the cluster IPs, and the addresses of itself and of
// the next nodes.
func (r *run) targetsOf(node int, targets map[string][]Target) (asked []Target) {
	peers := []string{everyNode}
	for k := range min(len(r.Nodes), mostPeers) {
		peers = append(peers, r.Nodes[(node+k)%len(r.Nodes)])
	}
	slices.SortFunc(peers, func(a, b string) int { return cmp.Compare(slices.Index(r.Nodes, a), slices.Index(r.Nodes, b)) })
	for _, kind := range []string{Pods, ClusterIPs, NodePorts} {
		for _, peer := range peers {
			for _, t := range targets[peer] {
				if t.Kind == kind {
					asked = append(asked, t)
				}
			}
		}
	}
	return asked
}

// everyNode is the key of the targets that belong to no node.
const everyNode = ""

// answering starts the pods that answer, and adds their addresses.
func (r *run) answering(ctx context.Context, targets map[string][]Target) error {
	for _, node := range r.Nodes {
		if err := r.create(ctx, "pods", podObject(r.Image, answers, node, node), &corev1.Pod{}); err != nil {
			return err
		}
	}
	for _, node := range r.Nodes {
		pod, err := r.pod(ctx, answers+"-"+node, corev1.PodRunning)
		if err != nil {
			return err
		}
		for _, ip := range pod.Status.PodIPs {
			targets[node] = append(targets[node], Target{Pods, net.JoinHostPort(ip.IP, strconv.Itoa(AnswerPort)), node})
		}
	}
	return nil
}

// served adds the cluster IPs of the service, and its node port at the addresses of the nodes.
func (r *run) served(ctx context.Context, service *corev1.ServiceSpec, targets map[string][]Target) error {
	for _, ip := range service.ClusterIPs {
		targets[everyNode] = append(targets[everyNode], Target{ClusterIPs, net.JoinHostPort(ip, strconv.Itoa(servicePort)), ""})
	}
	for _, name := range r.Nodes {
		node, internal := &corev1.Node{}, []string(nil)
		if err := r.Core.Get().Resource("nodes").Name(name).Do(ctx).Into(node); err != nil {
			return fmt.Errorf("get node %s: %w", name, err)
		}
		for _, a := range node.Status.Addresses {
			served := slices.ContainsFunc(service.ClusterIPs, func(ip string) bool { return strings.Contains(ip, ":") == strings.Contains(a.Address, ":") })
			if a.Type == corev1.NodeInternalIP && served {
				internal = append(internal, a.Address)
			}
		}
		for _, ip := range r.NodePortsAt(internal) {
			targets[name] = append(targets[name], Target{NodePorts, net.JoinHostPort(ip, strconv.Itoa(int(service.Ports[0].NodePort))), ""})
		}
	}
	return nil
}

// ask starts the pods that ask, and reads what they have found.
func (r *run) ask(ctx context.Context, targets map[string][]Target) (results []Result, err error) {
	for i, node := range r.Nodes {
		arguments := []string{strconv.Itoa(r.Times)}
		for _, t := range r.targetsOf(i, targets) {
			arguments = append(arguments, t.Address)
		}
		if err := r.create(ctx, "pods", podObject(r.Image, asks, node, arguments...), &corev1.Pod{}); err != nil {
			return nil, err
		}
	}
	for i, node := range r.Nodes {
		talks, err := r.said(ctx, asks+"-"+node)
		if err != nil {
			return nil, err
		}
		asked := r.targetsOf(i, targets)
		if len(talks) != len(asked) {
			return nil, fmt.Errorf("pod %s has %d results, expected %d", asks+"-"+node, len(talks), len(asked))
		}
		for k, talk := range talks {
			results = append(results, Result{node, asked[k], talk})
		}
	}
	return results, nil
}

// said returns the log of a pod that asks, after its end.
func (r *run) said(ctx context.Context, name string) (talks []Talk, err error) {
	if _, err := r.pod(ctx, name, corev1.PodSucceeded); err != nil {
		return nil, err
	}
	log, err := r.Core.Get().Namespace(r.namespace).Resource("pods").Name(name).SubResource("log").Param("limitBytes", strconv.Itoa(mostLog)).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s: %w", name, err)
	}
	if err := json.Unmarshal(log, &talks); err != nil {
		return nil, fmt.Errorf("decode the log of pod %s: %w", name, err)
	}
	return talks, nil
}

// pod waits until a pod is in a phase, or has failed.
func (r *run) pod(ctx context.Context, name string, phase corev1.PodPhase) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := r.eventually(ctx, "wait for pod "+name, func() error {
		if err := r.Core.Get().Namespace(r.namespace).Resource("pods").Name(name).Do(ctx).Into(pod); err != nil {
			return err
		}
		if pod.Status.Phase == phase || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		for _, c := range pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				return fmt.Errorf("%s: %s", w.Reason, w.Message)
			}
		}
		return fmt.Errorf("it is %s", pod.Status.Phase)
	})
	if err == nil && pod.Status.Phase != phase {
		err = fmt.Errorf("pod %s on node %s has failed: %s", name, pod.Spec.NodeName, cmp.Or(pod.Status.Message, pod.Status.Reason, "its container ended"))
	}
	return pod, err
}

// create creates an object; made is the object as the API server has stored it. While a new
// namespace has no service account yet, the API server forbids pods; create tries again.
func (r *run) create(ctx context.Context, resource string, object, made runtime.Object) error {
	var refused error
	err := r.eventually(ctx, "create "+resource, func() error {
		refused = nil
		err := r.Core.Post().Namespace(r.namespace).Resource(resource).Body(object).Do(ctx).Into(made)
		if err == nil || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "service account") {
			return err
		}
		refused = fmt.Errorf("create %s in namespace %s: %w", resource, r.namespace, err)
		return nil
	})
	return errors.Join(err, refused)
}

// eventually tries again until there is no error, or ctx ends.
func (r *run) eventually(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}

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
