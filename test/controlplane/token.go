package controlplane

import (
	"bytes"
	"context"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// Define creates a CustomResourceDefinition.
func (p *Plane) Define(manifest string) {
	p.t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		p.t.Fatalf("read manifest: %v", err)
	}
	request := p.Admin.Discovery().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		Param("fieldValidation", metav1.FieldValidationStrict).SetHeader("Content-Type", "application/yaml")
	if err := request.Body(content).Do(context.Background()).Error(); err != nil {
		p.t.Fatalf("create definition of %s: %v", manifest, err)
	}
}

// Grant creates the namespace of the service account and applies a manifest with objects of RBAC.
func (p *Plane) Grant(namespace, manifest string) {
	p.t.Helper()
	ctx := context.Background()
	p.Namespace(namespace)
	content, err := os.ReadFile(manifest)
	if err != nil {
		p.t.Fatalf("read manifest: %v", err)
	}
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			p.t.Fatalf("decode %s: %v", manifest, err)
		}
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			_, err = p.Admin.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRole:
			_, err = p.Admin.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = p.Admin.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.Role:
			_, err = p.Admin.RbacV1().Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = p.Admin.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		default:
			p.t.Fatalf("%s has a %s, which is not of RBAC", manifest, kind.Kind)
		}
		if err != nil {
			p.t.Fatalf("create %s of %s: %v", kind.Kind, manifest, err)
		}
	}
}

// Namespace creates a namespace.
func (p *Plane) Namespace(name string) {
	p.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.Admin.CoreV1().Namespaces().Create(context.Background(), namespace, metav1.CreateOptions{}); err != nil {
		p.t.Fatalf("create namespace %s: %v", name, err)
	}
}

// Token returns a token of the service account (TokenRequest). It is valid as long as the Secret of
// that name, which is created here, exists.
func (p *Plane) Token(namespace, account, secret string) string {
	p.t.Helper()
	ctx := context.Background()
	bound, err := p.Admin.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatalf("create secret %s: %v", secret, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret, UID: bound.UID},
	}}
	answer, err := p.Admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatalf("request token of %s/%s: %v", namespace, account, err)
	}
	return answer.Status.Token
}

// Revoke makes the token that is bound to the secret invalid.
func (p *Plane) Revoke(namespace, secret string) {
	p.t.Helper()
	if err := p.Admin.CoreV1().Secrets(namespace).Delete(context.Background(), secret, metav1.DeleteOptions{}); err != nil {
		p.t.Fatalf("delete secret %s: %v", secret, err)
	}
}
