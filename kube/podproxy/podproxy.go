package podproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Namespace is the namespace of the agents in the manifests, and selector the label of their pods.
const (
	Namespace = "troupe-system"
	selector  = "app.kubernetes.io/name=troupe-agent"
)

// Config says which agent to reach.
type Config struct {
	// Kubeconfig is the path of a file; "" = kubectl's file: $KUBECONFIG, or ~/.kube/config.
	Kubeconfig string
	// Namespace of the agents.
	Namespace string
	// Node is the name of the node.
	Node string
	// Port of the agent's HTTP server.
	Port string
}

// Agent is an agent behind the proxy.
type Agent struct {
	// URL is the prefix of all paths of the agent.
	URL string
	// Transport sends requests with the credentials of the user.
	Transport http.RoundTripper
}

// Find returns the agent of a node.
func Find(ctx context.Context, config Config) (*Agent, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = config.Kubeconfig
	rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, fmt.Errorf("make client of the API server: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, fmt.Errorf("make client of the API server: %w", err)
	}
	pods := base.JoinPath("api/v1/namespaces", config.Namespace, "pods")
	pod, err := podOf(ctx, client, pods, config.Node)
	if err != nil {
		return nil, fmt.Errorf("find the agent of node %s in namespace %s: %w", config.Node, config.Namespace, err)
	}
	return &Agent{URL: pods.JoinPath(net.JoinHostPort(pod, config.Port), "proxy").String(), Transport: &toLocalhost{client.Transport, base}}, nil
}

// mostPods limits the answer of the API server, in bytes. A node has one agent, or two during an
// update.
const mostPods = 4 << 20

// podOf returns the name of the pod of the agent on a node.
func podOf(ctx context.Context, client *http.Client, pods *url.URL, node string) (string, error) {
	asked := *pods
	asked.RawQuery = url.Values{"labelSelector": {selector}, "fieldSelector": {fields.OneTermEqualSelector("spec.nodeName", node).String()}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostPods))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		var why metav1.Status
		if json.Unmarshal(content, &why) != nil || why.Message == "" {
			why.Message = response.Status
		}
		return "", errors.New(why.Message)
	}
	var list corev1.PodList
	if err := json.Unmarshal(content, &list); err != nil {
		return "", fmt.Errorf("decode the answer of the API server: %w", err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			return p.Name, nil
		}
	}
	return "", fmt.Errorf("no pod with the label %s runs there", selector)
}

// toLocalhost sets the host of requests to localhost if the API server has a host name. The proxy
// passes the host on, and the agent refuses host names that are not its own.
type toLocalhost struct {
	next http.RoundTripper
	base *url.URL
}

// RoundTrip satisfies http.RoundTripper.
func (t *toLocalhost) RoundTrip(r *http.Request) (*http.Response, error) {
	if net.ParseIP(t.base.Hostname()) == nil {
		r = r.Clone(r.Context())
		r.Host = "localhost"
	}
	return t.next.RoundTrip(r)
}
