package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/manifests"
)

// template renders the chart as helm template does.
func template(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	chart, err := loader.Load(filepath.Join(build.Root(), "deploy", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "troupe", Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, document := range strings.Split("\n"+files[name], "\n---\n") {
			if strings.TrimSpace(document) != "" {
				objects = append(objects, object(t, document))
			}
		}
	}
	return objects
}

// comparable returns objects as text by kind and name, without what both ways of rendering may
// choose: the hash in the name of the configuration, its comments and the order of its fields.
func comparable(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	named := map[string]string{}
	for _, o := range objects {
		set, config := "", map[string]any{}
		if text, found, _ := unstructured.NestedString(o.Object, "data", "agent.yaml"); found {
			if err := yaml.Unmarshal([]byte(text), &config); err != nil {
				t.Fatal(err)
			}
			set = o.GetName()
			o.SetName("troupe-agent-HASH")
			o.Object["data"] = config
		}
		if volumes, found, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes"); found {
			for _, v := range volumes {
				if _, is, _ := unstructured.NestedString(v.(map[string]any), "configMap", "name"); is {
					v.(map[string]any)["configMap"] = map[string]any{"name": "troupe-agent-HASH"}
				}
			}
			if err := unstructured.SetNestedSlice(o.Object, volumes, "spec", "template", "spec", "volumes"); err != nil {
				t.Fatal(err)
			}
		}
		if set != "" && !strings.HasPrefix(set, "troupe-agent-") {
			t.Errorf("the configuration has the name %s", set)
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		named[o.GetKind()+" "+o.GetName()] = string(text)
	}
	return named
}

// TestChart: without values the chart is the base; with values it differs in what they say.
func TestChart(t *testing.T) {
	base := comparable(t, manifests.Render(t, filepath.Join(build.Root(), "deploy", "kubernetes", "base")))
	if diff := cmp.Diff(base, comparable(t, template(t, ""))); diff != "" || len(base) < 8 {
		t.Errorf("%d objects in the base; the chart differs (-base +chart):\n%s", len(base), diff)
	}
	objects := template(t, `{image: {repository: registry.example.com/troupe, tag: v1}, args: [--enable-chaos], resources: {limits: {memory: 1Gi}},
		config: {kubernetes: {apiServer: "https://192.0.2.1:6443"}, services: {serviceCIDRs: [10.96.0.0/12]}}}`)
	set, config := agentOf(t, objects)
	agent := set.Spec.Template.Spec.Containers[0]
	if agent.Image != "registry.example.com/troupe:v1" || agent.Args[len(agent.Args)-1] != "--enable-chaos" || agent.Resources.Limits.Memory().String() != "1Gi" {
		t.Errorf("image %s, args %v, resources %v", agent.Image, agent.Args, agent.Resources)
	}
	if !strings.Contains(config, "apiServer: https://192.0.2.1:6443") || !strings.Contains(config, "- 10.96.0.0/12") || !strings.Contains(config, "type: kubernetes") {
		t.Errorf("configuration:\n%s", config)
	}
}
