package informers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/normalize"
)

// resource is how one kind is listed and watched.
type resource struct {
	kind   string // of normalize.Kind*
	plural string // for people, and of the API
	object runtime.Object
	labels string
	fields string
	api    cache.ListerWatcherWithContext
	hold   cache.TransformFunc // what the cache keeps

	optional *optional // nil = the agent needs it
}

// serviceCIDRs returns the resource of the networks of cluster IPs, which not every cluster has.
func serviceCIDRs(client *apiserver.Client, log *slog.Logger) resource {
	return resource{
		kind: normalize.KindServiceCIDR, plural: "servicecidrs", object: &networkingv1.ServiceCIDR{}, hold: normalised(networksOf),
		api: client.ServiceCIDRs, optional: newOptional(log.With("resource", "servicecidrs.networking.k8s.io")),
	}
}

// resources returns what the agent of this node must watch.
func resources(client *apiserver.Client, node string) []resource {
	return []resource{
		{
			kind: normalize.KindService, plural: "services", object: &corev1.Service{}, hold: normalised(normalize.Service),
			labels: "!service.kubernetes.io/service-proxy-name",
			fields: fields.OneTermNotEqualSelector("spec.clusterIP", corev1.ClusterIPNone).String(),
			api:    client.Services,
		},
		{
			kind: normalize.KindEndpointSlice, plural: "endpointslices", object: &discoveryv1.EndpointSlice{}, hold: normalised(normalize.EndpointSlice),
			labels: "!" + corev1.IsHeadlessService,
			api:    client.EndpointSlices,
		},
		{
			kind: normalize.KindNode, plural: "nodes", object: &corev1.Node{}, hold: normalised(normalize.Node),
			api: client.Nodes,
		},
		{
			kind: normalize.KindPod, plural: "pods", object: &corev1.Pod{}, hold: normalised(normalize.Pod),
			fields: fields.OneTermEqualSelector("spec.nodeName", node).String(),
			api:    client.Pods,
		},
	}
}

// informer returns an informer of the resource whose requests pass the gate and whose troubles are noted in health.
func (r *resource) informer(g *gate, h *health) (cache.SharedIndexInformer, error) {
	set := func(why trouble) { h.set(r.plural, why) }
	if r.optional != nil {
		set = func(trouble) {} // what concerns all resources, the others say too
	}
	note := func(ctx context.Context, err error) {
		if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) { // the end of a stream is no trouble: servers close watches every few minutes
			set(diagnose(err))
		}
	}
	ask := func(ctx context.Context, options *metav1.ListOptions, request func() error) error {
		options.LabelSelector, options.FieldSelector = r.labels, r.fields
		return r.optional.ask(ctx, func() error { return g.pass(ctx, set, request) })
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			err = ask(ctx, &options, func() (err error) { list, err = r.api.ListWithContext(ctx, options); return err })
			return list, err // an error comes back through the watch error handler
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
			err = ask(ctx, &options, func() (err error) { w, err = r.api.WatchWithContext(ctx, options); return err })
			if err != nil {
				if options.SendInitialEvents == nil || !apierrors.IsInvalid(err) { // an API server that cannot stream a list is asked for one
					note(ctx, err)
				}
				return nil, err
			}
			// Only a watch that was opened counts as healthy: a list alone sees no changes.
			set(trouble{})
			r.optional.watched()
			return observe(w, func(event watch.Event) { note(ctx, apierrors.FromObject(event.Object)) }), nil
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, r.api), r.object,
		cache.SharedIndexInformerOptions{ObjectDescription: r.plural})
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		note(ctx, err) // the worker logs it; the default handler would do so once more
	})
	return informer, errors.Join(err, informer.SetTransform(r.hold))
}

// observed is a watch whose errors are noted on their way to the reflector, which swallows most of them.
type observed struct {
	watch.Interface
	out  chan watch.Event
	done chan struct{} // closed by stop
	stop func()
}

// observe passes the events of w on until it is stopped or ends; its goroutine ends with it.
func observe(w watch.Interface, failed func(watch.Event)) watch.Interface {
	o := &observed{Interface: w, out: make(chan watch.Event), done: make(chan struct{})}
	o.stop = sync.OnceFunc(func() { close(o.done) })
	go o.run(failed)
	return o
}

// run passes events until the inner watch ends or the reader stops it. client-go's own watch.Filter would hang in the second case.
func (o *observed) run(failed func(watch.Event)) {
	defer close(o.out)
	for event := range o.Interface.ResultChan() {
		if event.Type == watch.Error {
			failed(event)
		}
		select {
		case o.out <- event:
		case <-o.done:
			return
		}
	}
}

// ResultChan satisfies watch.Interface.
func (o *observed) ResultChan() <-chan watch.Event { return o.out }

// Stop satisfies watch.Interface; it may be called more than once.
func (o *observed) Stop() {
	o.stop()
	o.Interface.Stop()
}
