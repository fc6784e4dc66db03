package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
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

// TestGateways: an administrator writes a gateway for each family, with a comma, into the
// component.
func TestGateways(t *testing.T) {
	dir, both := copied(t), "169.254.1.1,fe80::1"
	file := filepath.Join(dir, "components", "host-route", "kustomization.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(content, []byte("172.30.0.1"), []byte(both), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, object := range stage.RenderManifests(t, filepath.Join(dir, "overlays", "host-route")) {
		if object.GetKind() == "DaemonSet" && !strings.Contains(fmt.Sprint(object.Object), "--host-route-gateway="+both+" ") {
			t.Errorf("the agent does not get both gateways: %v", object.Object)
		}
	}
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
