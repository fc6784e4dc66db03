package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// TestA9Drift: a user's change of the connector's fields is reverted; the user's own fields stay.
func TestA9Drift(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Service)
	}{
		{"selector", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "evil"} }},
		{"port added", func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "x", Port: 1}) }},
		{"port replaced", func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 1}} }},
		{"target port", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("http") }},
		{"type", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }},
		{"traffic policy", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}},
		{"name at the source", func(s *corev1.Service) { delete(s.Annotations, AnnotationName) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t)
			cl.reconcile(options, web("192.0.2.1"))
			before := cl.services["web"].DeepCopy()
			edited := before.DeepCopy()
			edited.Labels["team"], edited.Annotations["note"] = "shop", "mine"
			c.change(edited)
			cl.services["web"] = edited
			writes, _ := cl.reconcile(options, web("192.0.2.1"))
			equal(t, "writes", writes, "update Service web")
			after := cl.services["web"]
			if after.Labels["team"] != "shop" || after.Annotations["note"] != "mine" || after.Annotations[AnnotationName] != "web" {
				t.Errorf("labels %v, annotations %v", after.Labels, after.Annotations)
			}
			if diff := cmp.Diff(before.Spec, after.Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			writes, _ = cl.reconcile(options, web("192.0.2.1"))
			equal(t, "writes", writes)
		})
	}
	cl := newCluster(t)
	cl.reconcile(options, web("192.0.2.1"))
	for name, s := range cl.slices {
		edited := s.DeepCopy()
		edited.Labels[discoveryv1.LabelServiceName], edited.Labels["team"] = "other", "shop"
		edited.Endpoints[0].Addresses[0] = "192.0.2.66"
		cl.slices[name] = edited
	}
	cl.reconcile(options, web("192.0.2.1"))
	equal(t, "contents", cl.contents("web"), "http=192.0.2.1:80/TCP")
	clear(cl.slices)
	cl.reconcile(options, web("192.0.2.1"))
	equal(t, "contents", cl.contents("web"), "http=192.0.2.1:80/TCP")
	// Created anew it is another Service, and its slices belong to the new one.
	delete(cl.services, "web")
	cl.reconcile(options, web("192.0.2.1"))
	cl.reconcile(options, web("192.0.2.1"))
	for _, s := range cl.slices {
		if s.OwnerReferences[0].UID != cl.services["web"].UID {
			t.Errorf("owner %v", s.OwnerReferences)
		}
	}
}

// TestA10ForeignService: a foreign Service is not changed, gets no endpoints, and is reported.
// After it is gone, the connector's Service takes the name.
func TestA10ForeignService(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"no labels":       nil,
		"another manager": {LabelManagedBy: "helm", LabelSource: "yaml"},
		"another source":  {LabelManagedBy: Manager, LabelSource: "consul"},
		"another cluster": {LabelManagedBy: Manager, LabelSource: "yaml", LabelCluster: "c2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.services["web"] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "outside", Labels: labels, UID: "u", ResourceVersion: "1"}}
			other := c.services["web"].DeepCopy()
			other.Name = "unrelated"
			c.services["unrelated"] = other
			c.slices["web-abc"] = &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-abc", Namespace: "outside", Labels: labels}}
			writes, problems := c.reconcile(options, web("192.0.2.1"))
			equal(t, "writes", writes)
			if len(problems) != 1 || problems[0].Reason != catalog.ReasonForeign || problems[0].Source != "yaml" || !strings.Contains(problems[0].Message, "outside/web ") {
				t.Errorf("problems %v", problems)
			}
			equal(t, "owned", Owned(c.observed(), "yaml", options))
			delete(c.services, "web")
			writes, problems = c.reconcile(options, web("192.0.2.1"))
			if len(writes) != 2 || len(problems) > 0 {
				t.Errorf("writes %v, problems %v", writes, problems)
			}
		})
	}
}

// TestForeignSlice: a slice of the name that is needed stays foreign.
func TestForeignSlice(t *testing.T) {
	c := newCluster(t)
	c.reconcile(options, web("192.0.2.1"))
	for name, s := range c.slices {
		foreign := s.DeepCopy()
		delete(foreign.Labels, LabelManagedBy)
		c.slices[name] = foreign
	}
	writes, problems := c.reconcile(options, web("192.0.2.2"))
	equal(t, "writes", writes)
	if len(problems) != 1 || problems[0].Reason != catalog.ReasonForeign {
		t.Errorf("problems %v", problems)
	}
}

// TestKeepAndDelete: an unknown service stays unchanged. An unwanted service is deleted with its
// slices. A service that Kubernetes is deleting gets no writes.
func TestKeepAndDelete(t *testing.T) {
	c := newCluster(t)
	db := web("192.0.2.9")
	db.Name = "db-with-dashes"
	c.reconcile(options, web("192.0.2.1"), db)
	writes, _ := c.reconcile(options, catalog.Service{Name: "web", Unknown: true}, catalog.Service{Name: db.Name, Unknown: true}, catalog.Service{Name: "x", Unknown: true})
	equal(t, "writes", writes)
	writes, _ = c.reconcile(options, web("192.0.2.1"))
	if len(writes) != 2 || writes[0] != "delete Service db-with-dashes" || !strings.HasPrefix(writes[1], "delete EndpointSlice db-with-dashes-") {
		t.Errorf("writes %v", writes)
	}
	now := metav1.Now()
	going := c.services["web"].DeepCopy()
	going.DeletionTimestamp = &now
	c.services["web"] = going
	writes, _ = c.reconcile(options, web("192.0.2.1", "192.0.2.2"))
	for _, w := range writes {
		if !strings.HasPrefix(w, "delete EndpointSlice") {
			t.Errorf("write %s of a Service that is being deleted", w)
		}
	}
	equal(t, "owned", Owned(c.observed(), "yaml", options))
}

// TestInputsAreNotChanged: objects of informers are shared.
func TestInputsAreNotChanged(t *testing.T) {
	c := newCluster(t)
	c.reconcile(options, web("192.0.2.1", "192.0.2.2"))
	seen := c.observed()
	before := fmt.Sprintf("%+v %+v", seen.Services[0], seen.Slices[0])
	sources := []catalog.Sourced{{Source: "yaml", Services: []catalog.Service{{Name: "web", Instances: []catalog.Instance{{Address: "192.0.2.3", Ports: map[string]uint16{"a": 1}}}}}}}
	changes := Diff(Render(sources, seen, options), seen, sources, options)
	if len(changes.Work) != 1 {
		t.Errorf("work %v", changes.Work)
	}
	if after := fmt.Sprintf("%+v %+v", seen.Services[0], seen.Slices[0]); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

// TestA28ReconcileProperty: random snapshots through the gate, random failures of writes, restarts,
// and foreign objects. No foreign object is written, and every written object is valid. When the
// failures end, the cluster equals the last complete snapshot, and stays so without a write.
func TestA28ReconcileProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"web", "Web", "a.b", "a_b", "db", "foreign"}
		c := newCluster(t)
		c.services["foreign"] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "outside", UID: "f"}}
		g := catalog.NewGate(30, 100_000)
		var last catalog.Snapshot
		steps := rapid.IntRange(1, 15).Draw(t, "steps")
		for range steps {
			last = catalog.Snapshot{Complete: rapid.Bool().Draw(t, "complete")}
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "names") {
				last.Services = append(last.Services, drawService(t, name))
			}
			last = catalog.Clean(last, catalog.DefaultLimits())
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				g = catalog.NewGate(30, 100_000)
			}
			g.Offer(last, Owned(c.observed(), "yaml", options))
			c.refuse = func(Write) bool { return rapid.IntRange(0, 3).Draw(t, "refused") == 0 }
			c.reconcile(options, g.Wanted(Owned(c.observed(), "yaml", options))...)
		}
		c.refuse = nil
		last.Complete, last.Repeated = true, true
		for range 5 {
			g.Offer(last, Owned(c.observed(), "yaml", options))
			c.reconcile(options, g.Wanted(Owned(c.observed(), "yaml", options))...)
		}
		writes, _ := c.reconcile(options, g.Wanted(Owned(c.observed(), "yaml", options))...)
		if len(writes) > 0 {
			t.Fatalf("still writes %v", writes)
		}
		if f := c.services["foreign"]; f == nil || f.UID != "f" || len(f.Spec.Ports) > 0 || len(c.contents("foreign")) > 0 {
			t.Fatalf("the foreign Service was touched: %v", f)
		}
		fresh := newCluster(t)
		fresh.services["foreign"] = c.services["foreign"]
		fresh.reconcile(options, last.Services...)
		for name := range fresh.services {
			if c.services[name] == nil {
				t.Fatalf("no Service %s", name)
			}
			if got, want := fmt.Sprint(c.contents(name)), fmt.Sprint(fresh.contents(name)); got != want {
				t.Fatalf("%s has %s, want %s", name, got, want)
			}
			if got, want := fmt.Sprint(c.ports(name)), fmt.Sprint(fresh.ports(name)); got != want {
				t.Fatalf("%s has ports %s, want %s", name, got, want)
			}
		}
		// More may be there: a service that exists at the source without a known port.
		for name, s := range c.services {
			exists := fresh.services[name] != nil
			for _, l := range last.Services {
				exists = exists || l.Name == s.Annotations[AnnotationName]
			}
			if !exists {
				t.Fatalf("Service %s is still there", name)
			}
		}
	})
}

// drawService draws a service, sometimes an unusable one.
func drawService(t *rapid.T, name string) catalog.Service {
	s := catalog.Service{Name: name}
	port := rapid.SampledFrom([]string{"", "http", "Admin_UI", "dns"})
	for range rapid.IntRange(0, 2).Draw(t, "ports") {
		s.Ports = append(s.Ports, catalog.Port{
			Name: port.Draw(t, "port"), Number: rapid.Uint16Range(0, 2).Draw(t, "number"),
			Protocol: rapid.SampledFrom([]string{"", "UDP", "ICMP"}).Draw(t, "protocol"),
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "instances") {
		i := catalog.Instance{
			Address: rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "2001:db8::1", "127.0.0.1", "host", ""}).Draw(t, "address"),
			State:   catalog.State(rapid.IntRange(0, 2).Draw(t, "state")),
			Zone:    rapid.SampledFrom([]string{"", "a", "no zone!"}).Draw(t, "zone"),
		}
		if rapid.Bool().Draw(t, "own") {
			i.Ports = map[string]uint16{port.Draw(t, "port"): rapid.Uint16Range(0, 3).Draw(t, "number")}
		}
		s.Instances = append(s.Instances, i)
	}
	return s
}

// FuzzA29Render: for any names of services, ports and instances only valid objects are written, and
// the same input again causes no write.
func FuzzA29Render(f *testing.F) {
	f.Add("web", "http", uint16(80), "TCP", "192.0.2.1", "zone", uint16(8080))
	f.Add("", "\x00", uint16(0), "icmp", "::ffff:127.0.0.1", "-", uint16(0))
	f.Fuzz(func(t *testing.T, name, port string, number uint16, protocol, address, zone string, own uint16) {
		s := catalog.Clean(catalog.Snapshot{Services: []catalog.Service{{
			Name: name, Ports: []catalog.Port{{Name: port, Number: number, Protocol: protocol}, {Name: "http", Number: 80}},
			Instances: []catalog.Instance{{ID: name, Address: address, Zone: zone}, {Address: "192.0.2.9", Ports: map[string]uint16{port: own}}},
		}, {Name: port, Instances: []catalog.Instance{{Address: address, Ports: map[string]uint16{name: own}}}}}}, catalog.DefaultLimits())
		o := options
		o.Flomesh = true
		c := newCluster(t)
		c.reconcile(o, s.Services...)
		writes, _ := c.reconcile(o, s.Services...)
		equal(t, "writes", writes)
	})
}
