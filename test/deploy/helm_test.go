package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/stage"
)

// release is how the chart is rendered: helm install -n networking.
var release = chartutil.ReleaseOptions{Name: stage.HelmRelease, Namespace: "networking", IsInstall: true}

// rendered renders the chart as helm template does, by name of the template.
func rendered(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart := stage.HelmChart(t)
	all, err := chartutil.ToRenderValues(chart, stage.HelmValues(t, values), release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// template returns the objects of the chart.
func template(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	files, err := rendered(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
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
			o.SetAnnotations(nil)
			o.SetLabels(nil)
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

// TestChart: without values the chart is the base in another namespace, and does not have the
// namespace itself; with values it differs in what they say.
func TestChart(t *testing.T) {
	base := comparable(t, stage.RenderManifests(t, filepath.Join(build.Root(), "deploy", "kubernetes", "base")))
	delete(base, "Namespace troupe-system")
	for name, text := range base {
		base[name] = strings.ReplaceAll(text, "namespace: troupe-system", "namespace: networking")
	}
	tag := "image: {tag: latest}"
	if diff := cmp.Diff(base, comparable(t, template(t, tag))); diff != "" || len(base) < 8 {
		t.Errorf("%d objects in the base; the chart differs (-base +chart):\n%s", len(base), diff)
	}
	objects := template(t, `{image: {repository: registry.example.com/troupe, tag: v1, pullPolicy: Always}, imagePullSecrets: [{name: registry}], args: [--enable-chaos],
		resources: {limits: {memory: 1Gi}}, env: [{name: GOGC, value: "50"}], nodeSelector: {troupe.dev/vpp: null, pool: vpp},
		tolerations: [{key: vpp, operator: Exists}], updateStrategy: {type: OnDelete}, hostRoute: {interface: vpp-host, gateway: 172.30.0.1}, monitoring: {enabled: true},
		config: {kubernetes: {apiServer: "https://192.0.2.1:6443"}, services: {serviceCIDRs: [10.96.0.0/12]}}}`)
	set, config := agentOf(t, objects)
	agent, pod := set.Spec.Template.Spec.Containers[0], set.Spec.Template.Spec
	if agent.Image != "registry.example.com/troupe:v1" || agent.ImagePullPolicy != "Always" || agent.Resources.Limits.Memory().String() != "1Gi" {
		t.Errorf("image %s, %s, resources %v", agent.Image, agent.ImagePullPolicy, agent.Resources)
	}
	if args := strings.Join(agent.Args, " "); !strings.HasSuffix(args, "--enable-chaos --metrics-bind-address=0.0.0.0:9993") {
		t.Errorf("args %s", args)
	}
	if len(agent.Env) != 3 || agent.Env[2].Name != "GOGC" || len(agent.Ports) != 1 || string(agent.SecurityContext.Capabilities.Add[0]) != "NET_ADMIN" {
		t.Errorf("env %v, ports %v, capabilities %v", agent.Env, agent.Ports, agent.SecurityContext.Capabilities)
	}
	if diff := cmp.Diff(map[string]string{"kubernetes.io/os": "linux", "pool": "vpp"}, pod.NodeSelector); diff != "" ||
		len(pod.Tolerations) != 1 || pod.Tolerations[0].Key != "vpp" || pod.ImagePullSecrets[0].Name != "registry" || set.Spec.UpdateStrategy.Type != "OnDelete" {
		t.Errorf("pod: %+v, strategy %v, selector (-want +got):\n%s", pod, set.Spec.UpdateStrategy, diff)
	}
	for _, want := range []string{"apiServer: https://192.0.2.1:6443", "- 10.96.0.0/12", "type: kubernetes", "interface: vpp-host"} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration has no %q:\n%s", want, config)
		}
	}
}

// TestChartParts: monitoring, the connector and the allocator of the chart are those of the
// manifests, with the values.
func TestChartParts(t *testing.T) {
	objects := comparable(t, template(t, `{monitoring: {enabled: true, labels: {release: prometheus}}, image: {tag: latest},
		connector: {enabled: true, namespace: outside, args: ["--source=consul=http://192.0.2.9:8500"]}, addresses: {enabled: true, args: [--default-class]}}`))
	for _, name := range []string{"PodMonitor troupe-agent", "PrometheusRule troupe"} {
		if text := objects[name]; !strings.Contains(text, "release: prometheus") || strings.Contains(text, "troupe-system") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if text := objects["ConfigMap troupe-dashboard"]; !strings.Contains(text, "grafana_dashboard") || !strings.Contains(text, "networking/troupe-agent") {
		t.Errorf("dashboard: %.300s", text)
	}
	for part, flag := range map[string]string{"connector": "--source=consul=http://192.0.2.9:8500", "addresses": "--default-class"} {
		for name, want := range comparable(t, stage.RenderManifests(t, filepath.Join(build.Root(), "deploy", "kubernetes", part))) {
			got := objects[name]
			if name == "Deployment troupe-"+part {
				if !strings.Contains(got, "- "+flag) {
					t.Errorf("%s has not the flag:\n%s", name, got)
				}
				got = strings.Replace(got, "        - "+flag+"\n", "", 1)
			}
			if name == "ConfigMap troupe-catalog" {
				continue // that of the values
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-manifest +chart):\n%s", name, diff)
			}
		}
	}
}

// TestChartStartupTaint: the chart has the start-up taint of the overlay, with the service account
// of the namespace of the release in the policy.
func TestChartStartupTaint(t *testing.T) {
	want := comparable(t, stage.RenderManifests(t, filepath.Join(build.Root(), "deploy", "kubernetes", "overlays", "startup-taint")))
	delete(want, "Namespace troupe-system")
	for name, text := range want {
		want[name] = strings.ReplaceAll(text, "troupe-system", "networking")
	}
	objects := template(t, "{startupTaint: true, image: {tag: latest}}")
	set, _ := agentOf(t, objects)
	if args := strings.Join(set.Spec.Template.Spec.Containers[0].Args, " "); !strings.HasSuffix(args, " --startup-taint=troupe.dev/agent-not-ready") {
		t.Errorf("args %s", args)
	}
	got := comparable(t, objects)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart differs (-overlay +chart):\n%s", diff)
	}
	const policy = "ValidatingAdmissionPolicy troupe-agent-startup-taint"
	if text := got[policy]; !strings.Contains(text, `system:serviceaccount:[^:]+:`) {
		t.Errorf("%s:\n%s", policy, text)
	}
	for name, text := range got {
		if strings.Contains(text, "troupe-system") {
			t.Errorf("%s names the namespace of the manifests:\n%s", name, text)
		}
	}
}

// TestChartPartNamespace: the connector and the allocator in an existing namespace, which the chart
// does not make.
func TestChartPartNamespace(t *testing.T) {
	objects := comparable(t, template(t, `{connector: {enabled: true, namespace: edge, createNamespace: false},
		addresses: {enabled: true, namespace: edge, createNamespace: false}}`))
	for name, text := range objects {
		if strings.HasPrefix(name, "Namespace ") || strings.Contains(text, "namespace: outside") || strings.Contains(text, "namespace: troupe-addresses") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	for _, name := range []string{"Deployment troupe-connector", "ConfigMap troupe-catalog", "ClusterRoleBinding troupe-connector", "Deployment troupe-addresses", "ClusterRoleBinding troupe-addresses"} {
		if text := objects[name]; !strings.Contains(text, "namespace: edge") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// TestChartRefuses: the schema names what is wrong with the values before anything is installed.
// The notes name what is missing for a cluster without kube-proxy.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		`{imgae: {}}`: "imgae",
		`{config: {services: {clusterCIDR: [10.1.0.0/16]}}}`: "clusterCIDR",
		`{config: {kubernetes: {stalenessLimit: 60}}}`:       "stalenessLimit",
		`{config: {renderer: iptables}}`:                     "renderer",
		`{config: {vpp: {requestWindow: 0}}}`:                "requestWindow",
		`{updateStrategy: {type: Recreate}}`:                 "updateStrategy",
		`{hostRoute: {interface: vpp-host}}`:                 "gateway",
		`{args: [enable-chaos]}`:                             "args",
	} {
		if _, err := rendered(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		} else {
			t.Logf("%s: %v", values, err)
		}
	}
	notes, err := rendered(t, "")
	if err != nil || !strings.Contains(notes["troupe/templates/NOTES.txt"], "kubectl label node NODE troupe.dev/vpp=") {
		t.Errorf("notes: %v\n%s", err, notes["troupe/templates/NOTES.txt"])
	}
	// without a cluster, only the values can have the address
	known, err := rendered(t, `{config: {kubernetes: {apiServer: "https://192.0.2.1:6443"}}}`)
	if err != nil || !strings.Contains(notes["troupe/templates/NOTES.txt"], "set config.kubernetes.apiServer") ||
		strings.Contains(known["troupe/templates/NOTES.txt"], "set config.kubernetes.apiServer") {
		t.Errorf("notes on the address, %v; with an address:\n%s", err, known["troupe/templates/NOTES.txt"])
	}
	t.Logf("%s", notes["troupe/templates/NOTES.txt"])
}
