package cluster

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
)

// TestModelIsEtcd carries the same operations out on the model and on a real etcd: both give the
// same results and hold the same keys. So tests on the model are valid for etcd.
func TestModelIsEtcd(t *testing.T) {
	client := etcdtest.Start(t).Client()
	store := NewEtcdStore(client, "")
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		root := fmt.Sprintf("/model/%d/", round)
		m := newModel()
		keys := rapid.SampledFrom([]string{root + "a", root + "b", root + "c"})
		stored := func() map[string]string {
			resp, err := client.Get(context.Background(), root, clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			pairs := map[string]string{}
			for _, kv := range resp.Kvs {
				pairs[string(kv.Key)] = string(kv.Value)
			}
			return pairs
		}
		// Revisions differ between the two, so guards are drawn as "unchanged since the last look",
		// "absent" or "stale".
		mods := map[string]int64{}
		drawGuards := func() (ours, theirs []guard) {
			for range rapid.IntRange(0, 2).Draw(t, "guards") {
				key, stale := keys.Draw(t, "guarded"), rapid.IntRange(0, 3).Draw(t, "stale") == 0
				our, their := guard{key, m.pairs[key].mod}, guard{key, mods[key]}
				if stale {
					our.mod, their.mod = our.mod+1_000_000, their.mod+1_000_000
				}
				ours, theirs = append(ours, our), append(theirs, their)
			}
			return ours, theirs
		}
		for step := range rapid.IntRange(1, 6).Draw(t, "steps") {
			our, their := &operation{}, &operation{}
			our.guards, their.guards = drawGuards()
			for n := range rapid.IntRange(1, 4).Draw(t, "branches") {
				var a, b branch
				a.guards, b.guards = drawGuards()
				key := keys.Draw(t, "key")
				if rapid.Bool().Draw(t, "delete") {
					a.deletes = []string{key}
				} else {
					a.puts = []put{{key, fmt.Sprintf("%d.%d", step, n)}}
				}
				b.puts, b.deletes = a.puts, a.deletes
				our.branches, their.branches = append(our.branches, a), append(their.branches, b)
			}
			got := store.transact(context.Background(), their)
			if got.err != nil {
				t.Fatal(got.err)
			}
			if want := m.apply(our); got.ok != want {
				t.Fatalf("etcd says %v, the model %v", got.ok, want)
			}
			want := map[string]string{}
			for key, p := range m.pairs {
				want[key] = string(p.value)
			}
			if diff := cmp.Diff(want, stored()); diff != "" {
				t.Fatalf("keys (-model +etcd):\n%s", diff)
			}
			for _, key := range []string{root + "a", root + "b", root + "c"} {
				mods[key] = 0
				if resp, err := client.Get(context.Background(), key); err != nil {
					t.Fatal(err)
				} else if len(resp.Kvs) > 0 {
					mods[key] = resp.Kvs[0].ModRevision
				}
			}
		}
	})
}

// TestMostCandidates shows that etcd accepts the largest number of candidates and takes the first
// free one.
func TestMostCandidates(t *testing.T) {
	client := etcdtest.Start(t).Client()
	store := NewEtcdStore(client, "")
	m := newModel()
	k := m.keyspace(testLayout, nil)
	for id := uint32(1); id < maxCandidates; id++ {
		if _, err := client.Put(context.Background(), testLayout.id(id), "taken"); err != nil {
			t.Fatal(err)
		}
	}
	op, err := k.takeFree(k.free(maxCandidates), "me", "u")
	if err != nil {
		t.Fatal(err)
	}
	if got := store.transact(context.Background(), op); got.err != nil || !got.ok {
		t.Fatalf("the last candidate was free: %+v", got)
	}
	resp, err := client.Get(context.Background(), testLayout.name("me"))
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("name record: %v, %v", resp, err)
	}
	record, err := decodeRecord(parsedKey{kind: kindName, name: "me"}, resp.Kvs[0].Value)
	if err != nil || record.GetId() != maxCandidates {
		t.Errorf("took ID %d (%v), want %d", record.GetId(), err, maxCandidates)
	}
	op.guards[0].mod = 0
	if got := store.transact(context.Background(), op); got.err != nil || got.ok {
		t.Errorf("a second time: %+v, want it refused", got)
	}
	if op, err = k.takeFree(k.free(maxCandidates), "you", "u"); err != nil {
		t.Fatal(err)
	}
	if got := store.transact(context.Background(), op); got.err != nil || got.ok {
		t.Errorf("no candidate free: %+v, want nothing written", got)
	}
}
