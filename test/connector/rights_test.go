package connector_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestRights: the connectors need each verb of deploy/kubernetes/connector/rbac.yaml and no other.
// With all of them nothing is refused, and each is used. Without one of them the API server refuses
// that request, and no other; the connector says which, and goes on when it is granted. The API
// server streams no lists, as older ones.
func TestRights(t *testing.T) {
	o := stage(t)
	o.StopAPI()
	o.StartAPI("--feature-gates=WatchList=false")
	l := &lives{town: o}
	l.again()
	for _, step := range []func(){l.more, l.instance, l.user, l.fewer, l.less, l.again, l.lease, l.conflict, l.again} {
		step()
		l.settled()
	}
	rights := controlplane.RightsOf(o.Plane, namespace, account)
	controlplane.Eventually(t, "use of all rights", func() string {
		allowed, refused := o.Requests()
		if len(refused) > 0 {
			t.Fatalf("refused: %v", refused)
		}
		for _, r := range rights.All() {
			if allowed[r] == 0 {
				return fmt.Sprintf("no request to %s %s: %v", r.Verb, r.Resource, allowed)
			}
		}
		return ""
	})
	life := map[string]func(){ // what makes the connector use the right
		"create services": l.more, "update services": l.user, "delete services": l.less,
		"create endpointslices": l.more, "update endpointslices": l.instance, "delete endpointslices": l.fewer,
		"create leases": l.lease, "create events": l.conflict,
	}
	for _, right := range rights.All() {
		resource, _, _ := strings.Cut(right.Resource, ".")
		t.Logf("without %s %s", right.Verb, resource)
		rights.Set(right, false)
		_, before := o.Requests()
		said := len(l.c.Output())
		use := life[right.Verb+" "+resource]
		if use == nil {
			use, said = l.again, 0
		}
		use()
		controlplane.Eventually(t, "refusal", func() string {
			_, refused := o.Requests()
			for r, times := range refused {
				if times > before[r] && r != right {
					t.Fatalf("refused: %v", r)
				}
			}
			if refused[right] == before[right] {
				return "nothing is refused"
			}
			for line := range strings.Lines(l.c.Output()[said:]) {
				if strings.Contains(line, "forbidden") && strings.Contains(line, resource) {
					return ""
				}
			}
			return "the connector does not say that " + resource + " is forbidden:\n" + l.c.Tail()
		})
		rights.Set(right, true)
		l.settled()
	}
}

// lives is a connector whose life uses all its rights.
type lives struct {
	*town
	c      *connector
	starts int
	// services are the lines of the catalog after the first ones.
	services []string
	count    int
}

// tell writes the catalog.
func (l *lives) tell() {
	l.Helper()
	l.catalog(append([]string{"a 80 192.0.2.1", "b 80 192.0.2.2", "c 80 192.0.2.3", "d 80 192.0.2.4", "taken 80 192.0.2.5"}, l.services...)...)
}

// settled waits until the cluster is as the catalog says.
func (l *lives) settled() {
	l.Helper()
	want := append([]string{"a 80 192.0.2.1", "b 80 192.0.2.2", "c 80 192.0.2.3", "d 80 192.0.2.4"}, l.services...)
	l.want(append(want, "taken 8080")...)
	l.c.leads()
}

// again starts the connector anew.
func (l *lives) again() {
	l.Helper()
	if l.c == nil {
		l.foreign("taken")
		l.tell()
	} else {
		l.c.Signal(syscall.SIGTERM) // it gives the Lease back
		controlplane.Eventually(l, "end of the connector", func() string {
			if !l.c.Ended() {
				return "it runs"
			}
			return ""
		})
	}
	l.starts++
	l.c = l.connect(fmt.Sprint("c", l.starts))
}

// more adds a service to the catalog.
func (l *lives) more() {
	l.count++
	l.services = append(l.services, fmt.Sprintf("s%02d 80 192.0.2.100", l.count))
	l.tell()
}

// less takes one out.
func (l *lives) less() {
	l.services = l.services[1:]
	l.tell()
}

// fewer takes the instances out of one, so that its slice goes.
func (l *lives) fewer() {
	words := strings.Fields(l.services[0])
	l.services[0] = words[0] + " 80"
	l.tell()
}

// instance changes the address of an instance.
func (l *lives) instance() {
	l.count++
	words := strings.Fields(l.services[0])
	l.services[0] = fmt.Sprintf("%s 80 192.0.2.%d", words[0], 100+l.count%100)
	l.tell()
}

// user changes a port of a Service.
func (l *lives) user() {
	l.Helper()
	s := l.service("a")
	s.Spec.Ports[0].Port = 81
	l.update(s)
}

// lease deletes the Lease.
func (l *lives) lease() {
	l.Helper()
	if err := l.Admin.CoordinationV1().Leases(namespace).Delete(l.Context(), account, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

// conflict replaces the foreign Service by another one.
func (l *lives) conflict() {
	l.Helper()
	l.drop("taken")
	l.foreign("taken")
}
