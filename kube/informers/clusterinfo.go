package informers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/troupe-vpp/troupe/kube/outbound"
)

// clusterInfo is the path of the ConfigMap in which kubeadm has the address of the API server.
const clusterInfo = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// largestClusterInfo is a limit in bytes; kubeadm's is 2 KiB.
const largestClusterInfo = 1 << 20

// PublishedServer returns the address of the API server in kube-public/cluster-info, a URL. It asks
// at the address of the configuration, also if that is a cluster IP, because another program may
// serve the cluster IP before this agent does.
func PublishedServer(ctx context.Context, config ClientConfig) (string, error) {
	config.AllowClusterIP = true
	rc, err := restConfig(config)
	if err != nil {
		return "", err
	}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return "", fmt.Errorf("read address of the API server %s: %w", rc.Host, err)
	}
	transport, err := rest.TransportFor(rc)
	if err != nil {
		return "", fmt.Errorf("make HTTP client of the API server %s: %w", rc.Host, err)
	}
	client := outbound.Client(base, transport, rc.Timeout)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(clusterInfo).String(), nil)
	if err != nil {
		return "", fmt.Errorf("ask for kube-public/cluster-info: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("read kube-public/cluster-info: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read kube-public/cluster-info: %s", answer.Status)
	}
	var object corev1.ConfigMap
	if err := json.NewDecoder(io.LimitReader(answer.Body, largestClusterInfo)).Decode(&object); err != nil {
		return "", fmt.Errorf("decode kube-public/cluster-info: %w", err)
	}
	return serverOf(object.Data["kubeconfig"])
}

// serverOf returns the first address in the kubeconfig of cluster-info.
func serverOf(kubeconfig string) (string, error) {
	info, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig in kube-public/cluster-info: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(info.Clusters)) {
		server := info.Clusters[name].Server
		if strings.HasPrefix(server, "https://") {
			return server, nil
		}
	}
	return "", errors.New("kube-public/cluster-info names no server with https://")
}
