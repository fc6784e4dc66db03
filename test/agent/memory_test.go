package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
)

// rest is how long the agent has nothing to do before its memory is measured: two roll calls.
const rest = 70 * time.Second

// BenchmarkMemory measures the resident memory of the agent as it is in the image: its peak, and at
// rest, for 5,000 services with five endpoints each that exist before it starts. It measures once,
// whatever -benchtime says.
func BenchmarkMemory(b *testing.B) {
	program, err := build.Trimmed(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	n := prepare(b)
	n.Namespace("many")
	n.populate("many", arrivals)
	_, before := n.counted()
	begun := time.Now()
	n.launch(program)
	n.ready()
	took := time.Since(begun)
	n.rows(before + arrivals)
	time.Sleep(rest)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds(), "s-to-ready")
	b.ReportMetric(n.resident("VmHWM"), "MiB-peak")
	b.ReportMetric(n.resident("VmRSS"), "MiB-rest")
	b.Logf("peak %.1f MiB, at rest %.1f MiB (anonymous %.1f MiB)", n.resident("VmHWM"), n.resident("VmRSS"), n.resident("RssAnon"))
}

// populate creates services with a slice of five endpoints each, as the controllers write them.
func (n *node) populate(namespace string, count int) {
	n.Helper()
	jobs := make(chan int)
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for i := range jobs {
				if err := n.grown(namespace, i); err != nil {
					n.Errorf("create service %d: %v", i, err)
				}
			}
		})
	}
	for i := range count {
		jobs <- i
	}
	close(jobs)
	wait.Wait()
}

// grown creates a service of five endpoints; 230 nodes have them all.
func (n *node) grown(namespace string, i int) error {
	name := fmt.Sprintf("s%d", i)
	_, err := n.Admin.CoreV1().Services(namespace).Create(n.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	port, portName, yes, no := int32(8080), "http", true, false
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-x7k2p", Labels: map[string]string{discoveryv1.LabelServiceName: name, "app": name},
			Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05Z"},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
	for e := range 5 {
		on := fmt.Sprintf("n%d", 1+(i*5+e)%230) // 109 of them on this node
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.1.%d.%d", 1+(i*5+e)/250, 1+(i*5+e)%250)}, NodeName: &on,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("%s-5f7c9d-%d", name, e), UID: "0f0e0d0c-0b0a-4908-8706-050403020100"},
		})
	}
	_, err = n.Admin.DiscoveryV1().EndpointSlices(namespace).Create(n.Context(), slice, metav1.CreateOptions{})
	return err
}

// resident reads a figure of the agent's memory from /proc, in MiB.
func (n *node) resident(field string) float64 {
	n.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.agent.PID()))
	if err != nil {
		n.Fatalf("read memory of the agent: %v", err)
	}
	for line := range bytes.Lines(status) {
		if text, is := strings.CutPrefix(string(line), field+":"); is {
			kilobytes, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err != nil {
				n.Fatalf("%s: %v", field, err)
			}
			return kilobytes / 1024
		}
	}
	n.Fatalf("/proc has no %s", field)
	return 0
}
