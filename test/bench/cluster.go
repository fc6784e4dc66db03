package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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
	_, err := c.plane.Admin.CoreV1().Nodes().Create(ctx, thisNode(), metav1.CreateOptions{})
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
	if _, err := client.CoreV1().Services(namespace).Create(ctx, serviceOf(i), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, sliceOf(i), metav1.CreateOptions{})
	return err
}

// replace gives the first endpoint of a service another address.
func (c *cluster) replace(ctx context.Context, service int, address string) error {
	patch := fmt.Sprintf(`[{"op":"replace","path":"/endpoints/0/addresses/0","value":%q}]`, address)
	_, err := c.plane.Admin.DiscoveryV1().EndpointSlices(namespace).Patch(ctx, fmt.Sprintf("s%d-1", service), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// watch watches the EndpointSlices, from now on.
func (c *cluster) watch(ctx context.Context) (watch.Interface, error) {
	client := c.plane.Admin.DiscoveryV1().EndpointSlices(namespace)
	now, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watch EndpointSlices: %w", err)
	}
	return stream, nil
}

// arguments are those of an agent that reads this cluster.
func (c *cluster) arguments() ([]string, error) {
	kubeconfig, err := c.credentials("agent")
	return []string{"--kubeconfig", kubeconfig}, err
}

// credentials satisfies server.
func (c *cluster) credentials(client string) (kubeconfig string, err error) {
	err = c.run(func() { kubeconfig = c.plane.Kubeconfig(client, controlplane.Credentials) })
	return kubeconfig, err
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
