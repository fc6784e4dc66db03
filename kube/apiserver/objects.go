package apiserver

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
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
