package fleet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/check"
	"github.com/troupe-vpp/troupe/kube/informers"
)

// kubernetes checks the API server, the rights there and the networks of the cluster.
func (c *checks) kubernetes(ctx context.Context, kubeconfig string) {
	client, err := c.client(kubeconfig)
	if err != nil {
		c.add(checkFailed, "API server", err.Error(), "set kubernetes.apiServer to the control plane endpoint, or pass --kubeconfig")
		return
	}
	v, err := client.Version(ctx)
	if err != nil {
		c.add(checkFailed, "API server", err.Error(), "the address must be one that a node reaches without any service: kubernetes.apiServer")
		return
	}
	if check.TooOld(v.GitVersion) {
		c.add(checkFailed, "API server", "version "+v.GitVersion, "the agent needs Kubernetes "+check.Oldest+" or later")
		return
	}
	c.add(checkOK, "API server", "version "+v.GitVersion, "")
	const rights = "deploy/kubernetes/base/rbac.yaml has the rights of the agent"
	granted, nodes := check.Rights(ctx, client, len(c.cfg.Services.ServiceCIDRs) == 0)
	for _, r := range granted {
		c.result("right to list "+r.Resource, "granted", r.Err, rights)
	}
	if nodes != nil {
		c.networks(nodes)
	}
	c.kubeProxy(check.KubeProxy(ctx, client))
}

// kubeProxy says what a kube-proxy does beside the agent. Both listen on the port of the node's
// health, unless the configuration leaves it to kube-proxy.
func (c *checks) kubeProxy(nodes int) {
	if nodes == 0 {
		return
	}
	found := fmt.Sprintf("pods on %d nodes; it may stay: the agent serves what enters VPP, kube-proxy serves processes of the host and pods in the kernel", nodes)
	if c.cfg.API.HealthzBindAddress == "" {
		c.add(checkOK, "kube-proxy", found, "")
		return
	}
	c.add(checkWarn, "kube-proxy", found, `beside it set api.healthzBindAddress: ""; without it: docs/operations.md, "Removing kube-proxy"`)
}

// client makes a client in the same way as the agent. Outside of a pod, without a kubeconfig in the
// configuration, it uses the kubeconfig of kubectl.
func (c *checks) client(kubeconfig string) (*apiserver.Client, error) {
	file := cmp.Or(kubeconfig, c.cfg.Kubernetes.Kubeconfig)
	if file == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		home, _ := os.UserHomeDir()
		file = cmp.Or(os.Getenv("KUBECONFIG"), filepath.Join(home, ".kube", "config"))
	}
	serving, err := c.cfg.Services.Serving()
	if err != nil {
		return nil, err
	}
	return informers.NewClient(informers.ClientConfig{Kubeconfig: file, Servers: c.cfg.Kubernetes.APIServer, ServiceCIDRs: serving.ServiceCIDRs, QPS: 50, Burst: 50})
}

// networks compares the networks of the configuration with the nodes.
func (c *checks) networks(nodes []check.Node) {
	name := c.cfg.NodeName
	if name != "" && !slices.ContainsFunc(nodes, func(n check.Node) bool { return n.Name == name }) {
		c.add(checkFailed, "node "+name, "the cluster has no such Node", "set nodeName to the name of the Node")
	}
	if len(c.cfg.Services.ClusterCIDRs) == 0 {
		c.add(checkWarn, "pod networks", "services.clusterCIDRs is empty: clients in pods of other nodes count as outside of the cluster", "set services.clusterCIDRs")
	}
	found := check.Compare(nodes, c.cfg.Services.ClusterCIDRs, c.cfg.Services.ServiceCIDRs)
	c.many("pod networks are inside of services.clusterCIDRs", found.Outside, "add them to services.clusterCIDRs")
	c.many("pod networks and services.serviceCIDRs are apart", found.Overlap, "correct services.clusterCIDRs and services.serviceCIDRs")
	if len(found.Without) > 0 && c.cfg.NAT44.LoopbackIP == "" {
		c.add(checkWarn, "pod networks of the nodes", "none: "+first(found.Without), "without spec.podCIDRs set nat44.loopbackIP on each node")
	}
}

// many adds a line, which fails if there are exceptions.
func (c *checks) many(check string, exceptions []string, do string) {
	if len(exceptions) > 0 {
		c.add(checkFailed, check, "not "+first(exceptions), do)
		return
	}
	c.add(checkOK, check, "", "")
}

// first lists the first few items, and the number of the others.
func first(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
