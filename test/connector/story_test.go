package connector_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestFollows: A1, A3, A7, A9, A10, A15 and A22 on a real API server with its controllers.
func TestFollows(t *testing.T) {
	o := stage(t)
	o.catalog("web 80 192.0.2.1 192.0.2.2", "db 5432 192.0.2.9", "bad 80 127.0.0.1", "inside 80 10.96.0.1")
	t.Log("dry run")
	out, err := exec.CommandContext(t.Context(), troupe, o.arguments("--dry-run")...).Output()
	const asks = 1 // a creation that the API server does not carry out: is the namespace there?
	if text := string(out); err != nil || !strings.Contains(text, "create    Service         web") || !strings.Contains(text, "127.0.0.1") || o.writes() != asks {
		t.Fatalf("%v, %d writes\n%s", err, o.writes(), text)
	}
	c := o.connect("a")
	c.ready()
	o.want("bad 80", "db 5432 192.0.2.9", "inside 80", "web 80 192.0.2.1 192.0.2.2")
	web := o.service("web")
	if web.Spec.ClusterIP == "" || web.Spec.ClusterIP == corev1.ClusterIPNone || len(web.Spec.Selector) > 0 || web.Labels["app.kubernetes.io/managed-by"] != account {
		t.Errorf("service %+v", web)
	}

	t.Log("A3: an instance is unhealthy: one write, of the slice")
	before := o.writes()
	o.catalog("web 80 192.0.2.1 !192.0.2.2", "db 5432 192.0.2.9", "bad 80 127.0.0.1", "inside 80 10.96.0.1")
	o.want("bad 80", "db 5432 192.0.2.9", "inside 80", "web 80 !192.0.2.2 192.0.2.1")
	if n := o.writes() - before; n != 1 {
		t.Errorf("%d writes, want 1", n)
	}

	t.Log("A9: what users change or delete comes back, their labels stay")
	web = o.service("web")
	web.Labels["mine"], web.Spec.Ports[0].Port, web.Spec.Selector = "yes", 81, map[string]string{"app": "x"}
	o.update(web)
	o.want("bad 80", "db 5432 192.0.2.9", "inside 80", "web 80 !192.0.2.2 192.0.2.1")
	if web = o.service("web"); web.Labels["mine"] != "yes" || len(web.Spec.Selector) > 0 {
		t.Errorf("labels %v, selector %v", web.Labels, web.Spec.Selector)
	}
	o.drop("db") // A22: its slices go with it
	controlplane.Eventually(t, "another db", func() string {
		if s, err := o.Admin.CoreV1().Services(namespace).Get(t.Context(), "db", metav1.GetOptions{}); err != nil || s.UID == "" {
			return "it is gone"
		}
		return ""
	})
	o.want("bad 80", "db 5432 192.0.2.9", "inside 80", "web 80 !192.0.2.2 192.0.2.1")

	t.Log("A10: a foreign Service is not touched, one Event says so; after its deletion the name is taken")
	o.foreign("taken")
	o.catalog("web 80 192.0.2.1", "db 5432 192.0.2.9", "taken 80 192.0.2.7")
	// 2 of 4 vanished: they are held back
	o.want("bad 80", "db 5432 192.0.2.9", "inside 80", "taken 8080", "web 80 192.0.2.1")
	controlplane.Eventually(t, "event", func() string {
		list, err := o.Admin.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		var about []string
		for _, e := range list.Items {
			if e.ReportingController == "troupe" { // controllers of Kubernetes write some, too
				about = append(about, e.Reason+" "+e.Regarding.Name)
			}
		}
		if err != nil || !slices.Equal(about, []string{"NameConflict taken"}) {
			return fmt.Sprintf("events %q, error %v", about, err)
		}
		return ""
	})
	o.drop("taken")
	o.want("bad 80", "db 5432 192.0.2.9", "inside 80", "taken 80 192.0.2.7", "web 80 192.0.2.1")

	t.Log("A7: what vanished is held back until an operator confirms")
	if out, err := exec.CommandContext(t.Context(), troupe, "connector", "confirm", "yaml", "--control-socket", c.socket).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "bad") {
		t.Fatalf("%v\n%s", err, out)
	}
	o.want("db 5432 192.0.2.9", "taken 80 192.0.2.7", "web 80 192.0.2.1")

	t.Log("A5, A15: a connector that starts anew without a catalog deletes and writes nothing, with the same one neither")
	c.Kill()
	before = o.writes()
	o.garbage()
	c = o.connect("b")
	c.leads()
	c.Kill()
	o.catalog("web 80 192.0.2.1", "db 5432 192.0.2.9", "taken 80 192.0.2.7")
	c = o.connect("c")
	c.ready()
	c.leads()
	o.want("db 5432 192.0.2.9", "taken 80 192.0.2.7", "web 80 192.0.2.1")
	if n := o.writes() - before; n != 0 {
		t.Errorf("%d writes, want 0", n)
	}
}

// TestA21TakesOver: of two connectors one writes; when it is killed the other one does.
func TestA21TakesOver(t *testing.T) {
	o := stage(t)
	o.catalog("web 80 192.0.2.1")
	a := o.connect("a")
	a.ready()
	o.want("web 80 192.0.2.1")
	b := o.connect("b")
	b.ready()
	if _, err := o.Admin.CoreV1().Services(namespace).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	holder := o.holder()
	a.Kill()
	o.catalog("web 80 192.0.2.2")
	o.want("web 80 192.0.2.2")
	if now := o.holder(); now == holder || now == "" {
		t.Errorf("%q holds the Lease, before %q", now, holder)
	}
}

// holder returns who holds the Lease.
func (o *town) holder() string {
	o.Helper()
	lease, err := o.Admin.CoordinationV1().Leases(namespace).Get(o.Context(), account, metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

func (o *town) garbage() {
	o.Helper()
	o.write(filepath.Join(o.dir, "catalog.yaml"), "services: [{nme: x}]\n")
}

func (o *town) service(name string) *corev1.Service {
	o.Helper()
	s, err := o.Admin.CoreV1().Services(namespace).Get(o.Context(), name, metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return s
}

func (o *town) update(s *corev1.Service) {
	o.Helper()
	if _, err := o.Admin.CoreV1().Services(namespace).Update(o.Context(), s, metav1.UpdateOptions{}); err != nil {
		o.Fatal(err)
	}
}

func (o *town) drop(name string) {
	o.Helper()
	if err := o.Admin.CoreV1().Services(namespace).Delete(o.Context(), name, metav1.DeleteOptions{}); err != nil {
		o.Fatal(err)
	}
}

// foreign creates a Service that is not the connector's.
func (o *town) foreign(name string) {
	o.Helper()
	if _, err := o.Admin.CoreV1().Services(namespace).Create(o.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}},
	}, metav1.CreateOptions{}); err != nil {
		o.Fatal(err)
	}
}
