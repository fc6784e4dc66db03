package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/outbound"
)

// Client makes requests to one API server, which may have several addresses. It is safe for
// concurrent use.
type Client struct {
	// Services, EndpointSlices, Nodes, Pods, ServiceCIDRs, Namespaces and AddressPools list and
	// watch the objects of all namespaces. Their watches have the type *Watch.
	Services, EndpointSlices, Nodes, Pods, ServiceCIDRs, Namespaces, AddressPools cache.ListerWatcherWithContext
	// Version returns the version of the API server.
	Version func(ctx context.Context) (*version.Info, error)
	// Events returns the events of a namespace.
	Events func(namespace string) Events
	// Leases returns the Leases of a namespace.
	Leases func(namespace string) Leases

	groups map[schema.GroupVersion]rest.Interface
}

// Events creates events of the group events.k8s.io in a namespace.
type Events interface {
	Create(ctx context.Context, event *eventsv1.Event, options metav1.CreateOptions) (*eventsv1.Event, error)
}

// Leases reads and writes the Leases of a namespace.
type Leases interface {
	Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error)
	Patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string,
	) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// New makes a client of the API server at rc.Host and at the other addresses, which have the same
// form and use the same credentials. The client stays at an address that works, and takes the next
// one when a request to it fails. New does not connect.
func New(rc *rest.Config, others ...string) (*Client, error) {
	groups, err := newGroups(rc, others...)
	if err != nil {
		return nil, err
	}
	watched := func(group schema.GroupVersion, plural string) cache.ListerWatcherWithContext {
		return listWatch(groups[group], metav1.NamespaceAll, plural)
	}
	return &Client{
		groups:         groups,
		Services:       watched(corev1.SchemeGroupVersion, "services"),
		EndpointSlices: watched(discoveryv1.SchemeGroupVersion, "endpointslices"),
		Nodes:          watched(corev1.SchemeGroupVersion, "nodes"),
		Pods:           watched(corev1.SchemeGroupVersion, "pods"),
		ServiceCIDRs:   watched(networkingv1.SchemeGroupVersion, "servicecidrs"),
		Namespaces:     watched(corev1.SchemeGroupVersion, "namespaces"),
		AddressPools:   watched(addresses.GroupVersion(), "addresspools"),
		Version: func(ctx context.Context) (*version.Info, error) {
			return versionOf(ctx, groups[corev1.SchemeGroupVersion])
		},
		Events: func(namespace string) Events {
			return objects[eventsv1.Event, *eventsv1.Event]{groups[eventsv1.SchemeGroupVersion], namespace, "events"}
		},
		Leases: func(namespace string) Leases {
			return leases{objects[coordinationv1.Lease, *coordinationv1.Lease]{groups[coordinationv1.SchemeGroupVersion], namespace, "leases"}}
		},
	}, nil
}

// Core sends requests to the core group that the agent does not send: the commands of a user
// send them (kube/check).
func (c *Client) Core() rest.Interface { return c.groups[corev1.SchemeGroupVersion] }

// versionOf asks for the version of the API server, once.
func versionOf(ctx context.Context, client rest.Interface) (*version.Info, error) {
	answer, err := client.Get().AbsPath("/version").SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if err := json.Unmarshal(answer, info); err != nil {
		return nil, fmt.Errorf("decode version of the API server: %w", err)
	}
	return info, nil
}

// newGroups makes a client for each API group. They share connections and rate limit.
func newGroups(rc *rest.Config, others ...string) (map[schema.GroupVersion]rest.Interface, error) {
	shared := *rc
	base, err := through(&shared, others)
	if err != nil {
		return nil, err
	}
	if shared.UserAgent == "" {
		shared.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if shared.RateLimiter == nil && shared.QPS > 0 {
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	known := runtime.NewScheme()
	shared.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(known, serializer.NewCodecFactory(known)).WithoutConversion()
	transport, err := rest.TransportFor(&shared)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client of the API server %s: %w", rc.Host, err)
	}
	client := outbound.Client(base, transport, shared.Timeout)
	groups := map[schema.GroupVersion]rest.Interface{}
	for group, add := range map[schema.GroupVersion]func(*runtime.Scheme) error{
		corev1.SchemeGroupVersion: corev1.AddToScheme, discoveryv1.SchemeGroupVersion: discoveryv1.AddToScheme,
		networkingv1.SchemeGroupVersion: networkingv1.AddToScheme, eventsv1.SchemeGroupVersion: eventsv1.AddToScheme,
		coordinationv1.SchemeGroupVersion: coordinationv1.AddToScheme, addresses.GroupVersion(): addresses.AddToScheme,
	} {
		if err := add(known); err != nil {
			return nil, fmt.Errorf("register types of %s: %w", group, err)
		}
		if groups[group], err = newGroup(shared, group, client); err != nil {
			return nil, fmt.Errorf("make client of the API server %s for %s: %w", rc.Host, group, err)
		}
	}
	return groups, nil
}

// newGroup makes the client of one API group.
func newGroup(rc rest.Config, group schema.GroupVersion, client *http.Client) (rest.Interface, error) {
	rc.GroupVersion, rc.APIPath = &group, "/apis"
	if group.Group == "" {
		rc.APIPath = "/api"
	}
	if group == addresses.GroupVersion() {
		rc.ContentType, rc.AcceptContentTypes = runtime.ContentTypeJSON, "" // objects of a definition have no protobuf
	}
	return rest.RESTClientForConfigAndClient(&rc, client)
}

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
