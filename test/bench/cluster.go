package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// writers is how many requests the command has under way while it creates objects.
const writers = 16

// cluster is a real API server with the services, in place of files.
type cluster struct {
	*stage
	plane *controlplane.Plane
}

// newCluster starts a control plane and creates a node and so many services.
func newCluster(ctx context.Context, services int) (c *cluster, err error) {
	bin, err := build.ControlPlane(ctx, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	if err != nil {
		return nil, err
	}
	c = &cluster{stage: &stage{}}
	err = c.run(func() {
		c.plane = controlplane.Start(c, bin)
		c.plane.Namespace(namespace)
	})
	if err == nil {
		err = c.fill(ctx, services)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// fill creates the objects.
func (c *cluster) fill(ctx context.Context, services int) error {
	_, err := c.plane.Admin.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: corev1.NodeSpec{PodCIDR: "10.1.1.0/24", PodCIDRs: []string{"10.1.1.0/24"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	var next atomic.Int64
	ended := make(chan error)
	for range writers {
		go func() {
			for i := int(next.Add(1)) - 1; i < services; i = int(next.Add(1)) - 1 {
				if err := create(ctx, c.plane.Admin, i); err != nil {
					ended <- fmt.Errorf("create service %d: %w", i, err)
					return
				}
			}
			ended <- nil
		}()
	}
	for range writers {
		err = errors.Join(err, <-ended)
	}
	return err
}

// create creates a service without a selector, and its slice.
func create(ctx context.Context, client kubernetes.Interface, i int) error {
	name, tcp := fmt.Sprintf("s%d", i), corev1.ProtocolTCP
	_, err := client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: tcp}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	http, port, ready := "http", int32(8080), true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &http, Port: &port, Protocol: &tcp}},
	}
	for e := range endpoints {
		address, node := endpoint(i*endpoints + e)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: &node,
		})
	}
	_, err = client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// arguments are those of an agent that reads this cluster.
func (c *cluster) arguments() (arguments []string, err error) {
	err = c.run(func() {
		arguments = []string{"--kubeconfig", c.plane.Kubeconfig("agent", controlplane.Credentials)}
	})
	return arguments, err
}

// stage stands in for a test where package controlplane wants one.
type stage struct {
	testing.TB // not set: only the methods below are called
	cleanups   []func()
	failed     bool
}

// failure is the panic of a failed step, which run returns.
type failure struct{ error }

// run runs a step and returns its failure.
func (s *stage) run(step func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err, s.failed = p.error, true
		default:
			panic(p)
		}
	}()
	step()
	return nil
}

// close ends the processes and removes their files.
func (s *stage) close() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	s.cleanups = nil
}

// Helper satisfies testing.TB.
func (s *stage) Helper() {}

// Failed satisfies testing.TB.
func (s *stage) Failed() bool { return s.failed }

// Cleanup satisfies testing.TB.
func (s *stage) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Logf satisfies testing.TB.
func (s *stage) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatal satisfies testing.TB.
func (s *stage) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf satisfies testing.TB.
func (s *stage) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// TempDir satisfies testing.TB.
func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Context satisfies testing.TB.
func (s *stage) Context() context.Context { return context.Background() }
