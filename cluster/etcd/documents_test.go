package etcd_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
)

// TestDocuments: all documents are delivered at the start and after each change. Keys outside of
// the prefix are ignored. While etcd is away, errors are delivered at intervals; when it is back,
// all documents are delivered again.
func TestDocuments(t *testing.T) {
	member := etcdtest.Start(t)
	client := member.Client()
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan map[string][]byte, 100), make(chan struct{})
	go func() {
		defer close(ended)
		etcd.Documents(ctx, client, "/p/external/", func(documents map[string][]byte, err error) {
			if err == nil {
				told <- documents
			}
		})
	}()
	defer func() {
		cancel()
		<-ended
	}()
	expect := func(what string, want map[string]string) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			select {
			case got := <-told:
				texts := map[string]string{}
				for k, v := range got {
					texts[k] = string(v)
				}
				if maps.Equal(texts, want) {
					return
				}
			case <-deadline:
				t.Fatalf("%s: not told", what)
			}
		}
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	expect("nothing", map[string]string{})
	put("/p/externally", "x")
	put("/p/external/web", "1")
	expect("one", map[string]string{"web": "1"})
	put("/p/external/n1/web", "2")
	expect("two", map[string]string{"web": "1", "n1/web": "2"})
	if _, err := client.Delete(t.Context(), "/p/external/web"); err != nil {
		t.Fatal(err)
	}
	expect("one is gone", map[string]string{"n1/web": "2"})
}

// TestDocumentsOfADeadEtcd: a failed read is an error that names the prefix, and Documents ends
// with its context.
func TestDocumentsOfADeadEtcd(t *testing.T) {
	client, err := etcd.NewClient(etcd.ClientConfig{Endpoints: []string{"http://127.0.0.1:1"}, DialTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var heard error
	etcd.Documents(ctx, client, "/p/external/", func(_ map[string][]byte, err error) {
		heard = err
		cancel()
	})
	if heard == nil {
		t.Error("no error")
	}
}
