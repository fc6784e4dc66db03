package apistore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/connector"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
)

// Config of a Store.
type Config struct {
	// Namespace of the objects. It is never created.
	Namespace string
	// Policy is the configured part of the policy, beside the ServiceCIDR and Node objects.
	Policy catalog.Policy
}

// Store is a connector.Store on the API server.
type Store struct {
	config                          Config
	log                             *slog.Logger
	api                             *apiserver.Namespace
	services, slices, nodes, ranges cache.SharedIndexInformer
	listed                          chan struct{} // closed when all resources are listed
	absent                          chan struct{} // closed when the API server has no ranges
	trouble                         troubles
}

var _ connector.Store = (*Store)(nil)

// New returns a store that sends its requests through this client, within its rate limit.
func New(client *apiserver.Client, config Config, log *slog.Logger) *Store {
	s := &Store{
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

// Run satisfies connector.Store.
func (s *Store) Run(ctx context.Context, changed func()) error {
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
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(old, now any) { s.updated(old, now, changed) },
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

// updated passes only relevant changes on: a Node changes often, its networks hardly ever.
func (s *Store) updated(old, now any, changed func()) {
	before, node := old.(*corev1.Node)
	if after, ok := now.(*corev1.Node); node && ok && slices.Equal(before.Status.Addresses, after.Status.Addresses) &&
		slices.Equal(before.Spec.PodCIDRs, after.Spec.PodCIDRs) {
		return
	}
	changed()
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

// Observe satisfies connector.Store.
func (s *Store) Observe() (seen render.Observed, policy catalog.Policy, ok bool) {
	select {
	case <-s.listed:
	default:
		return seen, policy, false
	}
	policy = s.config.Policy.Clone()
	for _, object := range s.ranges.GetIndexer().List() {
		for _, cidr := range object.(*networkingv1.ServiceCIDR).Spec.CIDRs {
			if prefix, err := netip.ParsePrefix(cidr); err == nil {
				policy.ServiceRanges = append(policy.ServiceRanges, prefix)
			}
		}
	}
	for _, object := range s.nodes.GetIndexer().List() {
		connector.AddNode(&policy, object.(*corev1.Node))
	}
	for _, object := range s.services.GetIndexer().List() {
		seen.Services = append(seen.Services, object.(*corev1.Service))
	}
	for _, object := range s.slices.GetIndexer().List() {
		seen.Slices = append(seen.Slices, object.(*discoveryv1.EndpointSlice))
	}
	return seen, policy, true
}

// Trouble satisfies connector.Store.
func (s *Store) Trouble() string { return s.trouble.String() }
