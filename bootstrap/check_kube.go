package bootstrap

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/informers"
)

// lister lists objects of one kind.
type lister interface {
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

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
	c.add(checkOK, "API server", "version "+v.GitVersion, "")
	const rights = "deploy/kubernetes/base/rbac.yaml has the rights of the agent"
	resources := c.resources(client)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		_, err := resources[name].ListWithContext(ctx, metav1.ListOptions{Limit: 1})
		c.result("right to list "+name, "granted", err, rights)
	}
	list, err := client.Nodes.ListWithContext(ctx, metav1.ListOptions{})
	if !c.result("right to list nodes", "granted", err, rights) {
		return
	}
	if nodes, ok := list.(*corev1.NodeList); ok {
		c.networks(nodes.Items)
	}
}

// client makes a client as the agent does. Outside of a pod and without a kubeconfig in the
// configuration it uses that of kubectl.
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
func (c *checks) networks(nodes []corev1.Node) {
	name := c.cfg.NodeName
	if name != "" {
		found := slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
		if !found {
			c.add(checkFailed, "node "+name, "the cluster has no such Node", "set nodeName to the name of the Node")
		}
	}
	cluster, service := prefixes(c.cfg.Services.ClusterCIDRs), prefixes(c.cfg.Services.ServiceCIDRs)
	if len(cluster) == 0 {
		c.add(checkWarn, "pod networks", "services.clusterCIDRs is empty: clients in pods of other nodes count as outside of the cluster", "set services.clusterCIDRs")
	}
	var outside, without, overlap []string
	for i := range nodes {
		n := &nodes[i]
		if len(n.Spec.PodCIDRs) == 0 {
			without = append(without, n.Name)
		}
		for _, pods := range prefixes(n.Spec.PodCIDRs) {
			inside := func(p netip.Prefix) bool { return p.Contains(pods.Addr()) && p.Bits() <= pods.Bits() }
			sameFamily := slices.ContainsFunc(cluster, func(p netip.Prefix) bool { return p.Addr().Is4() == pods.Addr().Is4() })
			if sameFamily && !slices.ContainsFunc(cluster, inside) {
				outside = append(outside, n.Name+" "+pods.String())
			}
			if slices.ContainsFunc(service, pods.Overlaps) {
				overlap = append(overlap, n.Name+" "+pods.String())
			}
		}
	}
	for _, p := range cluster {
		if slices.ContainsFunc(service, p.Overlaps) {
			overlap = append(overlap, "services.clusterCIDRs "+p.String())
		}
	}
	c.many("pod networks are inside of services.clusterCIDRs", outside, "add them to services.clusterCIDRs")
	c.many("pod networks and services.serviceCIDRs are apart", overlap, "correct services.clusterCIDRs and services.serviceCIDRs")
	if len(without) > 0 && c.cfg.NAT44.LoopbackIP == "" {
		c.add(checkWarn, "pod networks of the nodes", first(without), "without spec.podCIDRs set nat44.loopbackIP on each node")
	}
}

// many adds a line that fails where there are exceptions.
func (c *checks) many(check string, exceptions []string, do string) {
	if len(exceptions) > 0 {
		c.add(checkFailed, check, "not "+first(exceptions), do)
		return
	}
	c.add(checkOK, check, "", "")
}

// first are the first ones of a list, and how many more there are.
func first(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// prefixes are the networks that can be read; the validation says which cannot.
func prefixes(texts []string) (out []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}
