package deploy

import (
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

	"github.com/troupe-vpp/troupe/test/stage"
)

// directories of the agent: the base, its overlays, and a kustomization of several components.
var directories = []string{
	"base", "overlays/chaos", "overlays/cleanup", "overlays/etcd", "overlays/files", "overlays/host-route", "overlays/monitoring",
	"overlays/startup-taint", combined,
}

// combined has all components that do not exclude each other.
const (
	combined              = "combined"
	combinedKustomization = `resources: [../base]
components: [../components/chaos, ../components/etcd, ../components/host-route, ../components/monitoring, ../components/startup-taint]
`
)

// copied returns a copy of deploy/kubernetes, in which an administrator has edited agent.yaml and
// made the certificates of etcd.
func copied(t *testing.T) string {
	t.Helper()
	dir := stage.CopyManifests(t, "https://192.0.2.1:6443", "10.96.0.0/12")
	tls := filepath.Join(dir, "components", "etcd", "tls")
	if err := os.Mkdir(tls, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, combined), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, combined, "kustomization.yaml"), []byte(combinedKustomization), 0o600); err != nil {
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
