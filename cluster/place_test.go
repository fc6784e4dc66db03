package cluster

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
)

// place is a node store of any kind. A test changes its content without the Syncers.
type place interface {
	// store makes the store of one Syncer.
	store(t testing.TB) Store
	layout() layout
	// keys returns everything stored, by key.
	keys(t testing.TB) map[string]string
	put(t testing.TB, key, value string)
	remove(t testing.TB, keys ...string)
	// stop takes the store away, start brings it back, and lose empties it in between. miss
	// makes changes that no watch delivers.
	stop(t testing.TB)
	start(t testing.TB)
	lose(t testing.TB)
	miss(t testing.TB, pairs map[string]string)
}

// places makes a place of each kind, by name.
var places = map[string]func(testing.TB) place{
	"etcd":   func(t testing.TB) place { return newEtcdPlace(t) },
	"leases": func(t testing.TB) place { return newLeasePlace(t) },
}

// everywhere runs a test with each kind of store.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(places)) {
		t.Run(name, func(t *testing.T) { test(t, places[name](t)) })
	}
}

// etcdPlace is an embedded etcd.
type etcdPlace struct {
	dir    string
	member *etcd.Embedded
	client *clientv3.Client
	// The Syncers share the clients in turns.
	clients []*clientv3.Client
	made    int
}

func newEtcdPlace(t testing.TB) *etcdPlace {
	t.Helper()
	p := &etcdPlace{dir: filepath.Join(t.TempDir(), "etcd")}
	p.start(t)
	p.client = etcdtest.Client(t, p.member.Client().Endpoints())
	return p
}

func (p *etcdPlace) store(t testing.TB) Store {
	t.Helper()
	if len(p.clients) < 10 {
		p.clients = append(p.clients, etcdtest.Client(t, p.member.Client().Endpoints()))
	}
	p.made++
	return NewEtcdStore(p.clients[p.made%len(p.clients)], "")
}

func (p *etcdPlace) layout() layout                      { return testLayout }
func (p *etcdPlace) keys(t testing.TB) map[string]string { return etcdtest.Keys(t, p.client) }
func (p *etcdPlace) put(t testing.TB, key, value string) { etcdtest.Put(t, p.client, key, value) }
func (p *etcdPlace) start(t testing.TB)                  { p.member = etcdtest.StartIn(t, p.dir) }
func (p *etcdPlace) stop(t testing.TB)                   { etcdtest.Close(t, p.member) }
func (p *etcdPlace) lose(t testing.TB)                   { etcdtest.Wipe(t, p.dir) }

func (p *etcdPlace) remove(t testing.TB, keys ...string) {
	var ops []clientv3.Op
	for _, key := range keys {
		ops = append(ops, clientv3.OpDelete(key))
	}
	if _, err := p.client.Txn(context.Background()).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
}

// miss runs the etcd behind another socket, where the watches cannot see what happens.
func (p *etcdPlace) miss(t testing.TB, pairs map[string]string) {
	t.Helper()
	elsewhere, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: p.dir, NoSync: true, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range pairs {
		etcdtest.Put(t, elsewhere.Client(), key, value)
	}
	resp, err := elsewhere.Client().Put(context.Background(), "/elsewhere", "x")
	if err == nil {
		_, err = elsewhere.Client().Compact(context.Background(), resp.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
	etcdtest.Close(t, elsewhere)
}

// leasePlace is a fake API server.
type leasePlace struct{ server *leaseServer }

var leaseKeys = leaseLayout{leaseNamespace}

func newLeasePlace(t testing.TB) *leasePlace { return &leasePlace{newLeaseServer(t)} }

func (p *leasePlace) store(testing.TB) Store {
	return NewLeaseStore(p.server.Client(leaseNamespace), leaseNamespace)
}

func (p *leasePlace) layout() layout    { return leaseKeys }
func (p *leasePlace) start(testing.TB)  { p.server.Start() }
func (p *leasePlace) stop(testing.TB)   { p.server.Stop() }
func (p *leasePlace) lose(t testing.TB) { p.server.Lose() }

func (p *leasePlace) keys(testing.TB) map[string]string {
	pairs := map[string]string{}
	for _, lease := range p.server.Leases() {
		for _, c := range leaseKeys.changes(lease, 1, false) {
			if !c.deleted {
				pairs[c.key] = string(c.value)
			}
		}
	}
	return pairs
}

func (p *leasePlace) put(_ testing.TB, key, value string) {
	name, annotation := leaseKeys.split(key)
	p.server.Change(name, func(lease *coordinationv1.Lease) {
		if lease.Annotations == nil {
			lease.Annotations, lease.Labels = map[string]string{}, map[string]string{leaseLabel: "v1"}
		}
		lease.Annotations[annotation] = value
	})
}

func (p *leasePlace) remove(_ testing.TB, keys ...string) {
	for _, key := range keys {
		name, annotation := leaseKeys.split(key)
		if annotation == recordAnnotation {
			p.server.Delete(name)
		} else if p.server.Leases()[name] != nil {
			p.server.Change(name, func(lease *coordinationv1.Lease) { delete(lease.Annotations, annotation) })
		}
	}
}

func (p *leasePlace) miss(t testing.TB, pairs map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		p.put(t, key, pairs[key])
	}
	p.server.Compact()
}

// hookedStore calls a function before every transaction. Its error is the outcome of the
// transaction.
type hookedStore struct {
	Store
	before func() error
}

func (s hookedStore) transact(ctx context.Context, op *operation) wrote {
	if err := s.before(); err != nil {
		return wrote{op: op, err: err}
	}
	return s.Store.transact(ctx, op)
}

// nodeKeys are all keys of a node with an ID.
func nodeKeys(l layout, id uint32, name string) []string {
	return []string{l.id(id), l.name(name), l.addresses(name)}
}

// TestLayoutsRoundTrip reads every key that a layout builds, and no other.
func TestLayoutsRoundTrip(t *testing.T) {
	for _, l := range []layout{testLayout, leaseKeys} {
		if got := l.parse(l.id(42)); got != (parsedKey{kind: kindID, id: 42}) {
			t.Errorf("%T: id key read as %+v", l, got)
		}
		if got := l.parse(l.name("n1.example.org")); got != (parsedKey{kind: kindName, name: "n1.example.org"}) {
			t.Errorf("%T: name key read as %+v", l, got)
		}
		if got := l.parse(l.addresses("n1")); got != (parsedKey{kind: kindAddresses, name: "n1"}) {
			t.Errorf("%T: addresses key read as %+v", l, got)
		}
	}
	if strings.HasPrefix(testLayout.probe(), testLayout.root()) {
		t.Errorf("the probe key %s is under the root %s that is watched", testLayout.probe(), testLayout.root())
	}
}
