package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
)

// authority signs certificates for one test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(a.file(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.pem and name.key.
func (a *authority) issue(t *testing.T, name string, serial int64) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", "CERTIFICATE", der)
	a.write(t, name+".key", "PRIVATE KEY", raw)
}

// serveTLS puts a TLS server in front of an etcd. It accepts only clients with a certificate of the
// authority, and reports their certificates.
func serveTLS(t *testing.T, a *authority, member *etcd.Embedded, asked chan<- string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.file("server.pem"), a.file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, NextProtos: []string{"h2"},
		VerifyPeerCertificate: func(_ [][]byte, chains [][]*x509.Certificate) error {
			asked <- chains[0][0].SerialNumber.String()
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var doors sync.WaitGroup
	doors.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			doors.Go(func() { pass(t, conn, member) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		doors.Wait()
	})
	return "https://" + listener.Addr().String()
}

// pass carries bytes between a client and etcd until either side ends.
func pass(t *testing.T, client net.Conn, member *etcd.Embedded) {
	network, address, _ := strings.Cut(member.Client().Endpoints()[0], "://")
	if network == "http" {
		network = "tcp"
	}
	server, err := net.Dial(network, address)
	if err != nil {
		t.Errorf("dial etcd: %v", err)
		_ = client.Close()
		return
	}
	var ends sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		ends.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = client.Close(), server.Close()
		})
	}
	ends.Wait()
}

// TestClientTLS connects to a server that checks certificates, and again with the same client after
// the certificate was replaced.
func TestClientTLS(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "server", 2)
	a.issue(t, "client", 3)
	member, asked := etcdtest.Start(t), make(chan string, 16)
	endpoint := serveTLS(t, a, member, asked)
	cfg := etcd.ClientConfig{Endpoints: []string{endpoint}, CA: a.file("ca.pem"), Cert: a.file("client.pem"), Key: a.file("client.key")}
	client, err := etcd.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.Get(ctx, "/k"); err != nil {
		t.Fatalf("read over TLS: %v", err)
	}
	if got := <-asked; got != "3" {
		t.Errorf("the server saw certificate %s", got)
	}
	a.issue(t, "client", 4)
	moved := serveTLS(t, a, member, asked)
	client.SetEndpoints(moved)
	for got := ""; got != "4"; {
		if _, err := client.Get(ctx, "/k"); err != nil {
			t.Fatalf("read after the rotation: %v", err)
		}
		select {
		case got = <-asked:
		default:
		}
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestClientRefuses(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "client", 2)
	a.issue(t, "other", 3)
	endpoints := []string{"https://127.0.0.1:2379"}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]etcd.ClientConfig{
		"no endpoint":             {},
		"certificate without key": {Endpoints: endpoints, Cert: a.file("client.pem")},
		"key without certificate": {Endpoints: endpoints, Key: a.file("client.key")},
		"CA missing":              {Endpoints: endpoints, CA: a.file("nothing.pem")},
		"CA empty":                {Endpoints: endpoints, CA: empty},
		"certificate missing":     {Endpoints: endpoints, Cert: a.file("nothing.pem"), Key: a.file("client.key")},
		"key of another":          {Endpoints: endpoints, Cert: a.file("client.pem"), Key: a.file("other.key")},
	} {
		if client, err := etcd.NewClient(cfg); err == nil {
			t.Errorf("%s: accepted", name)
			_ = client.Close()
		}
	}
}

// TestClientWantsTLS shows that the client never connects to an https endpoint without TLS.
func TestClientWantsTLS(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"https://127.0.0.1:2379": true, "unixs:///run/etcd.sock": true, "http://127.0.0.1:2379": false, "127.0.0.1:2379": false,
	} {
		config, err := etcd.ClientConfig{Endpoints: []string{endpoint}}.TLS()
		if err != nil || (config != nil) != want {
			t.Errorf("%s: TLS = %v (%v), want %v", endpoint, config != nil, err, want)
		}
	}
}
