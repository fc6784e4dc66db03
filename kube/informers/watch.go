package informers

import (
	"context"
	"errors"
	"io"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/normalize"
)

// resource says how one kind is listed and watched.
type resource struct {
	kind   string // of normalize.Kind*
	plural string // for people, and of the API
	object runtime.Object
	labels string
	fields string
	api    cache.ListerWatcherWithContext
	hold   cache.TransformFunc // makes the value that the cache keeps

	optional *optional // nil = the agent needs it

	// Called before each request, as a part of it; nil = no call.
	before func(context.Context) error
}

// serviceCIDRs returns the resource of ServiceCIDRs, which not every cluster has.
func serviceCIDRs(client *apiserver.Client, log *slog.Logger) resource {
	return resource{
		kind: normalize.KindServiceCIDR, plural: "servicecidrs", object: &networkingv1.ServiceCIDR{}, hold: normalised(normalize.ServiceCIDR),
		api: client.ServiceCIDRs, optional: newOptional(log.With("resource", "servicecidrs.networking.k8s.io")),
	}
}

// addressPools returns the resource of AddressPools, whose definition not every cluster has.
func addressPools(client *apiserver.Client, log *slog.Logger) resource {
	return resource{
		kind: normalize.KindAddressPool, plural: "addresspools", object: &addresses.AddressPool{}, hold: normalised(normalize.AddressPool),
		api: client.AddressPools, optional: newOptional(log.With("resource", "addresspools.troupe.dev")),
	}
}

// resources returns the resources that the agent of this node must watch.
func resources(client *apiserver.Client, node string) []resource {
	return []resource{
		{
			kind: normalize.KindService, plural: "services", object: &corev1.Service{}, hold: normalised(normalize.Service),
			labels: "!service.kubernetes.io/service-proxy-name",
			fields: fields.AndSelectors(
				fields.OneTermNotEqualSelector("spec.clusterIP", corev1.ClusterIPNone),
				fields.OneTermNotEqualSelector("spec.type", string(corev1.ServiceTypeExternalName)),
			).String(),
			api: client.Services,
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

// informer returns an informer of the resource. Its requests pass health, which notes its troubles.
func (r *resource) informer(h *health) (cache.SharedIndexInformer, error) {
	set, required := func(why trouble) { h.set(r.plural, why) }, r.plural
	if r.optional != nil { // the required resources report general troubles too
		set, required = func(trouble) {}, ""
	}
	note := func(ctx context.Context, err error) {
		if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
			// The end of a stream is no trouble: servers close watches every few minutes.
			set(diagnose(err))
		}
	}
	ask := func(ctx context.Context, options *metav1.ListOptions, request func() error) error {
		options.LabelSelector, options.FieldSelector = r.labels, r.fields
		return r.optional.ask(ctx, func() error {
			return h.pass(ctx, required, func() error {
				if r.before != nil {
					if err := r.before(ctx); err != nil {
						return err
					}
				}
				return request()
			})
		})
	}
	sight := &sight{counts: func() { set(trouble{}) }}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			err = ask(ctx, &options, func() (err error) { list, err = r.api.ListWithContext(ctx, options); return err })
			return list, err // client-go passes the error to the watch error handler
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
			err = ask(ctx, &options, func() (err error) { w, err = r.api.WatchWithContext(ctx, options); return err })
			if err != nil {
				if options.SendInitialEvents == nil || !apierrors.IsInvalid(err) {
					// An API server that cannot stream a list is no trouble, because client-go then
					// asks it for a normal list.
					note(ctx, err)
				}
				return nil, err
			}
			r.optional.watched()
			return sight.observe(w, func(err error) { note(ctx, err) }), nil
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, r.api), r.object,
		cache.SharedIndexInformerOptions{ObjectDescription: r.plural})
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		note(ctx, err) // the worker logs it; the default handler would do so once more
	})
	return informer, errors.Join(err, informer.SetTransform(r.hold))
}
