package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/stage"
)

// cluster sends objects of any kind to an API server.
type cluster struct {
	*controlplane.Plane
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func start(t *testing.T) *cluster {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	plane := controlplane.Start(t, bin)
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Plane: plane, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(plane.Admin.Discovery()))}
}

// create creates an object, or asks the API server what it would say.
func (c *cluster) create(t *testing.T, object *unstructured.Unstructured, dryRun bool) error {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = c.client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(t.Context(), object, options)
	return err
}

// definition makes the kinds of the Prometheus operator known, without their schema.
func definition(kind, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".monitoring.coreos.com"},
		"spec": map[string]any{
			"group": "monitoring.coreos.com", "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// TestDryRun: the API server takes every object of every overlay, and knows each of their fields.
func TestDryRun(t *testing.T) {
	c, dir := start(t), copied(t)
	for kind, plural := range map[string]string{"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"} {
		if err := c.create(t, definition(kind, plural), false); err != nil {
			t.Fatal(err)
		}
	}
	overlays, err := filepath.Glob(filepath.Join(dir, "overlays", "*"))
	if err != nil || len(overlays) != len(directories)-2 {
		t.Fatalf("overlays %v, %v: want %d", overlays, err, len(directories)-2)
	}
	namespaced := map[string]bool{}
	for _, name := range append(slices.Clone(directories), "connector", "addresses", "example-cni") {
		for _, object := range stage.RenderManifests(t, filepath.Join(dir, name)) {
			if object.GetKind() == "Namespace" && !namespaced[object.GetName()] {
				// the others need it, also in a dry run
				if err := c.create(t, object.DeepCopy(), false); err != nil {
					t.Fatal(err)
				}
				namespaced[object.GetName()] = true
				continue
			}
			what := name + ": " + object.GetKind() + " " + object.GetName()
			controlplane.Eventually(t, what, func() string { // a new kind is known after a moment
				c.mapper.Reset()
				err := c.create(t, object, true)
				switch {
				case err == nil, object.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err):
					return ""
				case apierrors.IsNotFound(err), strings.Contains(err.Error(), "no matches for kind"):
					return err.Error()
				}
				t.Fatalf("%s: %v", what, err)
				return ""
			})
		}
	}
}

// agentOf returns the DaemonSet and the configuration of the agent among the objects of a
// directory.
func agentOf(t *testing.T, objects []*unstructured.Unstructured) (set appsv1.DaemonSet, config string) {
	t.Helper()
	for _, o := range objects {
		switch {
		case o.GetKind() == "DaemonSet":
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &set, true); err != nil {
				t.Fatal(err)
			}
		case o.GetKind() == "ConfigMap" && strings.HasPrefix(o.GetName(), "troupe-agent-"):
			config, _, _ = unstructured.NestedString(o.Object, "data", "agent.yaml")
		}
	}
	if set.Name == "" || config == "" {
		t.Fatalf("no DaemonSet with its configuration among %d objects", len(objects))
	}
	return set, config
}

// TestFlags: the agent takes the configuration and the flags of every overlay. It is started
// without the name of its node, which is then the only thing that it complains about.
func TestFlags(t *testing.T) {
	troupe, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := copied(t)
	for _, name := range directories {
		t.Run(name, func(t *testing.T) {
			set, config := agentOf(t, stage.RenderManifests(t, filepath.Join(dir, name)))
			if name == "overlays/files" {
				// there is none
				config = strings.Replace(config, `apiServer: "https://192.0.2.1:6443"`, `apiServer: ""`, 1)
			}
			file := filepath.Join(t.TempDir(), "agent.yaml")
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			arguments := slices.Clone(set.Spec.Template.Spec.Containers[0].Args)
			for i, a := range arguments {
				a = strings.ReplaceAll(a, "/etc/troupe/agent.yaml", file)
				a = strings.ReplaceAll(a, "$(NODE_NAME)", "")
				arguments[i] = strings.ReplaceAll(a, "$(ENDPOINTS)", "https://192.0.2.11:2379")
			}
			want := "nodeName: is required"
			if arguments[0] == "cleanup" { // needs no node, only a VPP
				want = "no connection to VPP"
				arguments = append(arguments, "--vpp-api-socket="+filepath.Join(t.TempDir(), "none"), "--http-address=", "--timeout=1s")
			}
			out, err := exec.CommandContext(t.Context(), troupe, arguments...).CombinedOutput()
			if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); err == nil || len(lines) != 1 || !strings.Contains(lines[0], want) {
				t.Errorf("%s: %v\n%s", strings.Join(arguments, " "), err, out)
			}
		})
	}
}
