package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/stage"
)

// TestConnector: the connector takes the flags and the catalog of its manifest, and would write
// nothing for it; it does not run in a pod here, which is all that it complains about.
func TestConnector(t *testing.T) {
	troupe, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	catalog := t.TempDir()
	for _, o := range stage.RenderManifests(t, filepath.Join(build.Root(), "deploy", "kubernetes", "connector")) {
		switch o.GetKind() {
		case "Deployment":
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &deployment, true)
		case "ConfigMap":
			text, _, _ := unstructured.NestedString(o.Object, "data", "catalog.yaml")
			err = os.WriteFile(filepath.Join(catalog, "catalog.yaml"), []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var arguments []string
	for _, a := range deployment.Spec.Template.Spec.Containers[0].Args {
		a = strings.ReplaceAll(a, "/etc/catalog", catalog)
		arguments = append(arguments, strings.ReplaceAll(a, "$(POD_NAMESPACE)", deployment.Namespace))
	}
	out, err := exec.CommandContext(t.Context(), troupe, arguments...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "this is not a pod") {
		t.Errorf("%q: %v\n%s", arguments, err, out)
	}
	direct := append(arguments, "--output=direct", "--output-directory="+t.TempDir(), "--service-cidr=10.96.0.0/16", "--dry-run")
	out, err = exec.CommandContext(t.Context(), troupe, direct...).CombinedOutput()
	if err != nil {
		t.Errorf("%q: %v\n%s", direct, err, out)
	}
	t.Logf("%s", out)
}

// TestAddresses: the allocator takes the flags of its manifest; it does not run in a pod here,
// which is all that it complains about.
func TestAddresses(t *testing.T) {
	troupe, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range stage.RenderManifests(t, filepath.Join(build.Root(), "deploy", "kubernetes", "addresses")) {
		var deployment appsv1.Deployment
		if o.GetKind() != "Deployment" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &deployment, true); err != nil {
			t.Fatal(err)
		}
		var arguments []string
		for _, a := range deployment.Spec.Template.Spec.Containers[0].Args {
			arguments = append(arguments, strings.ReplaceAll(a, "$(POD_NAMESPACE)", deployment.Namespace))
		}
		out, err := exec.CommandContext(t.Context(), troupe, arguments...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "this is not a pod") {
			t.Errorf("%q: %v\n%s", arguments, err, out)
		}
	}
}
