package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
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
	// Services, EndpointSlices, Nodes, Pods, ServiceCIDRs, Namespaces and AddressPools list and watch
	// the objects of all namespaces. Their watches have the type *Watch.
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
