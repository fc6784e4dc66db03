package informers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
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

// The API server may lack an optional resource, or refuse the agent access to it. The agent asks
// again after a rest that doubles from leastRest to mostRest. A refusal is logged when the rest is
// longer than loggedRest, because a starting API server refuses many requests for a moment.
const (
	leastRest  = time.Second
	loggedRest = 10 * time.Second
	mostRest   = 10 * time.Minute
)

// optional is the state of a resource that the agent can do without: the API server is too old for
// it (404), or the agent may not read it (403).
type optional struct {
	log     *slog.Logger
	missing chan struct{} // closed at the first such answer
	once    sync.Once
	// Only the goroutine of the reflector uses these: no request is sent before until; rest is
	// the length of the last rest, 0 = a watch was opened since the last refusal.
	until time.Time
	rest  time.Duration
}

// newOptional returns a resource without requests so far.
func newOptional(log *slog.Logger) *optional {
	return &optional{log: log, missing: make(chan struct{})}
}

// ask sends a request, after the rest that follows the last refusal. A nil optional never rests.
func (o *optional) ask(ctx context.Context, request func() error) error {
	if o == nil {
		return request()
	}
	pause := time.NewTimer(time.Until(o.until))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := request()
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return err
	}
	before := o.rest
	o.rest = min(max(2*before, leastRest), mostRest)
	o.until = time.Now().Add(o.rest)
	o.once.Do(func() { close(o.missing) })
	if before <= loggedRest && o.rest > loggedRest {
		o.log.Info("resource not used", "err", err)
	}
	return err
}

// watched ends the rests, because an opened watch shows that the resource exists and can be read. A
// list alone does not show that.
func (o *optional) watched() {
	if o != nil {
		o.rest = 0
	}
}

// settled returns a channel that is closed when the resource is listed, or is known to be missing.
// ctx ends its goroutine; group waits for the goroutine.
func (o *optional) settled(ctx context.Context, group *sync.WaitGroup, listed <-chan struct{}) <-chan struct{} {
	if o == nil {
		return listed
	}
	out := make(chan struct{})
	group.Go(func() {
		select {
		case <-listed:
		case <-o.missing:
		case <-ctx.Done():
			return
		}
		close(out)
	})
	return out
}

// Minor versions of Kubernetes 1: the first that deprecates spec.externalIPs, and the first whose
// kube-proxy does not serve it by default (KEP-5707).
const (
	deprecates = 36
	leavesOut  = 40
)

// externalIPs treats spec.externalIPs as kube-proxy of the API server's version does.
type externalIPs struct {
	version func(context.Context) (*version.Info, error)
	log     *slog.Logger

	asked atomic.Bool
	minor atomic.Int64 // 0 = not known
	once  sync.Once    // for the warning about the first service with external IPs
}

// follow makes the resource ask for the version, and normalise its Services accordingly.
func (r *resource) follow(e *externalIPs) {
	r.before, r.hold = e.ask, normalised(e.service)
}

// ask asks for the version, once. If the API server does not tell its version, external IPs are
// served as before 1.36.
func (e *externalIPs) ask(ctx context.Context) error {
	if e.asked.Load() {
		return nil
	}
	info, err := e.version(ctx)
	if unanswered(err) || ctx.Err() != nil {
		return err
	}
	if err == nil {
		var minor int
		if minor, err = strconv.Atoi(strings.TrimRight(info.Minor, "+")); err == nil && info.Major == "1" {
			e.minor.Store(int64(minor))
		}
	}
	if err != nil {
		e.log.Warn("version of the API server is not known: external IPs are served", "err", err)
	}
	e.asked.Store(true)
	return nil
}

// service normalises a Service. It leaves out external IPs if Kubernetes does not serve them.
func (e *externalIPs) service(source string, in *corev1.Service) (*messages.Service, []*messages.ObjectError) {
	out, problems := normalize.Service(source, in)
	minor := e.minor.Load()
	if len(out.GetExternalIps()) == 0 || minor < deprecates {
		return out, problems
	}
	const advice = "set services.allowExternalIPs to the networks of which they are to be served"
	if minor < leavesOut {
		e.once.Do(func() {
			e.log.Warn("spec.externalIPs is deprecated since Kubernetes 1.36, and from 1.40 on it is not served by default: "+advice, "service", in.Namespace+"/"+in.Name)
		})
		return out, problems
	}
	out.ExternalIps = nil
	return out, append(problems, &messages.ObjectError{
		Source: source, Kind: normalize.KindService, Object: in.Namespace + "/" + in.Name, Field: "spec.externalIPs",
		Message: fmt.Sprintf("is not served by default in Kubernetes 1.%d: %s", minor, advice),
	})
}
