package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errCrash ends an operation between two of its writes.
var errCrash = errors.New("the agent has died")

// leaseModel is a model of the API server for a leaseWriter. An operation is a sequence of writes;
// between two writes anything may happen.
type leaseModel struct {
	revision int64
	leases   map[string]*coordinationv1.Lease
	mods     map[string]int64
	// between is called before each write of an operation, except the first. Its error ends the
	// operation there.
	between func() error
}

func newLeaseModel() *leaseModel {
	return &leaseModel{
		revision: 1, leases: map[string]*coordinationv1.Lease{}, mods: map[string]int64{}, between: func() error { return nil },
	}
}

func (m *leaseModel) write(_ context.Context, w leaseWrite) (int64, error) {
	if m.mods[w.lease] != w.mod {
		return 0, errGuard
	}
	m.revision++
	if w.deletes {
		delete(m.leases, w.lease)
		delete(m.mods, w.lease)
		return 0, nil
	}
	next := w.object(metav1.MicroTime{})
	if old := m.leases[w.lease]; old != nil {
		next = old.DeepCopy()
		for name, value := range w.annotations {
			if delete(next.Annotations, name); value != nil {
				next.Annotations[name] = *value
			}
		}
		if w.record != nil {
			next.OwnerReferences = w.owners()
		}
	}
	m.leases[w.lease], m.mods[w.lease] = next, m.revision
	return m.revision, nil
}

// apply carries out an operation, until it is interrupted.
func (m *leaseModel) apply(op *operation) bool {
	first := true
	return transactLeases(context.Background(), func(ctx context.Context, w leaseWrite) (int64, error) {
		if !first {
			if err := m.between(); err != nil {
				return 0, err
			}
		}
		first = false
		return m.write(ctx, w)
	}, leaseKeys, op).ok
}

func (m *leaseModel) pairs() map[string]pair {
	pairs := map[string]pair{}
	for name, lease := range m.leases {
		for _, c := range leaseKeys.changes(lease, m.mods[name], false) {
			if !c.deleted {
				pairs[c.key] = c.pair
			}
		}
	}
	return pairs
}

func (m *leaseModel) keyspace(before *keyspace) *keyspace {
	if before == nil {
		before = newKeyspace(leaseKeys)
	}
	var pairs []pair
	for _, p := range m.pairs() {
		pairs = append(pairs, p)
	}
	return before.replaced(m.revision, pairs)
}

// check satisfies townStore. The stored records are decodable at every moment. An ID has one name,
// because it has one Lease. A settled node has one ID, on which both of its Leases agree.
func (m *leaseModel) check(settled ...string) error {
	k := m.keyspace(nil)
	if len(k.problems) > 0 {
		return fmt.Errorf("undecodable: %s", k.trouble())
	}
	for _, name := range settled {
		id := k.names[name].value.GetId()
		if holder := k.ids[id].value.GetName(); holder != name {
			return fmt.Errorf("%s has ID %d, whose record says %q", name, id, holder)
		}
		if owned := k.owners[name]; len(owned) != 1 {
			return fmt.Errorf("%s has the IDs %v", name, owned)
		}
	}
	return nil
}

// garbage deletes the Leases of nodes whose Node is gone, as Kubernetes does.
func (m *leaseModel) garbage(uids map[string]bool) {
	for name, lease := range m.leases {
		if len(lease.OwnerReferences) > 0 && !uids[string(lease.OwnerReferences[0].UID)] {
			m.revision++
			delete(m.leases, name)
			delete(m.mods, name)
		}
	}
}

func (m *leaseModel) wipe() {
	m.leases, m.mods = map[string]*coordinationv1.Lease{}, map[string]int64{}
	m.revision++
}

func (m *leaseModel) backup() (restore func()) {
	leases := maps.Clone(m.leases)
	return func() {
		m.wipe()
		for name, lease := range leases {
			m.leases[name], m.mods[name] = lease, m.revision
		}
	}
}
