package apiserver

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

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// errNoRanges stops programs that must not take an address of a Service.
var errNoRanges = errors.New("the API server has no ServiceCIDR objects: --service-cidr must say which addresses are cluster IPs")

// Informers are caches of a few kinds of objects. Add is called before Run, and Run once. The first
// list of each kind is consistent: it has every write that the API server has acknowledged before.
type Informers struct {
	all     []added
	log     *slog.Logger
	trouble troubles
}

// added is one kind of objects.
type added struct {
	cache.SharedIndexInformer
	absent chan struct{} // closed when the API server does not have the kind and need not; nil = it must
}

// NewInformers returns informers without any kind.
func NewInformers(log *slog.Logger) *Informers { return &Informers{log: log} }

// Add adds a kind of objects, with its plural, and returns their cache.
func (i *Informers) Add(lw cache.ListerWatcherWithContext, object runtime.Object, plural string) cache.Indexer {
	return i.add(lw, object, plural, nil, func(err error) error { return err })
}

// AddRanges adds ServiceCIDR objects. An older API server has none: then known must say that the
// caller knows the ranges of cluster IPs anyway.
func (i *Informers) AddRanges(lw cache.ListerWatcherWithContext, known bool) cache.Indexer {
	absent := make(chan struct{})
	once := sync.OnceFunc(func() { close(absent) })
	return i.add(lw, &networkingv1.ServiceCIDR{}, "servicecidrs", absent, func(err error) error {
		switch {
		case !apierrors.IsNotFound(err):
			return err
		case known:
			once()
			return nil
		}
		return errNoRanges
	})
}

func (i *Informers) add(lw cache.ListerWatcherWithContext, object runtime.Object, plural string, absent chan struct{}, judge func(error) error) cache.Indexer {
	watched := noted(lw, func(err error) { i.trouble.set(plural, judge(err)) })
	a := added{cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(watched, lw), object,
		cache.SharedIndexInformerOptions{ObjectDescription: plural}), absent}
	i.all = append(i.all, a)
	return a.GetIndexer()
}

// Trouble returns the reason why some objects are not seen; "" = all are watched, or Run has not
// begun. Any goroutine may ask.
func (i *Informers) Trouble() string { return i.trouble.String() }

// Run lists and watches until ctx ends. It calls listed once, when everything has been listed, and
// changed after that and after each change; that is called by any goroutine and must not block.
func (i *Informers) Run(ctx context.Context, changed, listed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, a := range i.all {
		// the trouble has the error of the request
		err := errors.Join(a.SetTransform(slim), a.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
		if err != nil {
			return fmt.Errorf("set up informer: %w", err)
		}
		_, err = a.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
		running.Go(func() { a.RunWithContext(ctx) })
	}
	for _, a := range i.all {
		select {
		case <-a.HasSyncedChecker().Done():
		case <-a.absent:
			i.log.Info("ServiceCIDR objects not used: the API server has none")
		case <-ctx.Done():
			return nil
		}
	}
	listed()
	changed()
	<-ctx.Done()
	return nil
}

// slim keeps of Nodes their networks and addresses.
func slim(object any) (any, error) {
	if n, ok := object.(*corev1.Node); ok {
		kept := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: n.Spec.PodCIDRs}, Status: corev1.NodeStatus{Addresses: n.Status.Addresses}}
		kept.Name, kept.ResourceVersion = n.Name, n.ResourceVersion
		return kept, nil
	}
	return object, nil
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
			if options.ResourceVersion == "0" {
				options.ResourceVersion = "" // as old as the cache of the API server
			}
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
