package kubetest

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// Clientset answers requests with the objects of its tracker. Reactors of Fake change answers.
type Clientset struct {
	clienttesting.Fake
	// Tracker holds the objects. It validates nothing and knows no managed fields.
	Tracker clienttesting.ObjectTracker
}

// NewClientset returns an API server with these objects. If one is of a kind that the agent does
// not use, every request fails.
func NewClientset(objects ...runtime.Object) *Clientset {
	known := runtime.NewScheme()
	c := &Clientset{}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme} {
		c.must(add(known))
	}
	c.Tracker = clienttesting.NewObjectTracker(known, serializer.NewCodecFactory(known).UniversalDecoder())
	for _, object := range objects {
		c.must(c.Tracker.Add(object))
	}
	c.AddReactor("*", "*", clienttesting.ObjectReaction(c.Tracker))
	c.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker.Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	return c
}

// must lets every request fail with an error, if there is one.
func (c *Clientset) must(err error) {
	if err != nil {
		c.AddReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
}

// Client returns a client of the agent that sends its requests to this API server.
func (c *Clientset) Client() *apiserver.Client {
	return &apiserver.Client{
		Services:       watched(c, c.Services("")),
		EndpointSlices: watched(c, c.EndpointSlices("")),
		Nodes:          watched(c, c.Nodes()),
		Pods:           watched(c, c.Pods("")),
		ServiceCIDRs:   watched(c, c.ServiceCIDRs()),
		Version:        func(context.Context) (*version.Info, error) { return &version.Info{}, nil },
		Events:         func(namespace string) apiserver.Events { return c.Events(namespace) },
		Leases:         func(namespace string) apiserver.Leases { return c.Leases(namespace) },
	}
}

// IsWatchListSemanticsUnSupported tells client-go that lists are not streamed.
func (c *Clientset) IsWatchListSemanticsUnSupported() bool { return true }

// Services returns the Services of a namespace; "" = of all.
func (c *Clientset) Services(namespace string) *gentype.FakeClientWithList[*corev1.Service, *corev1.ServiceList] {
	return typed[corev1.Service, corev1.ServiceList](c, namespace, corev1.SchemeGroupVersion, "services", "Service")
}

// EndpointSlices returns the EndpointSlices of a namespace; "" = of all.
func (c *Clientset) EndpointSlices(namespace string) *gentype.FakeClientWithList[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return typed[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](c, namespace, discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlice")
}

// Nodes returns the Nodes.
func (c *Clientset) Nodes() *gentype.FakeClientWithList[*corev1.Node, *corev1.NodeList] {
	return typed[corev1.Node, corev1.NodeList](c, "", corev1.SchemeGroupVersion, "nodes", "Node")
}

// Pods returns the Pods of a namespace; "" = of all.
func (c *Clientset) Pods(namespace string) *gentype.FakeClientWithList[*corev1.Pod, *corev1.PodList] {
	return typed[corev1.Pod, corev1.PodList](c, namespace, corev1.SchemeGroupVersion, "pods", "Pod")
}

// ServiceCIDRs returns the ServiceCIDRs.
func (c *Clientset) ServiceCIDRs() *gentype.FakeClientWithList[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList] {
	return typed[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](c, "", networkingv1.SchemeGroupVersion, "servicecidrs", "ServiceCIDR")
}

// Events returns the events of a namespace, of the group events.k8s.io; "" = of all.
func (c *Clientset) Events(namespace string) *gentype.FakeClientWithList[*eventsv1.Event, *eventsv1.EventList] {
	return typed[eventsv1.Event, eventsv1.EventList](c, namespace, eventsv1.SchemeGroupVersion, "events", "Event")
}

// Leases returns the Leases of a namespace; "" = of all.
func (c *Clientset) Leases(namespace string) *gentype.FakeClientWithList[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return typed[coordinationv1.Lease, coordinationv1.LeaseList](c, namespace, coordinationv1.SchemeGroupVersion, "leases", "Lease")
}

// typed returns the objects of a kind in a namespace.
func typed[V, VL any, T interface {
	*V
	runtime.Object
	metav1.Object
}, L interface {
	*VL
	runtime.Object
}](c *Clientset, namespace string, group schema.GroupVersion, plural, kind string) *gentype.FakeClientWithList[T, L] {
	copyMeta := func(to, from L) {
		target, _ := apimeta.ListAccessor(to) // a list of the API has it
		source, _ := apimeta.ListAccessor(from)
		target.SetResourceVersion(source.GetResourceVersion())
	}
	items := func(list L) (all []T) {
		_ = apimeta.EachListItem(list, func(object runtime.Object) error {
			all = append(all, object.(T))
			return nil
		})
		return all
	}
	set := func(list L, all []T) {
		objects := make([]runtime.Object, len(all))
		for i, object := range all {
			objects[i] = object
		}
		_ = apimeta.SetList(list, objects)
	}
	return gentype.NewFakeClientWithList(&c.Fake, namespace, group.WithResource(plural), group.WithKind(kind), func() T { return new(V) },
		func() L { return new(VL) }, copyMeta, items, set)
}

// client lists and watches one kind.
type client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// watched lists and watches one kind.
func watched[L runtime.Object](c *Clientset, api client[L]) cache.ListerWatcherWithContext {
	return cache.ToListerWatcherWithContext(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, options)
		},
		WatchFuncWithContext: api.Watch,
	}, c))
}
