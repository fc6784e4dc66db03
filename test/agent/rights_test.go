package agent_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// granted returns what the manifests allow the agent: "list discovery.k8s.io/endpointslices".
func granted(t *testing.T) []string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(build.Root(), "deploy", "kubernetes", "base", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	add := func(rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, verb+" "+path.Join(r.APIGroups[0], resource))
				}
			}
		}
	}
	for _, document := range bytes.Split(manifest, []byte("\n---\n")) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			add(o.Rules)
		case *rbacv1.Role:
			add(o.Rules)
		}
	}
	slices.Sort(all)
	return all
}

// TestRights: in the life of a few nodes the agents use every right that the manifests grant, so that with any one less a request is refused.
func TestRights(t *testing.T) {
	w := newTown(t, "kubernetes")
	for i := 1; i <= 3; i++ {
		w.join(i)
	}
	ids := w.agree()
	again := w.nodes["n1"]
	again.agent.Kill()
	again.start() // the Event about its start is counted twice
	w.collected("n3", ids["n3"])
	w.StopAPI()
	w.StartAPI("--feature-gates=WatchList=false") // as API servers before 1.34: a watch does not begin with a list
	again.agent.Kill()
	again.start()
	again.ready()
	want := granted(t)
	controlplane.Eventually(t, "every right used", func() string {
		used := w.Used(namespace, account)
		var missing []string
		for _, right := range want {
			if !slices.Contains(used, right) {
				missing = append(missing, right)
			}
		}
		return strings.Join(missing, ", ")
	})
}
