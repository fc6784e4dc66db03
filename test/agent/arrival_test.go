package agent_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

const (
	arrivals = 5000
	writers  = 8
)

// TestArrival creates 5,000 services with one endpoint slice each, as fast as the API server takes
// them: all of them come to be in sync, and none of them is worth an Event.
func TestArrival(t *testing.T) {
	n := stage(t)
	n.Namespace("many")
	n.Namespace("few")
	_, atRest := n.counted()
	begun := time.Now()
	jobs := make(chan int)
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for i := range jobs {
				if _, err := n.arrive("many", i); err != nil {
					t.Errorf("create service %d: %v", i, err)
				}
			}
		})
	}
	for i := range arrivals {
		jobs <- i
	}
	close(jobs)
	wait.Wait()
	t.Logf("%d services written after %s", arrivals, time.Since(begun).Round(time.Second))
	n.rows(atRest + arrivals)
	n.ready()
	controlplane.Eventually(t, "services in sync", func() string {
		var services struct{ Total int }
		if problem := n.get("/api/v1/services?namespace=many&state=in-sync", &services); problem != "" {
			return problem
		}
		if services.Total != arrivals {
			return fmt.Sprintf("%d of %d", services.Total, arrivals)
		}
		return ""
	})
	t.Logf("all in sync after %s", time.Since(begun).Round(time.Second))
	got := n.told()
	slices.Sort(got)
	if !slices.Equal(got, []string{"Node n1: RendererChosen", "Node n1: Starting"}) {
		t.Errorf("%d events of the agent, want those of its start alone: %q", len(got), got[:min(len(got), 5)])
	}
}

// told lists the events of the agent as "kind name: reason".
func (n *node) told() []string {
	n.Helper()
	list, err := n.Admin.EventsV1().Events("").List(n.Context(), metav1.ListOptions{})
	if err != nil {
		n.Fatalf("list events: %v", err)
	}
	var told []string
	for _, e := range list.Items {
		if e.ReportingController == "troupe" {
			told = append(told, fmt.Sprintf("%s %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Reason))
		}
	}
	return told
}

// arrive creates a service without a selector and its slice, and returns its row. No controller is
// needed for that.
func (n *node) arrive(namespace string, i int) (string, error) {
	name := fmt.Sprintf("s%d", i)
	made, err := n.Admin.CoreV1().Services(namespace).Create(n.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	port, ready, empty, address := int32(8080), true, "", fmt.Sprintf("10.1.%d.%d", 2+i/250, 1+i%250)
	_, err = n.Admin.DiscoveryV1().EndpointSlices(namespace).Create(n.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &empty, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
	}, metav1.CreateOptions{})
	return row(made.Spec.ClusterIP, 80, address+":8080"), err
}
