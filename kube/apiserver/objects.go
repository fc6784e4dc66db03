package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/addresses"
)

// Objects reads and writes the objects of one kind in a namespace.
type Objects[P any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (P, error)
	Create(ctx context.Context, object P, options metav1.CreateOptions) (P, error)
	Update(ctx context.Context, object P, options metav1.UpdateOptions) (P, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// objects implements Objects like the typed clients of client-go.
type objects[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}] struct {
	client            rest.Interface
	namespace, plural string
}

// Get returns the object.
func (o objects[T, P]) Get(ctx context.Context, name string, options metav1.GetOptions) (P, error) {
	got := P(new(T))
	return got, o.client.Get().Namespace(o.namespace).Resource(o.plural).Name(name).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(got)
}

// Create returns the object as the API server has stored it.
func (o objects[T, P]) Create(ctx context.Context, object P, options metav1.CreateOptions) (P, error) {
	made := P(new(T))
	return made, o.client.Post().Namespace(o.namespace).Resource(o.plural).VersionedParams(&options, metav1.ParameterCodec).Body(object).Do(ctx).Into(made)
}

// Update returns the object as the API server has stored it.
func (o objects[T, P]) Update(ctx context.Context, object P, options metav1.UpdateOptions) (P, error) {
	updated := P(new(T))
	return updated, o.client.Put().Namespace(o.namespace).Resource(o.plural).Name(object.GetName()).
		VersionedParams(&options, metav1.ParameterCodec).Body(object).Do(ctx).Into(updated)
}

// Delete deletes the object.
func (o objects[T, P]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return o.client.Delete().Namespace(o.namespace).Resource(o.plural).Name(name).Body(&options).Do(ctx).Error()
}

// Patch returns the object after the patch.
func (o objects[T, P]) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string,
) (P, error) {
	changed := P(new(T))
	return changed, o.client.Patch(kind).Namespace(o.namespace).Resource(o.plural).Name(name).SubResource(subresources...).
		VersionedParams(&options, metav1.ParameterCodec).Body(patch).Do(ctx).Into(changed)
}

// PatchServiceStatus changes the status of a Service by a merge patch.
func (c *Client) PatchServiceStatus(ctx context.Context, namespace, name string, patch []byte) error {
	o := objects[corev1.Service, *corev1.Service]{c.groups[corev1.SchemeGroupVersion], namespace, "services"}
	_, err := o.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// PatchAddressPoolStatus changes the status of an AddressPool by a merge patch.
func (c *Client) PatchAddressPoolStatus(ctx context.Context, name string, patch []byte) error {
	o := objects[addresses.AddressPool, *addresses.AddressPool]{c.groups[addresses.GroupVersion()], metav1.NamespaceAll, "addresspools"}
	_, err := o.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// leases adds List and Watch to the Objects of Leases.
type leases struct {
	objects[coordinationv1.Lease, *coordinationv1.Lease]
}

// List returns the Leases that the options select.
func (l leases) List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{}
	return list, l.client.Get().Namespace(l.namespace).Resource(l.plural).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
}

// Watch watches the Leases that the options select.
func (l leases) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return l.client.Get().Namespace(l.namespace).Resource(l.plural).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
}

// Watch is a watch that says why it has ended.
type Watch struct {
	watch.Interface
	outcome *outcome
}

// Broken returns the error with which the connection of the watch broke. It is nil while the watch
// lasts, and nil if the API server ended it. The answer is final once the result channel is closed
// or has delivered an error.
func (w *Watch) Broken() error { return w.outcome.failure() }

// listWatch lists and watches a resource, in all namespaces if namespace is "". Each request is
// sent once: the caller decides when to repeat it. A watch without an answer is an error here;
// client-go returns an empty watch.
func listWatch(client rest.Interface, namespace, plural string) cache.ListerWatcherWithContext {
	get := func(options *metav1.ListOptions) *rest.Request {
		return client.Get().Namespace(namespace).Resource(plural).VersionedParams(options, metav1.ParameterCodec).MaxRetries(0)
	}
	return cache.ToListerWatcherWithContext(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return get(&options).Do(ctx).Get()
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			w := &Watch{outcome: &outcome{}}
			var err error
			if w.Interface, err = get(&options).Watch(context.WithValue(ctx, outcomeKey{}, w.outcome)); err != nil {
				return nil, err
			}
			if err := w.Broken(); err != nil {
				w.Stop()
				return nil, err
			}
			return w, nil
		},
	})
}

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

// RemoveTaint removes the taints with the key from a Node, whatever their effect, and reports
// whether it had one. It needs the rights get and patch of nodes. The patch fails where the taints
// have changed meanwhile.
func (c *Client) RemoveTaint(ctx context.Context, node, key string) (removed bool, err error) {
	object, api := &corev1.Node{}, c.groups[corev1.SchemeGroupVersion]
	if err := api.Get().Resource("nodes").Name(node).Do(ctx).Into(object); err != nil {
		return false, fmt.Errorf("read Node %s: %w", node, err)
	}
	var steps []map[string]string
	for i, taint := range slices.Backward(object.Spec.Taints) { // the places of the others stay
		if taint.Key == key {
			path := fmt.Sprintf("/spec/taints/%d", i)
			steps = append(steps, map[string]string{"op": "test", "path": path + "/key", "value": key}, map[string]string{"op": "remove", "path": path})
		}
	}
	if len(steps) == 0 {
		return false, nil
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return false, err
	}
	if err := api.Patch(types.JSONPatchType).Resource("nodes").Name(node).Body(patch).Do(ctx).Error(); err != nil {
		return false, fmt.Errorf("remove taint %s from Node %s: %w", key, node, err)
	}
	return true, nil
}
