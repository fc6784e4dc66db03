package catalog

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTLSAndTokenRotate: the source trusts the authority that is in the file now, and sends the
// token that is in the file now.
func TestTLSAndTokenRotate(t *testing.T) {
	var tokens []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("X-Consul-Token"))
		w.Header().Set("X-Consul-Index", "7")
		fmt.Fprint(w, `{}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that the client ends
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	o, err := ParseConsul(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.Limits, o.CAFile, o.TokenFile = DefaultLimits(), filepath.Join(dir, "ca"), filepath.Join(dir, "token")
	if _, err = newClient(o); err == nil {
		t.Error("a CA file that does not exist is taken")
	}
	own, another := bodyText(server.Certificate().Raw), bodyText(authority(t))
	var client *client
	for _, c := range []struct{ ca, token, refused string }{
		{another, "first", "certificate signed by unknown authority"},
		{own, "first", ""},
		{own, "second\n", ""},
		{own, "\n", "is empty"},
		{another, "second", "certificate signed by unknown authority"},
		{"no certificate", "second", "no certificate in"},
		{own, "third", ""},
	} {
		for file, content := range map[string]string{o.CAFile: c.ca, o.TokenFile: c.token} {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if client == nil {
			if client, err = newClient(o); err != nil {
				t.Fatal(err)
			}
		}
		client.http.CloseIdleConnections() // the file counts for new connections
		_, err := client.get(t.Context(), 0, o.Limits.List, func(a *answer) error {
			_, err := decodeNames(a, 1)
			return err
		}, "catalog", "services")
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("token %q: error %v, want %q", c.token, err, c.refused)
		}
	}
	client.http.CloseIdleConnections()
	if got := strings.Join(tokens, " "); got != "first second third" {
		t.Errorf("the server got the tokens %q", got)
	}
}

// bodyText returns a certificate in PEM form.
func bodyText(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// authority makes the certificate of an authority.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
