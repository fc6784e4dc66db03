package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/service"
)

// API is the store on the API server. Its writes have the field manager of the connector. An older
// API server has no ServiceCIDR objects; then the configuration must have the ranges.
type API struct {
	config                          Config
	log                             *slog.Logger
	api                             *apiserver.Namespace
	services, slices, nodes, ranges cache.SharedIndexInformer
	listed                          chan struct{} // closed when all resources are listed
	absent                          chan struct{} // closed when the API server has no ranges
	trouble                         troubles
}

var _ Store = (*API)(nil)

// NewAPI returns a store that sends its requests through this client, within its rate limit.
func NewAPI(client *apiserver.Client, config Config, log *slog.Logger) *API {
	s := &API{
		config: config, log: log, api: client.Namespace(config.Namespace), listed: make(chan struct{}), absent: make(chan struct{}),
	}
	absent := sync.OnceFunc(func() { close(s.absent) })
	informer := func(lw cache.ListerWatcherWithContext, object runtime.Object, plural string) cache.SharedIndexInformer {
		watched := noted(lw, func(err error) {
			if plural == rangesPlural && apierrors.IsNotFound(err) {
				if len(config.Policy.ServiceRanges) > 0 {
					absent()
					return
				}
				err = errNoRanges
			}
			s.trouble.set(plural, err)
		})
		return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(watched, lw), object,
			cache.SharedIndexInformerOptions{ObjectDescription: plural})
	}
	s.services = informer(s.api.ServiceList, &corev1.Service{}, "services")
	s.slices = informer(s.api.SliceList, &discoveryv1.EndpointSlice{}, "endpointslices")
	s.nodes = informer(client.Nodes, &corev1.Node{}, "nodes")
	s.ranges = informer(client.ServiceCIDRs, &networkingv1.ServiceCIDR{}, rangesPlural)
	return s
}

// errNoRanges stops the store, because without the ranges an instance could have the address of any
// Service.
var errNoRanges = errors.New("the API server has no ServiceCIDR objects: --service-cidr must say which addresses are cluster IPs")

const rangesPlural = "servicecidrs"

// Run satisfies Store.
func (s *API) Run(ctx context.Context, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if err := s.nodes.SetTransform(networksOnly); err != nil {
		return fmt.Errorf("set up informer of nodes: %w", err)
	}
	var synced []<-chan struct{}
	for _, informer := range []cache.SharedIndexInformer{s.services, s.slices, s.nodes, s.ranges} {
		if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
			// troubles has the error of the request.
			return fmt.Errorf("set up informer: %w", err)
		}
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() },
			UpdateFunc: func(old, now any) {
				before, node := old.(*corev1.Node) // it changes often, its networks hardly ever
				if !node || !equality.Semantic.DeepEqual(before.Spec, now.(*corev1.Node).Spec) || !equality.Semantic.DeepEqual(before.Status, now.(*corev1.Node).Status) {
					changed()
				}
			},
			DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			return fmt.Errorf("add handler to informer: %w", err)
		}
		synced = append(synced, handler.HasSyncedChecker().Done())
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	for i, done := range synced {
		var without <-chan struct{}
		if i == len(synced)-1 {
			without = s.absent
		}
		select {
		case <-done:
		case <-without:
			s.log.Info("ServiceCIDR objects not used: the API server has none")
		case <-ctx.Done():
			return nil
		}
	}
	close(s.listed)
	if _, policy, _ := s.Observe(); len(policy.Pods) == 0 && !policy.AllowPods {
		s.log.Warn("networks of pods not known: no Node has podCIDRs; instances with addresses of pods are refused only with --cluster-cidr")
	}
	changed()
	<-ctx.Done()
	return nil
}

// networksOnly keeps only the parts of a Node that the policy needs.
func networksOnly(object any) (any, error) {
	if n, ok := object.(*corev1.Node); ok {
		kept := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: n.Spec.PodCIDRs}, Status: corev1.NodeStatus{Addresses: n.Status.Addresses}}
		kept.Name, kept.ResourceVersion = n.Name, n.ResourceVersion
		return kept, nil
	}
	return object, nil
}

// Observe satisfies Store.
func (s *API) Observe() (seen render.Observed, policy catalog.Policy, ok bool) {
	select {
	case <-s.listed:
	default:
		return seen, policy, false
	}
	policy = s.config.Policy.Clone()
	for _, object := range s.ranges.GetIndexer().List() {
		policy.ServiceRanges = append(policy.ServiceRanges, service.Networks(object.(*networkingv1.ServiceCIDR).Spec.CIDRs)...)
	}
	for _, object := range s.nodes.GetIndexer().List() {
		addNode(&policy, object.(*corev1.Node))
	}
	for _, object := range s.services.GetIndexer().List() {
		seen.Services = append(seen.Services, object.(*corev1.Service))
	}
	for _, object := range s.slices.GetIndexer().List() {
		seen.Slices = append(seen.Slices, object.(*discoveryv1.EndpointSlice))
	}
	return seen, policy, true
}

// Trouble satisfies Store.
func (s *API) Trouble() string { return s.trouble.String() }

// writeTimeout is the time limit of one write, including its wait for the rate limit.
const writeTimeout = 30 * time.Second

// Write satisfies Store.
func (s *API) Write(ctx context.Context, w render.Write) (*corev1.Service, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	kind, object := w.Object()
	what := fmt.Sprintf("%s %s %s/%s", w.Verb, kind, object.GetNamespace(), object.GetName())
	if w.Service != nil {
		service, err := write(ctx, s.api.Services, w.Verb, w.Service)
		return service, classify(what, err)
	}
	_, err := write(ctx, s.api.EndpointSlices, w.Verb, w.Slice)
	return nil, classify(what, err)
}

// write sends one write. An update has the compared resource version; a deletion has it as a
// precondition.
func write[P metav1.Object](ctx context.Context, api apiserver.Objects[P], verb render.Verb, object P) (P, error) {
	switch verb {
	case render.Create:
		return api.Create(ctx, object, metav1.CreateOptions{FieldManager: render.Manager})
	case render.Update:
		return api.Update(ctx, object, metav1.UpdateOptions{FieldManager: render.Manager})
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := api.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	var none P
	return none, err
}

// classify turns the error of a write into a WriteError.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	reason := WriteUnavailable
	switch {
	case apierrors.IsAlreadyExists(err):
		reason = WriteExists
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		reason = WriteConflict
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		reason = WriteInvalid
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		reason = WriteForbidden
	}
	return &WriteError{Reason: reason, Err: fmt.Errorf("%s: %w", what, err)}
}

// troubles are the resources that cannot be listed or watched, with the reasons. It is safe for
// concurrent use.
type troubles struct {
	mu  sync.Mutex
	why map[string]string
}

// set notes the outcome of a request about a resource.
func (t *troubles) set(plural string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.why, plural)
		return
	}
	if t.why == nil {
		t.why = map[string]string{}
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without the URL, which changes with each request
	}
	t.why[plural] = err.Error()
}

// String names each cause once, with its resources; "" = all resources are watched.
func (t *troubles) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	resources := map[string][]string{}
	for plural, why := range t.why {
		resources[why] = append(resources[why], plural)
	}
	var out []string
	for _, why := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[why])
		out = append(out, fmt.Sprintf("watch %s: %s", strings.Join(resources[why], ", "), why))
	}
	return strings.Join(out, "; ")
}

// noted notes the outcome of each request. The success of a list is ignored, because a list alone
// sees no changes.
func noted(lw cache.ListerWatcherWithContext, note func(err error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, options)
			if err != nil && ctx.Err() == nil {
				note(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchWithContext(ctx, options)
			if ctx.Err() == nil {
				note(err)
			}
			return w, err
		},
	}
}
