package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestRights: the agents need each verb of deploy/kubernetes/base/rbac.yaml and no other. With all of them nothing is refused, and each is used. Without
// one of them the API server refuses that request, and no other; the agent says which, and goes on when it is granted. The API server streams no
// lists, as older ones: with those that do, the agent does without the verb list.
func TestRights(t *testing.T) {
	w := newTown(t, "kubernetes")
	w.StopAPI()
	w.StartAPI("--feature-gates=WatchList=false")
	w.join(1)
	w.join(2)
	w.agree()
	w.restart("n2") // its second event of a kind is a patch
	w.join(3)
	w.agree()
	w.leave("n3")
	rights := w.rights()
	controlplane.Eventually(t, "use of all rights", func() string {
		allowed, refused := w.Requests()
		if len(refused) > 0 {
			t.Fatalf("refused: %v", refused)
		}
		for _, r := range rights {
			if allowed[r] == 0 {
				return fmt.Sprintf("no request to %s %s: %v", r.Verb, r.Resource, allowed)
			}
		}
		return ""
	})
	leases := func(verb string) controlplane.Request {
		return controlplane.Request{Verb: verb, Resource: "leases.coordination.k8s.io"}
	}
	life := map[controlplane.Request]func(){ // what makes the agents use the right
		leases("create"): func() { w.join(3) },
		leases("delete"): func() { w.leave("n3") },
		leases("patch"):  func() { w.join(4) },
	}
	for _, right := range rights { // in the order of the file: n3 joins before it leaves
		use := life[right]
		if use == nil {
			use = func() { w.restart("n2") }
		}
		t.Logf("without %s %s", right.Verb, right.Resource)
		w.without(right, use)
	}
}

// without takes one right from the agents while they use it.
func (w *town) without(right controlplane.Request, use func()) {
	w.Helper()
	cluster, local := w.roles()
	w.grant(right, false, cluster, local)
	_, before := w.Requests()
	said := map[string]int{}
	for name, n := range w.nodes {
		said[name] = len(n.agent.Output())
	}
	use()
	resource, _, _ := strings.Cut(right.Resource, ".")
	controlplane.Eventually(w, "refusal", func() string {
		_, refused := w.Requests()
		for r, times := range refused {
			if times > before[r] && r != right {
				w.Fatalf("refused: %v", r)
			}
		}
		if refused[right] == before[right] {
			return "nothing is refused"
		}
		for name, n := range w.nodes {
			for line := range strings.Lines(n.agent.Output()[said[name]:]) {
				if strings.Contains(line, "forbidden") && strings.Contains(line, resource) {
					return ""
				}
			}
		}
		return "no agent says that " + resource + " is forbidden"
	})
	w.grant(right, true, cluster, local)
	w.agree()
	for _, n := range w.nodes {
		n.ready()
	}
}

// restart kills the agent of a node and starts it again.
func (w *town) restart(name string) {
	w.nodes[name].agent.Kill()
	w.nodes[name].start()
}

// leave lets a node go for ever.
func (w *town) leave(name string) {
	w.Helper()
	w.nodes[name].agent.Kill()
	delete(w.nodes, name)
	w.unregister(name)
}

// roles returns those of the agents.
func (w *town) roles() (*rbacv1.ClusterRole, *rbacv1.Role) {
	w.Helper()
	cluster, err := w.Admin.RbacV1().ClusterRoles().Get(w.Context(), account, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	local, err := w.Admin.RbacV1().Roles(namespace).Get(w.Context(), account, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return cluster, local
}

// requests are those that a rule allows.
func requests(rule rbacv1.PolicyRule) (all []controlplane.Request) {
	for _, resource := range rule.Resources {
		for _, verb := range rule.Verbs {
			all = append(all, controlplane.Request{Verb: verb, Resource: strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")})
		}
	}
	return all
}

// rights returns all that the agents may do.
func (w *town) rights() (all []controlplane.Request) {
	w.Helper()
	cluster, local := w.roles()
	for _, rule := range slices.Concat(cluster.Rules, local.Rules) {
		all = append(all, requests(rule)...)
	}
	return all
}

// grant writes the roles with or without one right, and waits until the API server decides accordingly.
func (w *town) grant(right controlplane.Request, allowed bool, cluster *rbacv1.ClusterRole, local *rbacv1.Role) {
	w.Helper()
	rules := func(all []rbacv1.PolicyRule) (kept []rbacv1.PolicyRule) {
		for _, rule := range all {
			for _, r := range requests(rule) {
				if allowed || r != right {
					resource, _, _ := strings.Cut(r.Resource, ".")
					kept = append(kept, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{r.Verb}})
				}
			}
		}
		return kept
	}
	cluster, local = cluster.DeepCopy(), local.DeepCopy()
	cluster.ResourceVersion, cluster.Rules = "", rules(cluster.Rules)
	local.ResourceVersion, local.Rules = "", rules(local.Rules)
	if _, err := w.Admin.RbacV1().ClusterRoles().Update(w.Context(), cluster, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.Admin.RbacV1().Roles(namespace).Update(w.Context(), local, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	resource, group, _ := strings.Cut(right.Resource, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: right.Verb, Group: group, Resource: resource},
	}}
	controlplane.Eventually(w, "decision", func() string {
		answer, err := w.Admin.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
		switch {
		case err != nil:
			return err.Error()
		case answer.Status.Allowed != allowed:
			return fmt.Sprintf("allowed: %t", answer.Status.Allowed)
		}
		return ""
	})
}
