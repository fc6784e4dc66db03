package podforward

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/troupe-vpp/troupe/kube/outbound"
)

// Namespace is the namespace of the agents in the manifests, and selector the label of their pods.
const (
	Namespace = "troupe-system"
	selector  = "app.kubernetes.io/name=troupe-agent"
)

// ErrNoKubeconfig means that nothing says where the API server is.
var ErrNoKubeconfig = errors.New("no kubeconfig: pass --kubeconfig, or set $KUBECONFIG")

// Config says which agent to reach.
type Config struct {
	// Kubeconfig is the path of a file; "" = kubectl's file: $KUBECONFIG, or ~/.kube/config.
	Kubeconfig string
	// Namespace of the agents.
	Namespace string
	// Node is the name of the node, for Find.
	Node string
	// Port of the agent's HTTP server on the loopback of its node.
	Port string
}

// Agent is an agent behind the API server.
type Agent struct {
	// Node is the name of the node.
	Node string
	// Image is the image of the agent there, as the pod names it.
	Image string
	// Problem is why the agent cannot be asked; "" = it can.
	Problem string
	// URL is what the paths of the agent are appended to.
	URL *url.URL
	// Transport connects to the agent, whatever the URL, and adds no credentials.
	Transport http.RoundTripper
}

// Find returns the agent of a node.
func Find(ctx context.Context, config Config) (*Agent, error) {
	agents, err := list(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("find the agent of node %s in namespace %s: %w", config.Node, config.Namespace, err)
	}
	for i := range agents {
		if agents[i].Problem == "" {
			return &agents[i], nil
		}
	}
	return nil, fmt.Errorf("find the agent of node %s in namespace %s: no pod with the label %s runs there", config.Node, config.Namespace, selector)
}

// All returns the agents of all nodes, one for each node, ordered by node. A node whose agent does
// not run has one with a Problem. Config.Node is not used.
func All(ctx context.Context, config Config) ([]Agent, error) {
	config.Node = ""
	agents, err := list(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("find the agents in namespace %s: %w", config.Namespace, err)
	}
	if len(agents) == 0 {
		return nil, fmt.Errorf("find the agents in namespace %s: no pod with the label %s", config.Namespace, selector)
	}
	// of the pods of a node the one that runs is first
	slices.SortStableFunc(agents, func(a, b Agent) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Problem, b.Problem))
	})
	return slices.CompactFunc(agents, func(a, b Agent) bool { return a.Node == b.Node && a.Node != "" }), nil
}

// list returns an agent for each pod, of one node or of all.
func list(ctx context.Context, config Config) ([]Agent, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = config.Kubeconfig
	rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoKubeconfig
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	rc.NextProtos = []string{"http/1.1"}    // HTTP/2 has no upgrade of a connection
	transport, err := rest.TransportFor(rc) // a client of rest may have none
	if err != nil {
		return nil, fmt.Errorf("make client of the API server: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, fmt.Errorf("make client of the API server: %w", err)
	}
	of := base.JoinPath("api/v1/namespaces", config.Namespace, "pods")
	client := outbound.Client(of, transport, 0)
	pods, err := podsOf(ctx, client, of, config.Node)
	if err != nil {
		return nil, err
	}
	agents, at := make([]Agent, len(pods)), &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", config.Port)}
	for i := range pods {
		p := &pods[i]
		agents[i] = Agent{
			Node: p.Spec.NodeName, Image: imageOf(p), Problem: problemOf(p), Transport: forwarded(client, of.JoinPath(p.Name, "portforward"), config.Port),
			URL: at,
		}
	}
	return agents, nil
}

// imageOf returns the image of the first container; "" where a pod has none.
func imageOf(p *corev1.Pod) string {
	if len(p.Spec.Containers) == 0 {
		return ""
	}
	return p.Spec.Containers[0].Image
}

// problemOf says why a pod cannot be asked; "" = it runs.
func problemOf(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "pod " + p.Name + " is being deleted"
	}
	if p.Status.Phase == corev1.PodRunning {
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				return "pod " + p.Name + ": " + w.Reason
			}
		}
		return ""
	}
	return "pod " + p.Name + " is " + string(p.Status.Phase)
}

// Limits of answers of the API server, in bytes: a pod takes about 8 KB.
const (
	mostPods   = 64 << 20
	mostStatus = 4 << 10 // may come from a kubelet
)

// podsOf returns the pods of the agents, on one node or on all.
func podsOf(ctx context.Context, client *http.Client, pods *url.URL, node string) ([]corev1.Pod, error) {
	query := url.Values{"labelSelector": {selector}}
	if node != "" {
		query.Set("fieldSelector", fields.OneTermEqualSelector("spec.nodeName", node).String())
	}
	asked := *pods
	asked.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response)
	}
	// all: its end is no abort for the API server
	content, err := io.ReadAll(io.LimitReader(response.Body, mostPods))
	if err != nil {
		return nil, err
	}
	var found corev1.PodList
	if err := json.Unmarshal(content, &found); err != nil {
		return nil, fmt.Errorf("decode the answer of the API server: %w", err)
	}
	return found.Items, nil
}

// refusal returns the error in an answer of the API server, which names a missing right.
func refusal(response *http.Response) error {
	var why metav1.Status
	if json.NewDecoder(io.LimitReader(response.Body, mostStatus)).Decode(&why) != nil || why.Message == "" {
		why.Message = response.Status
	}
	return errors.New(why.Message)
}
