package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/troupe-vpp/troupe/test/build"
)

// kinds of deployments: the base and its overlays.
var directories = []string{"base", "overlays/chaos", "overlays/etcd", "overlays/files", "overlays/host-route", "overlays/monitoring"}

// copied returns a copy of deploy/kubernetes, in which an administrator has edited agent.yaml and made the certificates of etcd.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(build.Root(), "deploy", "kubernetes"))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "base", "agent.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{
		{`apiServer: ""`, "apiServer: https://192.0.2.1:6443"},
		{"clusterCIDRs: []", "clusterCIDRs: [10.1.0.0/16]"},
		{"serviceCIDRs: []", "serviceCIDRs: [10.96.0.0/12]"},
	} {
		edited := bytes.Replace(text, []byte(edit[0]), []byte(edit[1]), 1)
		if bytes.Equal(edited, text) {
			t.Fatalf("%s has no %q to be edited", config, edit[0])
		}
		text = edited
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tls := filepath.Join(dir, "overlays", "etcd", "tls")
	if err := os.Mkdir(tls, 0o700); err != nil {
		t.Fatal(err)
	}
	certificate, key := pair(t)
	for name, content := range map[string][]byte{"ca.crt": certificate, "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(tls, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pair makes a certificate that signs itself, and its key, in PEM.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}

// render returns the objects of a directory, as kubectl apply -k sends them.
func render(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("render %s: %v", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, r := range rendered.Resources() {
		content, err := r.Map()
		if err != nil {
			t.Fatalf("render %s: %v", dir, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}
