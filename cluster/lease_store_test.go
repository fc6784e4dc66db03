package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/troupe-vpp/troupe/messages"
)

// TestLeaseHangUp: a proxy closes every connection. A watch that never began does not count as an
// answer.
func TestLeaseHangUp(t *testing.T) {
	p := newLeasePlace(t)
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 1))
	a.waitHeld(t)
	p.server.Before(func(string) error { return errHangUp })
	p.server.Break()
	a.waitFor(t, "the connection lost", func(s *messages.ClusterState) bool {
		return !s.GetConnected() && strings.Contains(s.GetReason(), "the watch ended")
	})
	generation, watches := a.state().GetGeneration(), p.server.Requests("watch")
	for p.server.Requests("watch") < watches+5 {
		time.Sleep(time.Millisecond)
	}
	for _, s := range a.history()[generation:] {
		if s.GetConnected() {
			t.Errorf("connected meanwhile: %v", s)
		}
	}
	p.server.Before(nil)
	a.waitFor(t, "the connection", (*messages.ClusterState).GetConnected)
}

// TestLeaseObjects checks the stored objects: a Lease of the node, which its Node owns, and a Lease
// of its ID, which outlasts the Node.
func TestLeaseObjects(t *testing.T) {
	p := newLeasePlace(t)
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 1))
	a.Publish([]string{"10.0.0.1/24"})
	a.waitFor(t, "its addresses published", published)
	leases := p.server.Leases()
	ofNode, id := leases["n1"], leases["troupe-id-1"]
	if len(leases) != 2 || ofNode == nil || id == nil {
		t.Fatalf("leases %v", leases)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u1"}}, ofNode.OwnerReferences); diff != "" {
		t.Errorf("owners of the node's lease (-want +got):\n%s", diff)
	}
	if len(id.OwnerReferences) != 0 || *id.Spec.HolderIdentity != "n1" || *ofNode.Spec.HolderIdentity != "n1" || ofNode.Spec.RenewTime == nil {
		t.Errorf("lease of the ID: %v", id)
	}
	// The Node is deleted, and created again under its name with another UID: the agent keeps its
	// ID, whatever the garbage collector does.
	p.server.CollectGarbage()
	a.waitFor(t, "its lease again", func(s *messages.ClusterState) bool { return s.GetPublished() && p.server.Leases()["n1"] != nil })
	a.SetNodes(nodesOf("n1", node("n1", "other")))
	a.waitFor(t, "the new owner", func(s *messages.ClusterState) bool {
		now := p.server.Leases()["n1"]
		return s.GetPublished() && s.GetId() == 1 && now != nil && now.OwnerReferences[0].UID == types.UID("other")
	})
	for _, s := range a.history() {
		if s.GetClaim() == fence || s.GetId() > 1 {
			t.Errorf("meanwhile %v", s)
		}
	}
}

// TestForeignLease: a foreign Lease has the name of the node. It is not changed, the reason and the
// log name it and its holder, and the node goes on when it is gone.
func TestForeignLease(t *testing.T) {
	p := newLeasePlace(t)
	leases, holder := p.server.Client(leaseNamespace), "another-controller"
	foreign := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	if _, err := leases.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var log written
	a := runSyncer(t, New(p.store(t), testConfig("n1"), slog.New(slog.NewTextHandler(&log, nil))), false)
	a.SetNodes(named("n1", 1))
	const want = "foreign lease: troupe-system/n1, held by another-controller,"
	a.waitFor(t, "the reason", func(s *messages.ClusterState) bool {
		return s.GetClaim() == messages.ClaimState_CLAIM_PENDING && strings.Contains(s.GetReason(), want)
	})
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log does not name the lease:\n%s", &log)
	}
	if held := p.server.Leases()["n1"]; held == nil || *held.Spec.HolderIdentity != holder || len(held.Labels)+len(held.Annotations) > 0 {
		t.Errorf("the foreign lease has been changed: %v", held)
	}
	if err := leases.Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.waitHeld(t)
}

// written is a log that can be read while it is written.
type written struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestLeasesAtRest counts requests: a node that holds its ID sends no request, however many
// bookmarks arrive, and resumes its watch without a list.
func TestLeasesAtRest(t *testing.T) {
	p := newLeasePlace(t)
	a := startAgent(t, p, testConfig("n1"))
	a.SetNodes(named("n1", 1))
	a.Publish([]string{"10.0.0.1/24"})
	a.waitFor(t, "its addresses published", published)
	counts := func() string {
		var all []string
		for _, verb := range []string{"list", "create", "patch", "delete"} {
			all = append(all, fmt.Sprintf("%s %d", verb, p.server.Requests(verb)))
		}
		return strings.Join(all, ", ")
	}
	before := counts()
	if want := "list 1, create 2, patch 1, delete 0"; before != want {
		t.Errorf("to join: %s, want %s", before, want)
	}
	for range 3 {
		watches := p.server.Requests("watch")
		p.server.Break()
		for p.server.Requests("watch") == watches {
			time.Sleep(time.Millisecond)
		}
	}
	// does not belong to the store
	p.server.Change("other", func(l *coordinationv1.Lease) { l.Labels = map[string]string{"other": ""} })
	p.put(t, leaseKeys.id(2), mustEncode(t, 2, "n2", "u2"))
	s := a.waitFor(t, "a peer", func(s *messages.ClusterState) bool { return s.GetNodes()["n2"].GetId() == 2 })
	if after := counts(); after != before || s.GetReason() != "" {
		t.Errorf("at rest: %s, before: %s; reason %q", after, before, s.GetReason())
	}
}

// TestLeaseErrors: only some refusals of the API server mean a conflict.
func TestLeaseErrors(t *testing.T) {
	server := newLeaseServer(t)
	store := func(namespace string) *leaseStore {
		s, _ := NewLeaseStore(server.Client(namespace), namespace).(*leaseStore)
		return s
	}
	s, record := store(leaseNamespace), `{"id":1,"name":"n1"}`
	one := leaseWrite{lease: "n1", annotations: map[string]*string{recordAnnotation: &record}, record: &messages.NodeRecord{Id: 1, Name: "n1"}}
	mod, err := s.write(context.Background(), one)
	if err != nil {
		t.Fatal(err)
	}
	again := one
	again.mod = mod
	if next, err := s.write(context.Background(), again); err != nil || next <= mod {
		t.Errorf("the same record again: version %d after %d, %v", next, mod, err)
	}
	for name, w := range map[string]leaseWrite{
		"created again":         one,
		"changed meanwhile":     {lease: "n1", mod: mod, annotations: one.annotations},
		"changed, and gone":     {lease: "n2", mod: mod, annotations: one.annotations},
		"deleted meanwhile":     {lease: "n2", mod: mod, deletes: true},
		"deletion of a new one": {lease: "n1", mod: mod, deletes: true},
	} {
		if _, err := s.write(context.Background(), w); !errors.Is(err, errGuard) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if _, err := store("none").write(context.Background(), one); err == nil || errors.Is(err, errGuard) {
		t.Errorf("namespace that does not exist: %v, want an error that is no conflict", err)
	}
}
