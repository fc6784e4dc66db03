package apiserver

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Namespace sends the connector's requests, which are about one namespace. It is safe for
// concurrent use.
type Namespace struct {
	// ServiceList and SliceList list and watch all Services and EndpointSlices of the namespace.
	ServiceList, SliceList cache.ListerWatcherWithContext
	// Services, EndpointSlices and Leases are read and written one by one.
	Services       Objects[*corev1.Service]
	EndpointSlices Objects[*discoveryv1.EndpointSlice]
	Leases         Objects[*coordinationv1.Lease]
}

// Namespace returns the requests about a namespace.
func (c *Client) Namespace(name string) *Namespace {
	core, discovery := c.groups[corev1.SchemeGroupVersion], c.groups[discoveryv1.SchemeGroupVersion]
	return &Namespace{
		ServiceList:    listWatch(core, name, "services"),
		SliceList:      listWatch(discovery, name, "endpointslices"),
		Services:       objects[corev1.Service, *corev1.Service]{core, name, "services"},
		EndpointSlices: objects[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{discovery, name, "endpointslices"},
		Leases:         objects[coordinationv1.Lease, *coordinationv1.Lease]{c.groups[coordinationv1.SchemeGroupVersion], name, "leases"},
	}
}

// Missing returns the answer of the API server if it says that the namespace does not exist. Lists
// do not say it, so it asks to create a Service without effect. Any other answer is nil.
func (n *Namespace) Missing(ctx context.Context) error {
	probe := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "troupe-dry-run-"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if _, err := n.Services.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
