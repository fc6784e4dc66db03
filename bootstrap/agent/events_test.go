package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/messages"
)

// kubernetes is an API server with one node; it counts what it is asked to write about events.
type kubernetes struct {
	*testing.T
	*kubetest.Clientset
	mu sync.Mutex
	// creations and patches of events by the object they are about, "kind/name"
	writes map[string]int
}

func newKubernetes(t *testing.T) *kubernetes {
	t.Helper()
	k := &kubernetes{T: t, Clientset: kubetest.NewClientset(), writes: map[string]int{}}
	k.PrependReactor("*", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		handled, object, err := clienttesting.ObjectReaction(k.Tracker)(action)
		if e, ok := object.(*eventsv1.Event); ok && err == nil && slices.Contains([]string{"create", "patch"}, action.GetVerb()) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.writes[e.Regarding.Kind+"/"+e.Regarding.Name]++
		}
		return handled, object, err
	})
	_, err := k.Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-a", UID: "node"},
		Spec:       corev1.NodeSpec{PodCIDR: "10.1.1.0/24", PodCIDRs: []string{"10.1.1.0/24"}},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.16.1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// serve creates a service with one endpoint on the node; number makes its addresses and its age.
func (k *kubernetes) serve(name string, number int, change func(*corev1.Service)) {
	k.Helper()
	ip, port, ready, node := fmt.Sprintf("10.96.7.%d", number), int32(8080), true, "shop-a"
	internal, external := corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyCluster
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.Unix(int64(1_700_000_000+number), 0),
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			InternalTrafficPolicy: &internal, ExternalTrafficPolicy: external, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{Name: "x", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
	if change != nil {
		change(s)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name + "-1", UID: types.UID("slice-of-" + name), Labels: map[string]string{discoveryv1.LabelServiceName: name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &s.Spec.Ports[0].Name, Protocol: &s.Spec.Ports[0].Protocol, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{fmt.Sprintf("10.1.1.%d", number)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: &node,
		}},
	}
	if _, err := k.EndpointSlices("shop").Create(k.Context(), slice, metav1.CreateOptions{}); err != nil {
		k.Fatal(err)
	}
	if _, err := k.Services("shop").Create(k.Context(), s, metav1.CreateOptions{}); err != nil {
		k.Fatal(err)
	}
}

// change changes a service.
func (k *kubernetes) change(name string, change func(*corev1.Service)) {
	k.Helper()
	s, err := k.Services("shop").Get(k.Context(), name, metav1.GetOptions{})
	if err == nil {
		change(s)
		_, err = k.Services("shop").Update(k.Context(), s, metav1.UpdateOptions{})
	}
	if err != nil {
		k.Fatal(err)
	}
}

// agent starts an agent of the node.
func (k *kubernetes) agent() *Agent {
	k.Helper()
	cfg := everything(k.T)
	a, err := startWith(cfg, quiet(), func(a *Agent) (kube.Source, *apiserver.Client, error) {
		client := k.Client()
		return informers.New(client, informers.Config{NodeName: cfg.NodeName}, quiet()), client, nil
	})
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { stop(k.T, a) })
	return a
}

// about lists the events that the API server has about a service, once the agent has written all
// that it has to.
func (k *kubernetes) about(a *Agent, name string) []eventsv1.Event {
	k.Helper()
	if _, _, err := a.Statuses(k.Context()); err != nil {
		// introspection has passed on what it heard before
		k.Fatal(err)
	}
	eventually(k.T, "every new event is written", func() bool {
		// the count of a repeated one may wait
		s := a.events.(*events.Writer).Stats()
		return s.Written+s.Adopted+s.Lost() >= s.Recorded-s.Repeated
	})
	list, err := k.Events("").List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != name })
}

// settledOn waits until a status of a service fulfils a condition and its renderers are done.
func settledOn(t *testing.T, a *Agent, key, what string, holds func(*messages.ServiceStatus) bool) {
	t.Helper()
	eventually(t, key+" "+what, func() bool {
		statuses, _, err := a.Statuses(t.Context())
		if err != nil {
			return false
		}
		for _, s := range statuses {
			if s.GetKey() == key && len(s.GetRenders()) > 0 && holds(s) {
				return !slices.ContainsFunc(s.GetRenders(), func(r *messages.RenderAck) bool { return r.GetState() == messages.RenderState_RENDER_PENDING })
			}
		}
		return false
	})
}

// contested reports whether a service is told of a conflict.
func contested(s *messages.ServiceStatus) bool {
	return slices.ContainsFunc(s.GetRenders(), func(r *messages.RenderAck) bool { return len(r.GetConflicts()) > 0 })
}

const sharedIP = "203.0.113.9"

func shared(s *corev1.Service) { s.Spec.ExternalIPs = []string{sharedIP} }

// TestEventsOnServices: a conflict, an approximation and a part that cannot be rendered are one
// event each, on the right object; neither restarted actors nor a restarted agent repeat them, and
// a service without problems has none.
func TestEventsOnServices(t *testing.T) {
	k := newKubernetes(t)
	k.serve("plain", 1, nil)
	k.serve("older", 2, shared)
	k.serve("younger", 3, shared)
	k.serve("sticky", 4, func(s *corev1.Service) {
		seconds := int32(600)
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	})
	k.serve("signalling", 5, func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP })
	names := []string{"plain", "older", "younger", "sticky", "signalling"}
	check := func(when string, a *Agent) {
		t.Helper()
		for name, want := range map[string]struct{ kind, reason, note string }{
			"younger":    {"Warning", "ConflictingExternalIP", "service shop/older, which is older or has the smaller name, has " + sharedIP + ":80/TCP"},
			"sticky":     {"Normal", "Approximated", "a client stays with its endpoint per frontend"},
			"signalling": {"Warning", "FailedToRender", "ports[x].protocol is not served"},
			"plain":      {}, "older": {},
		} {
			got := k.about(a, name)
			if want.reason == "" {
				if len(got) > 0 {
					t.Errorf("%s: %s: %d events, first %s: %s", when, name, len(got), got[0].Reason, got[0].Note)
				}
				continue
			}
			if len(got) != 1 {
				t.Errorf("%s: %s: %d events, want one: %v", when, name, len(got), reasons(got))
				continue
			}
			e := got[0]
			object := corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}
			if e.Reason != want.reason || e.Type != want.kind || e.Regarding != object || !strings.Contains(e.Note, want.note) || e.Series != nil ||
				e.ReportingController != "troupe" || e.ReportingInstance != "troupe-shop-a" || e.Namespace != "shop" {
				t.Errorf("%s: %s: %+v", when, name, e)
			}
		}
	}
	all := func(a *Agent) {
		t.Helper()
		ready(t, a)
		quiescent(t, a)
		for _, name := range names {
			settledOn(t, a, "shop/"+name, "is settled", func(s *messages.ServiceStatus) bool { return contested(s) == (name == "younger") })
		}
	}
	a := k.agent()
	all(a)
	check("at first", a)
	for _, path := range []string{address.Service("shop/younger"), address.Introspect, address.Renderer("nat44"), address.Registry} {
		before := a.Restarts(path)
		if err := a.Kill(path); err != nil {
			t.Fatal(err)
		}
		eventually(t, "restart of "+path, func() bool { return a.Restarts(path) > before && a.Working(path) })
		all(a)
	}
	check("after restarts of actors", a)
	stop(t, a)
	again := k.agent()
	all(again)
	check("after a restart of the agent", again)
	started := map[string]int{}
	for _, e := range k.about(again, "shop-a") {
		started[e.Reason]++
	}
	if want := map[string]int{"Starting": 2, "RendererChosen": 2}; !maps.Equal(started, want) {
		t.Errorf("on the node after two starts: %v", started)
	}
}

func reasons(list []eventsv1.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Reason+": "+e.Note)
	}
	return out
}

// TestFlappingServiceDoesNotFlood: a conflict that comes and goes is two events in each five
// minutes (ObjectInterval), and news that is never the same is cut off.
func TestFlappingServiceDoesNotFlood(t *testing.T) {
	const times = 30
	k := newKubernetes(t)
	k.serve("older", 2, shared)
	k.serve("younger", 3, shared)
	k.serve("odd", 4, nil)
	a := k.agent()
	ready(t, a)
	began := time.Now()
	for i := range times {
		settledOn(t, a, "shop/younger", "has lost", contested)
		k.change("younger", func(s *corev1.Service) { s.Spec.ExternalIPs = nil })
		settledOn(t, a, "shop/younger", "has given up", func(s *messages.ServiceStatus) bool { return !contested(s) })
		k.change("younger", shared)
		wrong := fmt.Sprintf("no address %d", i)
		k.change("odd", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{wrong} })
		settledOn(t, a, "shop/odd", "has another problem", func(s *messages.ServiceStatus) bool {
			return slices.ContainsFunc(s.GetErrors(), func(e *messages.ObjectError) bool { return strings.Contains(e.GetMessage(), wrong) })
		})
	}
	settledOn(t, a, "shop/younger", "has lost", contested)
	minutes := 1 + int(time.Since(began)/time.Minute)
	stats := a.events.(*events.Writer).Stats()
	if stats.Recorded < 2*times {
		t.Fatalf("%d events were recorded, the test tests nothing: %+v", stats.Recorded, stats)
	}
	for name, most := range map[string]int{"younger": 2 * (1 + minutes/5), "odd": 10 + minutes/5} { // ObjectBurst
		if got := k.about(a, name); len(got) == 0 || len(got) > most {
			t.Errorf("%s: %d events, want 1 to %d: %v", name, len(got), most, reasons(got))
		}
		k.mu.Lock()
		if writes := k.writes["Service/"+name]; writes > most*minutes {
			t.Errorf("%s: %d writes in %d minutes", name, writes, minutes)
		}
		k.mu.Unlock()
	}
	if stats.Repeated < times-2 || stats.Limited < times-12 {
		t.Errorf("stats %+v", stats)
	}
}

// TestEventsOfQuarantine: a service that is put aside, and follows changes again, is told where its
// users look.
func TestEventsOfQuarantine(t *testing.T) {
	k := newKubernetes(t)
	k.serve("web", 1, nil)
	a := k.agent()
	ready(t, a)
	path, key := address.Service("shop/web"), "shop/web"
	settledOn(t, a, key, "is settled", func(*messages.ServiceStatus) bool { return true })
	eventually(t, "quarantine", func() bool {
		_ = a.Kill(path) // it may be down already
		return a.inQuarantine(key)
	})
	eventually(t, "an event", func() bool { return len(k.about(a, "web")) == 1 })
	if e := k.about(a, "web")[0]; e.Reason != "Quarantined" || e.Regarding.UID != "uid-of-web" || e.Regarding.Namespace != "shop" {
		t.Errorf("%+v", e)
	}
	k.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
	eventually(t, "it is over", func() bool { return len(k.about(a, "web")) == 2 })
	if got := reasons(k.about(a, "web")); !slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, "Recovered: ") }) {
		t.Errorf("events %v", got)
	}
}
