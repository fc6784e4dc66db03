// Package apiservertest makes an apiserver.Client from a clientset of client-go, because client-go
// has a fake clientset. Only tests import it.
package apiservertest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// Client returns a client that sends its requests through a clientset.
func Client(set kubernetes.Interface) *apiserver.Client {
	return &apiserver.Client{
		Services:       watched(set, set.CoreV1().Services("")),
		EndpointSlices: watched(set, set.DiscoveryV1().EndpointSlices("")),
		Nodes:          watched(set, set.CoreV1().Nodes()),
		Pods:           watched(set, set.CoreV1().Pods("")),
		ServiceCIDRs:   watched(set, set.NetworkingV1().ServiceCIDRs()),
		Version:        func(context.Context) (*version.Info, error) { return set.Discovery().ServerVersion() },
		Events:         func(namespace string) apiserver.Events { return set.EventsV1().Events(namespace) },
		Leases:         func(namespace string) apiserver.Leases { return set.CoordinationV1().Leases(namespace) },
	}
}

// typed is one kind in a clientset.
type typed[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// watched lists and watches through a clientset. A fake clientset does not stream lists.
func watched[L runtime.Object](set kubernetes.Interface, api typed[L]) cache.ListerWatcherWithContext {
	return cache.ToListerWatcherWithContext(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, options)
		},
		WatchFuncWithContext: api.Watch,
	}, set))
}
