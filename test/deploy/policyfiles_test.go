package deploy

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// file is a policy and its binding.
type file struct {
	policy  admissionv1.ValidatingAdmissionPolicy
	binding admissionv1.ValidatingAdmissionPolicyBinding
}

// load decodes a file strictly: a field that the API does not have is an error.
func load(t *testing.T, name string) *file {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(content, []byte("\n---\n"))
	if len(documents) != 2 {
		t.Fatalf("%d documents, want a policy and its binding", len(documents))
	}
	f := &file{}
	for i, into := range []any{&f.policy, &f.binding} {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			t.Fatalf("document %d: %v", i+1, err)
		}
	}
	return f
}

// TestPolicies: the files are what the API server takes, and refuse where they cannot be evaluated.
// That the expressions say what they should needs an API server.
func TestPolicyFiles(t *testing.T) {
	names, err := filepath.Glob("../../deploy/policies/*.yaml")
	if err != nil || len(names) != 2 {
		t.Fatalf("files %v: %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f := load(t, name)
			version := admissionv1.SchemeGroupVersion.String()
			if want := (metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicy"}); f.policy.TypeMeta != want {
				t.Errorf("policy is a %v", f.policy.TypeMeta)
			}
			if want := (metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding"}); f.binding.TypeMeta != want {
				t.Errorf("binding is a %v", f.binding.TypeMeta)
			}
			if f.policy.Name == "" || f.binding.Spec.PolicyName != f.policy.Name {
				t.Errorf("the binding is for %q, the policy is %q", f.binding.Spec.PolicyName, f.policy.Name)
			}
			if !slices.Equal(f.binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
				t.Errorf("validationActions %v", f.binding.Spec.ValidationActions)
			}
			spec := f.policy.Spec
			if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionv1.Fail {
				t.Errorf("failurePolicy %v", spec.FailurePolicy)
			}
			for _, rule := range spec.MatchConstraints.ResourceRules {
				if !slices.Equal(rule.Operations, []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}) {
					t.Errorf("operations %v", rule.Operations)
				}
			}
			checkNames(t, &spec)
		})
	}
}

var (
	used    = regexp.MustCompile(`variables\.(\w+)`)
	network = regexp.MustCompile(`"([0-9a-f.:]+/[0-9]+)"`)
)

// checkNames: a variable uses those before it only, each is used, and every network in the text of
// one is a network.
func checkNames(t *testing.T, spec *admissionv1.ValidatingAdmissionPolicySpec) {
	t.Helper()
	known := map[string]bool{}
	use := func(expression string) {
		for _, name := range used.FindAllStringSubmatch(expression, -1) {
			if _, before := known[name[1]]; !before {
				t.Errorf("%s: there is no variable %s before it", expression, name[1])
			}
			known[name[1]] = true
		}
	}
	networks := 0
	for _, v := range spec.Variables {
		use(v.Expression)
		known[v.Name] = false
		for _, text := range network.FindAllStringSubmatch(v.Expression, -1) {
			if p, err := netip.ParsePrefix(text[1]); err != nil || p != p.Masked() {
				t.Errorf("%s: %s is no network: %v", v.Name, text[1], err)
			}
			networks++
		}
	}
	for _, v := range spec.Validations {
		use(v.Expression)
		use(v.MessageExpression)
		if v.Message == "" || v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden {
			t.Errorf("%s: message %q, reason %v", v.Expression, v.Message, v.Reason)
		}
	}
	for name, isUsed := range known {
		if !isUsed {
			t.Errorf("variable %s is not used", name)
		}
	}
	if networks == 0 {
		t.Error("there is no network to edit")
	}
}
