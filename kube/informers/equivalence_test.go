package informers

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/messages"
)

// fromFiles returns the snapshot of the file source for these objects: Decode, Select and Store.
func fromFiles(t *testing.T, objects kubetest.Objects) *messages.Snapshot {
	t.Helper()
	decoded, problems := files.Decode(bytes.NewReader(objects.List(t)), "cluster")
	if len(problems) > 0 {
		t.Fatalf("the file source has problems: %v", problems)
	}
	return kubetest.Meaning(kube.Collect("n1", decoded.Select("n1"), nil))
}

// local replaces the name of this node in the objects by the node name of these tests.
func local(objects kubetest.Objects, name string) kubetest.Objects {
	for _, n := range objects.Nodes {
		if n.Name == name {
			n.Name = "n1"
		}
	}
	for _, p := range objects.Pods {
		if p.Spec.NodeName == name {
			p.Spec.NodeName = "n1"
		}
	}
	for _, s := range objects.EndpointSlices {
		for i := range s.Endpoints {
			if node := s.Endpoints[i].NodeName; node != nil && *node == name {
				n1 := "n1"
				s.Endpoints[i].NodeName = &n1
			}
		}
	}
	return objects
}

func (r *running) wantSnapshot(want *messages.Snapshot) {
	r.t.Helper()
	got := kubetest.Meaning(r.settle().Snapshot())
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		r.t.Errorf("the sources differ (-files +API server):\n%s", diff)
	}
}

// TestSourcesAgree: the same objects in files and in an API server give the same snapshot, at the
// start and after every step.
func TestSourcesAgree(t *testing.T) {
	for _, c := range kubetest.Load(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			objects := local(c.Objects, c.Objects.Nodes[0].Name)
			run(t, objects.All(), nil, func(r *running) {
				r.wantSnapshot(fromFiles(t, objects))
				for _, step := range c.Steps {
					step.Apply = local(step.Apply, "test-node")
					r.apply(step)
					objects = after(objects, step)
					r.wantSnapshot(fromFiles(t, objects))
				}
			})
		})
	}
}

// TestSourcesAgreeOnTheRealDump compares the sources with the dump of a real cluster, for each of
// its nodes.
func TestSourcesAgreeOnTheRealDump(t *testing.T) {
	for _, n := range kubetest.DumpObjects(t).Nodes {
		t.Run(n.Name, func(t *testing.T) {
			objects := local(kubetest.DumpObjects(t), n.Name)
			run(t, objects.All(), nil, func(r *running) { r.wantSnapshot(fromFiles(t, objects)) })
		})
	}
}

// apply carries the step out on the server.
func (r *running) apply(step kubetest.Step) {
	r.t.Helper()
	ctx, client := context.Background(), r.client
	exists := func(err error) bool {
		if !apierrors.IsAlreadyExists(err) {
			r.ok(err)
			return false
		}
		return true
	}
	for _, s := range step.Apply.Services {
		if _, err := client.Services(s.Namespace).Create(ctx, s, metav1.CreateOptions{}); exists(err) {
			_, err = client.Services(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
			r.ok(err)
		}
	}
	for _, s := range step.Apply.EndpointSlices {
		if _, err := client.EndpointSlices(s.Namespace).Create(ctx, s, metav1.CreateOptions{}); exists(err) {
			_, err = client.EndpointSlices(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
			r.ok(err)
		}
	}
	for _, n := range step.Apply.Nodes {
		_, err := client.Nodes().Update(ctx, n, metav1.UpdateOptions{})
		r.ok(err)
	}
	for _, key := range step.Delete.Services {
		namespace, name, _ := strings.Cut(key, "/")
		r.ok(client.Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	for _, key := range step.Delete.EndpointSlices {
		namespace, name, _ := strings.Cut(key, "/")
		r.ok(client.EndpointSlices(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
}

// after returns the objects after the step.
func after(objects kubetest.Objects, step kubetest.Step) kubetest.Objects {
	objects.Services = replaced(objects.Services, step.Apply.Services, step.Delete.Services)
	objects.EndpointSlices = replaced(objects.EndpointSlices, step.Apply.EndpointSlices, step.Delete.EndpointSlices)
	objects.Nodes = replaced(objects.Nodes, step.Apply.Nodes, nil)
	return objects
}

func replaced[T metav1.Object](old, apply []T, remove []string) []T {
	drop := map[string]bool{}
	for _, key := range remove {
		drop[key] = true
	}
	for _, o := range apply {
		drop[o.GetNamespace()+"/"+o.GetName()] = true
	}
	var out []T
	for _, o := range old {
		if !drop[o.GetNamespace()+"/"+o.GetName()] {
			out = append(out, o)
		}
	}
	return append(out, apply...)
}
