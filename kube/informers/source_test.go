package informers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// running is a source in virtual time, with its deliveries.
type running struct {
	t      *testing.T
	client *kubetest.Clientset
	source *Source
	mirror *kubetest.Mirror
	log    *bytes.Buffer // deliveries of the worker; complete when it waits
	stop   context.CancelFunc
	done   chan error
}

// run runs a test in virtual time with a source that watches a fake API server. prepare may change
// the server before the source starts.
func run(t *testing.T, objects []runtime.Object, prepare, test func(*running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := kubetest.NewClientset(objects...)
		log := &bytes.Buffer{}
		r := &running{
			t: t, client: client, mirror: kubetest.NewMirror(), log: log, done: make(chan error, 1),
			source: New(client.Client(), Config{NodeName: "n1"}, slog.New(slog.NewTextHandler(log, nil))),
		}
		if prepare != nil {
			prepare(r)
		}
		var ctx context.Context
		ctx, r.stop = context.WithCancel(t.Context())
		go func() { r.done <- r.source.Run(ctx, r.mirror) }()
		test(r)
		r.stop()
		if err := <-r.done; err != nil {
			t.Errorf("Run: %v", err)
		}
		r.mirror.Check(t)
	})
}

// settle lets the source work until it waits, and lets two pauses between commits end: a watch that
// is opened after a commit is a signal for another one.
func (r *running) settle() kubetest.View {
	r.t.Helper()
	synctest.Wait()
	time.Sleep(2 * interval)
	synctest.Wait()
	view := r.mirror.View()
	diff := cmp.Diff(r.source.store.Snapshot().GetServices(), view.Snapshot().GetServices(), protocmp.Transform())
	if view.Snapshots > 0 && diff != "" {
		r.t.Errorf("the receiver differs (-source +receiver):\n%s", diff)
	}
	return view
}

func (r *running) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func service(name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}}},
	}
}

func endpointSlice(name, service, address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}, Annotations: map[string]string{},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func pod(name, node, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{PodIP: ip},
	}
}

// describe returns the content of a view as text.
func describe(v kubetest.View) string {
	var parts []string
	for _, s := range v.Snapshot().GetServices() {
		text := s.GetKey()
		if s.GetService() != nil {
			text += "=" + strings.Join(s.GetService().GetClusterIps(), ",")
		}
		for _, slice := range s.GetSlices() {
			for _, e := range slice.GetEndpoints() {
				text += "+" + e.GetAddress()
			}
		}
		parts = append(parts, text)
	}
	if v.Node != nil {
		parts = append(parts, fmt.Sprintf("%d nodes, self %q", len(v.Node.GetNodes()), v.Node.GetSelf().GetName()))
		for _, p := range v.Node.GetPods() {
			parts = append(parts, "pod "+p.GetName())
		}
	}
	return strings.Join(parts, "; ")
}

func (r *running) want(text string) kubetest.View {
	r.t.Helper()
	view := r.settle()
	if got := describe(view); got != text {
		r.t.Errorf("the source delivered: %s\nwant: %s", got, text)
	}
	return view
}

func TestAddUpdateDelete(t *testing.T) {
	start := []runtime.Object{service("web", "10.96.0.1"), endpointSlice("web-1", "web", "10.1.0.1"), node("n1"), pod("p", "n1", "10.1.0.1"), pod("q", "n2", "10.1.0.2")}
	run(t, start, nil, func(r *running) {
		ctx, client := r.t.Context(), r.client
		slices := r.client.EndpointSlices("a")
		view := r.want(`a/web=10.96.0.1+10.1.0.1; 1 nodes, self "n1"; pod p`)
		if view.Snapshots != 1 || view.Updates != 0 || !view.Healthy() || len(view.Healths) != 1 {
			t.Errorf("at the start: %+v", view)
		}
		_, err := client.Services("a").Create(ctx, service("api", "10.96.0.2"), metav1.CreateOptions{})
		r.ok(err)
		_, err = slices.Update(ctx, endpointSlice("web-1", "web", "10.1.0.3"), metav1.UpdateOptions{})
		r.ok(err)
		_, err = client.Nodes().Create(ctx, node("n2"), metav1.CreateOptions{})
		r.ok(err)
		_, err = client.Pods("a").Create(ctx, pod("r", "n1", "10.1.0.3"), metav1.CreateOptions{})
		r.ok(err)
		r.want(`a/api=10.96.0.2; a/web=10.96.0.1+10.1.0.3; 2 nodes, self "n1"; pod p; pod r`)
		r.ok(client.Services("a").Delete(ctx, "web", metav1.DeleteOptions{}))
		r.ok(client.Pods("a").Delete(ctx, "p", metav1.DeleteOptions{}))
		r.ok(client.Nodes().Delete(ctx, "n1", metav1.DeleteOptions{}))
		r.want(`a/api=10.96.0.2; a/web+10.1.0.3; 1 nodes, self ""; pod r`)
		r.ok(slices.Delete(ctx, "web-1", metav1.DeleteOptions{}))
		view = r.want(`a/api=10.96.0.2; 1 nodes, self ""; pod r`)
		if view.Snapshots != 1 {
			t.Errorf("%d snapshots", view.Snapshots)
		}
		r.source.Refresh()
		r.source.Refresh()
		if view := r.settle(); view.Snapshots != 2 && view.Snapshots != 3 {
			t.Errorf("%d snapshots after two requests, want one or two more", view.Snapshots)
		}
	})
}

// TestObjectsThatStopToMatch: the fake server, unlike a real one, sends such objects as updates, so
// the source itself must filter.
func TestObjectsThatStopToMatch(t *testing.T) {
	start := []runtime.Object{service("web", "10.96.0.1"), endpointSlice("web-1", "web", "10.1.0.1"), pod("p", "n1", "10.1.0.1")}
	run(t, start, nil, func(r *running) {
		ctx, client := r.t.Context(), r.client
		r.want(`a/web=10.96.0.1+10.1.0.1; 0 nodes, self ""; pod p`)
		foreign := service("web", "10.96.0.1")
		foreign.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
		_, err := client.Services("a").Update(ctx, foreign, metav1.UpdateOptions{})
		r.ok(err)
		r.want(`a/web+10.1.0.1; 0 nodes, self ""; pod p`)
		headless := endpointSlice("web-1", "web", "10.1.0.1")
		headless.Labels[corev1.IsHeadlessService] = ""
		_, err = r.client.EndpointSlices("a").Update(ctx, headless, metav1.UpdateOptions{})
		r.ok(err)
		finished := pod("p", "n1", "10.1.0.1")
		finished.Status.Phase = corev1.PodSucceeded
		_, err = client.Pods("a").Update(ctx, finished, metav1.UpdateOptions{})
		r.ok(err)
		r.want(`0 nodes, self ""`)
		_, err = client.Services("a").Update(ctx, service("web", "None"), metav1.UpdateOptions{})
		r.ok(err)
		r.want(`0 nodes, self ""`)
		_, err = client.Services("a").Update(ctx, service("web", "10.96.0.1"), metav1.UpdateOptions{})
		r.ok(err)
		r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
	})
}

// TestNothingBeforeEverythingIsListed holds back the list of pods.
func TestNothingBeforeEverythingIsListed(t *testing.T) {
	var release chan struct{}
	hold := func(r *running) {
		release = make(chan struct{})
		api := r.source.watched[3].api
		held := &cache.ListWatch{WatchFuncWithContext: api.WatchWithContext}
		held.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			<-release
			return api.ListWithContext(ctx, options)
		}
		r.source.watched[3].api = cache.ToListerWatcherWithContext(cache.ToListWatcherWithWatchListSemantics(held, api))
	}
	run(t, []runtime.Object{service("web", "10.96.0.1")}, hold, func(r *running) {
		if view := r.settle(); view.Snapshots != 0 || len(view.Healths) != 0 {
			t.Errorf("before the list of pods: %+v", view)
		}
		r.source.Refresh()
		_, err := r.client.Services("a").Create(r.t.Context(), service("api", "10.96.0.2"), metav1.CreateOptions{})
		r.ok(err)
		if view := r.settle(); view.Snapshots != 0 {
			t.Errorf("before the list of pods, in spite of Refresh: %+v", view)
		}
		close(release)
		view := r.want(`a/api=10.96.0.2; a/web=10.96.0.1; 0 nodes, self ""`)
		if view.Updates != 0 || !view.Healthy() {
			t.Errorf("after it: %+v", view)
		}
	})
}

// TestServerDownAtTheStart: bad health with the reason, then everything.
func TestServerDownAtTheStart(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, errors.New("connection refused")
	}
	run(t, []runtime.Object{service("web", "10.96.0.1")}, func(r *running) { r.client.PrependReactor("list", "nodes", refuse) }, func(r *running) {
		view := r.settle()
		if view.Snapshots != 0 || len(view.Healths) == 0 || view.Healthy() || !strings.Contains(view.Healths[0].Reason, "connection refused") {
			t.Errorf("while the server is down: %+v", view)
		}
		down.Store(false)
		time.Sleep(time.Minute) // of virtual time: longer than any backoff
		view = r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
		if !view.Healthy() {
			t.Errorf("while the server is up: %+v", view.Healths)
		}
	})
}

// deaf replaces the first watch of a resource by a watch that gets no events, and returns it. Later
// watches work, unless they are refused.
func deaf(c *kubetest.Clientset, resource string, refuse *atomic.Bool) *watch.FakeWatcher {
	w := watch.NewFakeWithOptions(watch.FakeOptions{})
	var later atomic.Bool
	c.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		if !later.Swap(true) {
			return true, w, nil
		}
		return refuse.Load(), nil, errors.New("no route to host")
	})
	return w
}

// TestWatchExpires: while the watch got no events, one service was added, one changed and one
// deleted. After 410 Gone the list delivers all three changes, the deletion as a tombstone. Until
// then everything stays.
func TestWatchExpires(t *testing.T) {
	var w *watch.FakeWatcher
	var refuse atomic.Bool
	start := []runtime.Object{service("goes", "10.96.0.1"), service("changes", "10.96.0.2"), service("stays", "10.96.0.3")}
	run(t, start, func(r *running) { w = deaf(r.client, "services", &refuse) }, func(r *running) {
		before := r.want(`a/changes=10.96.0.2; a/goes=10.96.0.1; a/stays=10.96.0.3; 0 nodes, self ""`)
		services := r.client.Services("a")
		r.ok(services.Delete(r.t.Context(), "goes", metav1.DeleteOptions{}))
		_, err := services.Update(r.t.Context(), service("changes", "10.96.0.9"), metav1.UpdateOptions{})
		r.ok(err)
		_, err = services.Create(r.t.Context(), service("comes", "10.96.0.4"), metav1.CreateOptions{})
		r.ok(err)
		if view := r.settle(); view.Updates != 0 {
			t.Errorf("the deaf watch brought %d updates", view.Updates)
		}
		gone := apierrors.NewResourceExpired("too old resource version").Status()
		w.Error(&gone)
		view := r.settle()
		if view.Healthy() || !strings.Contains(view.Healths[len(view.Healths)-1].Reason, "services: the watch expired (410 Gone)") {
			t.Errorf("health after 410: %+v", view.Healths)
		}
		time.Sleep(time.Minute)
		view = r.want(`a/changes=10.96.0.9; a/comes=10.96.0.4; a/stays=10.96.0.3; 0 nodes, self ""`)
		if !view.Healthy() || view.Snapshots != 1 || view.Updates != 3 {
			t.Errorf("after the list: %+v", view)
		}
		if view.Services["a/stays"] != before.Services["a/stays"] {
			t.Error("a service that did not change was delivered again")
		}
	})
}

// TestWatchBreaks: the server closes the watch and refuses another; the cache stays and answers.
func TestWatchBreaks(t *testing.T) {
	var w *watch.FakeWatcher
	var refuse atomic.Bool
	run(t, []runtime.Object{service("web", "10.96.0.1")}, func(r *running) { w = deaf(r.client, "services", &refuse) }, func(r *running) {
		r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
		refuse.Store(true)
		w.Stop()
		time.Sleep(time.Minute)
		view := r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
		if view.Healthy() || !strings.Contains(view.Healths[len(view.Healths)-1].Reason, "the API server does not answer: no route to host") {
			t.Errorf("while the watch is refused: %+v", view.Healths)
		}
		r.source.Refresh()
		if view := r.settle(); view.Snapshots != 2 || len(view.Services) != 1 {
			t.Errorf("snapshot during the outage: %+v", view)
		}
		refuse.Store(false)
		time.Sleep(time.Minute)
		if view := r.settle(); !view.Healthy() {
			t.Errorf("after the outage: %+v", view.Healths)
		}
	})
}

// TestCoalescing: the first change is delivered at once. Changes that follow within the interval
// are delivered together, with the trigger time of the first.
func TestCoalescing(t *testing.T) {
	run(t, []runtime.Object{endpointSlice("web-1", "web", "10.1.0.0")}, nil, func(r *running) {
		r.settle()
		update := func(i int) {
			slice := endpointSlice("web-1", "web", fmt.Sprintf("10.1.0.%d", i))
			slice.Annotations[corev1.EndpointsLastChangeTriggerTime] = time.Unix(int64(1000+i), 0).UTC().Format(time.RFC3339)
			_, err := r.client.EndpointSlices("a").Update(r.t.Context(), slice, metav1.UpdateOptions{})
			r.ok(err)
			synctest.Wait()
		}
		update(1)
		view := r.mirror.View()
		if view.Updates != 1 || describe(view) != `a/web+10.1.0.1; 0 nodes, self ""` {
			t.Errorf("the first change was delayed: %s", describe(view))
		}
		for i := 2; i < 100; i++ {
			update(i)
		}
		if n := r.mirror.View().Updates; n != 1 {
			t.Errorf("%d deliveries within the interval", n)
		}
		view = r.want(`a/web+10.1.0.99; 0 nodes, self ""`)
		if view.Updates != 2 {
			t.Errorf("%d deliveries, want 2", view.Updates)
		}
		if got := view.Services["a/web"].GetSlices()[0].GetTriggered(); got != time.Unix(1002, 0).UnixNano() {
			t.Errorf("triggered at %v, want that of the first change that waited", time.Unix(0, got).UTC())
		}
	})
}

// TestSelectors: the selectors in the requests to a real server.
func TestSelectors(t *testing.T) {
	run(t, nil, nil, func(r *running) {
		r.settle()
		got := map[string]string{}
		for _, action := range r.client.Actions() {
			if list, ok := action.(clienttesting.ListAction); ok {
				restrictions := list.GetListRestrictions()
				got[action.GetResource().Resource] = restrictions.Labels.String() + " " + restrictions.Fields.String()
			}
		}
		want := map[string]string{
			"services":       "!service.kubernetes.io/service-proxy-name spec.clusterIP!=None,spec.type!=ExternalName",
			"endpointslices": "!service.kubernetes.io/headless ",
			"nodes":          " ",
			"pods":           " spec.nodeName=n1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("selectors (-want +got):\n%s", diff)
		}
	})
}
