package check

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/service"
)

// Right is the answer to a list of one kind of objects.
type Right struct {
	// Resource is the name of the kind in rules of RBAC.
	Resource string
	// Err is the reason of a refusal; nil = the right was granted.
	Err error
}

// Node has the name and the pod networks of a Node object.
type Node struct {
	Name     string
	PodCIDRs []string
}

// Rights lists one object of each kind that the agent reads, and all nodes, which it returns.
// serviceCIDRs is true if the agent reads the networks of cluster IPs from the API server.
func Rights(ctx context.Context, client *apiserver.Client, serviceCIDRs bool) (rights []Right, nodes []Node) {
	type kind struct {
		resource string
		lister   cache.ListerWithContext
	}
	kinds := []kind{{"endpointslices", client.EndpointSlices}, {"pods", client.Pods}, {"services", client.Services}}
	if serviceCIDRs {
		kinds = append(kinds, kind{"servicecidrs", client.ServiceCIDRs})
	}
	for _, k := range kinds {
		_, err := k.lister.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
		rights = append(rights, Right{k.resource, err})
	}
	list, err := client.Nodes.ListWithContext(ctx, metav1.ListOptions{})
	if all, ok := list.(*corev1.NodeList); ok && err == nil {
		for i := range all.Items {
			nodes = append(nodes, Node{all.Items[i].Name, all.Items[i].Spec.PodCIDRs})
		}
	}
	return append(rights, Right{"nodes", err}), nodes
}

// Networks lists the networks of the nodes that do not fit the configuration. Each entry is one
// line.
type Networks struct {
	// Outside are pod networks that are not in a cluster CIDR of their family.
	Outside []string
	// Overlap are pod networks and cluster CIDRs that overlap a service CIDR.
	Overlap []string
	// Without are the nodes without a pod network.
	Without []string
}

// Compare compares the pod networks of nodes with the configuration. It leaves out texts that are
// no networks, because the validation of the configuration reports them.
func Compare(nodes []Node, clusterCIDRs, serviceCIDRs []string) (out Networks) {
	cluster, services := service.Networks(clusterCIDRs), service.Networks(serviceCIDRs)
	for i := range nodes {
		n := &nodes[i]
		if len(n.PodCIDRs) == 0 {
			out.Without = append(out.Without, n.Name)
		}
		for _, pods := range service.Networks(n.PodCIDRs) {
			inside := func(p netip.Prefix) bool { return p.Contains(pods.Addr()) && p.Bits() <= pods.Bits() }
			sameFamily := func(p netip.Prefix) bool { return p.Addr().Is4() == pods.Addr().Is4() }
			if slices.ContainsFunc(cluster, sameFamily) && !slices.ContainsFunc(cluster, inside) {
				out.Outside = append(out.Outside, n.Name+" "+pods.String())
			}
			if slices.ContainsFunc(services, pods.Overlaps) {
				out.Overlap = append(out.Overlap, n.Name+" "+pods.String())
			}
		}
	}
	for _, p := range cluster {
		if slices.ContainsFunc(services, p.Overlaps) {
			out.Overlap = append(out.Overlap, "services.clusterCIDRs "+p.String())
		}
	}
	return out
}

// KubeProxy returns the number of nodes for which the DaemonSet kube-system/kube-proxy has pods; 0
// = there is no such DaemonSet, or the user has no right to read it.
func KubeProxy(ctx context.Context, client *apiserver.Client) (nodes int) {
	var set struct {
		Status struct {
			DesiredNumberScheduled int `json:"desiredNumberScheduled"`
		} `json:"status"`
	}
	const path = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
	answer, err := client.Core().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).DoRaw(ctx)
	if err != nil || json.Unmarshal(answer, &set) != nil {
		return 0
	}
	return set.Status.DesiredNumberScheduled
}

// Oldest is the first version of Kubernetes that the agent works with: earlier API servers cannot
// select Services by spec.clusterIP.
const Oldest = "1.31"

// TooOld is true for a gitVersion of an API server before Oldest. It is false for a text that is
// not a version.
func TooOld(gitVersion string) bool {
	got, err := version.ParseSemantic(gitVersion)
	return err == nil && got.LessThan(version.MustParseSemantic(Oldest+".0-0"))
}
