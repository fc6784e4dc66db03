package informers

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// withServiceCIDRs configures the source of a test to watch ServiceCIDRs.
func withServiceCIDRs(r *running) {
	r.source.watched = append(r.source.watched, serviceCIDRs(r.client.Client(), r.source.log))
}

func serviceCIDR(name string, networks ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: networks}}
}

// TestServiceCIDRs: the union of all objects, in the first snapshot and after each change.
func TestServiceCIDRs(t *testing.T) {
	start := []runtime.Object{serviceCIDR("kubernetes", "10.96.0.0/12", "fd00::/108"), serviceCIDR("more", "10.200.0.0/16")}
	run(t, start, withServiceCIDRs, func(r *running) {
		want := func(networks ...string) {
			t.Helper()
			if view := r.settle(); view.Snapshots != 1 || !slices.Equal(view.Node.GetServiceCidrs(), networks) {
				t.Errorf("%d snapshots, networks %q, want %q", view.Snapshots, view.Node.GetServiceCidrs(), networks)
			}
		}
		want("10.200.0.0/16", "10.96.0.0/12", "fd00::/108")
		if n := r.mirror.View().Updates; n != 0 {
			t.Errorf("%d updates after the first snapshot", n)
		}
		cidrs := r.client.ServiceCIDRs()
		_, err := cidrs.Create(r.t.Context(), serviceCIDR("again", "10.201.0.0/16", "10.200.0.0/16"), metav1.CreateOptions{})
		r.ok(err)
		want("10.200.0.0/16", "10.201.0.0/16", "10.96.0.0/12", "fd00::/108")
		r.ok(cidrs.Delete(r.t.Context(), "kubernetes", metav1.DeleteOptions{}))
		want("10.200.0.0/16", "10.201.0.0/16")
	})
}

// TestWithoutServiceCIDRs: missing ServiceCIDRs, or a missing right to list or watch them, delay
// nothing. The source asks rarely and logs once. When ServiceCIDRs appear, it uses them.
func TestWithoutServiceCIDRs(t *testing.T) {
	resource := schema.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no role"))
	for name, tc := range map[string]struct {
		verb    string
		refusal error
	}{
		"no such resource": {"list", apierrors.NewNotFound(resource, "")}, "no list": {"list", forbidden}, "no watch": {"watch", forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			var there atomic.Bool
			var asked atomic.Int64
			prepare := func(r *running) {
				withServiceCIDRs(r)
				refuse := func() (bool, error) {
					asked.Add(1)
					return !there.Load(), tc.refusal
				}
				if tc.verb == "watch" {
					r.client.PrependWatchReactor("servicecidrs", func(clienttesting.Action) (bool, watch.Interface, error) {
						refused, err := refuse()
						return refused, nil, err
					})
					return
				}
				r.client.PrependReactor("list", "servicecidrs", func(clienttesting.Action) (bool, runtime.Object, error) {
					refused, err := refuse()
					return refused, nil, err
				})
			}
			run(t, []runtime.Object{service("web", "10.96.0.1"), serviceCIDR("kubernetes", "10.96.0.0/12")}, prepare, func(r *running) {
				if view := r.want(`a/web=10.96.0.1; 0 nodes, self ""`); !view.Healthy() || len(view.Healths) != 1 {
					t.Errorf("without them: %+v", view.Healths)
				}
				time.Sleep(2 * time.Hour)
				if n := asked.Load(); n < 15 || n > 22 {
					t.Errorf("asked %d times in two hours", n)
				}
				if lines := r.log.String(); strings.Count(lines, "\n") != 2 || strings.Count(lines, "resource not used") != 1 || len(r.mirror.View().Healths) != 1 {
					t.Errorf("health %+v, the log has\n%s", r.mirror.View().Healths, lines)
				}
				there.Store(true)
				time.Sleep(2 * mostRest)
				if view := r.settle(); !slices.Equal(view.Node.GetServiceCidrs(), []string{"10.96.0.0/12"}) {
					t.Errorf("networks %q", view.Node.GetServiceCidrs())
				}
			})
		})
	}
}
