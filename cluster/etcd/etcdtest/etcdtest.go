//go:build !agent

// Package etcdtest gives tests an etcd inside their process, and a client for it. It is for tests
// only, and everything ends with the test.
package etcdtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/troupe-vpp/troupe/cluster/etcd"
)

// Start runs an etcd for one test.
func Start(t testing.TB) *etcd.Embedded {
	t.Helper()
	return StartIn(t, filepath.Join(t.TempDir(), "etcd"))
}

// StartIn runs an etcd in a directory, until it is closed or the test ends.
func StartIn(t testing.TB, dir string) *etcd.Embedded {
	t.Helper()
	e, err := StartEmbedded(etcd.EmbeddedConfig{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close etcd: %v", err)
		}
	})
	return e
}

// StartEmbedded runs an etcd until it is closed; after an error nothing is left.
func StartEmbedded(cfg etcd.EmbeddedConfig) (*etcd.Embedded, error) {
	e, err := etcd.OpenEmbedded(cfg)
	if err != nil {
		return nil, err
	}
	if err := e.Start(context.Background()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close stops an etcd.
func Close(t testing.TB, e *etcd.Embedded) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatalf("close etcd: %v", err)
	}
}

// Wipe removes the data of an etcd that is closed.
func Wipe(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		found = true
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatalf("%s has no data", dir)
	}
}

// Client makes a client of its own, which outlives the etcd.
func Client(t testing.TB, endpoints []string) *clientv3.Client {
	t.Helper()
	client, err := etcd.NewClient(etcd.ClientConfig{Endpoints: endpoints})
	if err != nil {
		t.Fatalf("make client: %v", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Keys returns all keys that begin with a slash, with their values.
func Keys(t testing.TB, client *clientv3.Client) map[string]string {
	t.Helper()
	resp, err := client.Get(context.Background(), "/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[string]string{}
	for _, kv := range resp.Kvs {
		pairs[string(kv.Key)] = string(kv.Value)
	}
	return pairs
}

// Put writes a key.
func Put(t testing.TB, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(context.Background(), key, value); err != nil {
		t.Fatal(err)
	}
}
