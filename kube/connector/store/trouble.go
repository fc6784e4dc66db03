package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

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
