package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// TestTroubles: a cause appears once, without the URL of the request, and ends with the next watch.
func TestTroubles(t *testing.T) {
	var s troubles
	if got := s.String(); got != "" {
		t.Errorf("%q", got)
	}
	refused := &url.Error{Op: "Get", URL: "https://192.0.2.1/api/v1/services?resourceVersion=7", Err: errors.New("connection refused")}
	s.set("services", refused)
	s.set("nodes", refused)
	s.set("endpointslices", errors.New("forbidden"))
	if got, want := s.String(), "watch nodes, services: connection refused; watch endpointslices: forbidden"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, plural := range []string{"services", "nodes", "endpointslices"} {
		s.set(plural, nil)
	}
	if got := s.String(); got != "" {
		t.Errorf("%q", got)
	}
}

// TestInformersBeginConsistently: the first list is not that of the cache of the API server, which
// may be old; a kind that is missing is told, except ranges that are known anyway.
func TestInformersBeginConsistently(t *testing.T) {
	var versions []string
	there := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		versions = append(versions, options.ResourceVersion)
		return &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
	}
	missing := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "servicecidrs"}, "")
	}
	for name, tt := range map[string]struct {
		known bool
		want  string // trouble
	}{"known": {true, ""}, "not known": {false, "watch servicecidrs: " + errNoRanges.Error()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				versions = nil
				ctx, stop := context.WithCancel(t.Context())
				i, listed, ended := NewInformers(slog.New(slog.DiscardHandler)), false, make(chan error)
				i.Add(withoutStream{there}, &corev1.Service{}, "services")
				i.AddRanges(withoutStream{missing}, tt.known)
				go func() { ended <- i.Run(ctx, func() {}, func() { listed = true }) }()
				synctest.Wait()
				if got := i.Trouble(); got != tt.want || listed != tt.known || len(versions) != 1 || versions[0] != "" {
					t.Errorf("trouble %q, listed %t, lists of the versions %q", got, listed, versions)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// withoutStream lists as an older API server does, and watches without news.
type withoutStream struct {
	list func(context.Context, metav1.ListOptions) (runtime.Object, error)
}

func (w withoutStream) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return w.list(ctx, o)
}

func (w withoutStream) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (withoutStream) IsWatchListSemanticsUnSupported() bool { return true }
