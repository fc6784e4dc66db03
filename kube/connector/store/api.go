package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	informers                       *apiserver.Informers
	services, slices, nodes, ranges cache.Indexer
	listed                          chan struct{} // closed when all resources are listed
}

var _ Store = (*API)(nil)

// NewAPI returns a store that sends its requests through this client, within its rate limit.
func NewAPI(client *apiserver.Client, config Config, log *slog.Logger) *API {
	s := &API{config: config, log: log, api: client.Namespace(config.Namespace), listed: make(chan struct{})}
	s.informers = apiserver.NewInformers(log)
	s.services = s.informers.Add(s.api.ServiceList, &corev1.Service{}, "services")
	s.slices = s.informers.Add(s.api.SliceList, &discoveryv1.EndpointSlice{}, "endpointslices")
	s.nodes = s.informers.Add(client.Nodes, &corev1.Node{}, "nodes")
	s.ranges = s.informers.AddRanges(client.ServiceCIDRs, len(config.Policy.ServiceRanges) > 0)
	return s
}

// Run satisfies Store.
func (s *API) Run(ctx context.Context, changed func()) error {
	return s.informers.Run(ctx, changed, func() {
		close(s.listed)
		if _, policy, _ := s.Observe(); len(policy.Pods) == 0 && !policy.AllowPods {
			s.log.Warn("networks of pods not known: no Node has podCIDRs; instances with addresses of pods are refused only with --cluster-cidr")
		}
	})
}

// Observe satisfies Store.
func (s *API) Observe() (seen render.Observed, policy catalog.Policy, ok bool) {
	select {
	case <-s.listed:
	default:
		return seen, policy, false
	}
	policy = s.config.Policy.Clone()
	for _, object := range s.ranges.List() {
		policy.ServiceRanges = append(policy.ServiceRanges, service.Networks(object.(*networkingv1.ServiceCIDR).Spec.CIDRs)...)
	}
	for _, object := range s.nodes.List() {
		addNode(&policy, object.(*corev1.Node))
	}
	for _, object := range s.services.List() {
		seen.Services = append(seen.Services, object.(*corev1.Service))
	}
	for _, object := range s.slices.List() {
		seen.Slices = append(seen.Slices, object.(*discoveryv1.EndpointSlice))
	}
	return seen, policy, true
}

// Trouble satisfies Store.
func (s *API) Trouble() string { return s.informers.Trouble() }

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
