package controlplane

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
)

// Rights are what a service account may do by a ClusterRole and a Role of its name.
type Rights struct {
	plane              *Plane
	namespace, account string
	cluster            *rbacv1.ClusterRole
	local              *rbacv1.Role
}

// RightsOf returns the rights as they are now.
func RightsOf(p *Plane, namespace, account string) *Rights {
	p.t.Helper()
	r := &Rights{plane: p, namespace: namespace, account: account}
	var err error
	if r.cluster, err = p.Admin.RbacV1().ClusterRoles().Get(p.t.Context(), account, metav1.GetOptions{}); err != nil {
		p.t.Fatal(err)
	}
	if r.local, err = p.Admin.RbacV1().Roles(namespace).Get(p.t.Context(), account, metav1.GetOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// All returns every request that is allowed, in the order of the rules, but not those to
// ServiceCIDRs where Kubernetes has none.
func (r *Rights) All() (all []Request) {
	for _, rule := range slices.Concat(r.cluster.Rules, r.local.Rules) {
		all = append(all, requests(rule)...)
	}
	if !build.HasServiceCIDRs() {
		all = slices.DeleteFunc(all, func(r Request) bool { return strings.HasPrefix(r.Resource, "servicecidrs.") })
	}
	return all
}

// requests are those that a rule allows.
func requests(rule rbacv1.PolicyRule) (all []Request) {
	for _, resource := range rule.Resources {
		for _, verb := range rule.Verbs {
			all = append(all, Request{Verb: verb, Resource: strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")})
		}
	}
	return all
}

// Set takes one right away, or gives all of them back, and waits until the API server decides
// accordingly.
func (r *Rights) Set(right Request, allowed bool) {
	p := r.plane
	p.t.Helper()
	rules := func(all []rbacv1.PolicyRule) (kept []rbacv1.PolicyRule) {
		for _, rule := range all {
			for _, one := range requests(rule) {
				if allowed || one != right {
					resource, _, _ := strings.Cut(one.Resource, ".")
					kept = append(kept, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{one.Verb}})
				}
			}
		}
		return kept
	}
	cluster, local := r.cluster.DeepCopy(), r.local.DeepCopy()
	cluster.ResourceVersion, cluster.Rules = "", rules(cluster.Rules)
	local.ResourceVersion, local.Rules = "", rules(local.Rules)
	if _, err := p.Admin.RbacV1().ClusterRoles().Update(p.t.Context(), cluster, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.Admin.RbacV1().Roles(r.namespace).Update(p.t.Context(), local, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	resource, group, _ := strings.Cut(right.Resource, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + r.namespace + ":" + r.account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: right.Verb, Group: group, Resource: resource},
	}}
	Eventually(p.t, "decision", func() string {
		answer, err := p.Admin.AuthorizationV1().SubjectAccessReviews().Create(p.t.Context(), review, metav1.CreateOptions{})
		switch {
		case err != nil:
			return err.Error()
		case answer.Status.Allowed != allowed:
			return fmt.Sprintf("allowed: %t", answer.Status.Allowed)
		}
		return ""
	})
}
