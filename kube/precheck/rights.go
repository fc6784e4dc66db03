package precheck

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
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
