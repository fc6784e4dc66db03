package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

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
