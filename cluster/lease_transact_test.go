package cluster

import (
	"slices"
	"testing"
)

// TestTwoAgentsOfOneNode interleaves the first claims of two agents with the same name: one agent
// gets an ID, the other leaves nothing behind.
func TestTwoAgentsOfOneNode(t *testing.T) {
	m := newLeaseModel()
	k := m.keyspace(nil)
	claims := func() *operation {
		op, err := k.takeFree(k.free(4), "n1", "u1")
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	var inner bool
	m.between = func() error {
		m.between = func() error { return nil }
		inner = m.apply(claims())
		return nil
	}
	outer := m.apply(claims())
	if outer == inner || !inner {
		t.Errorf("first agent %t, second agent, which was faster, %t", outer, inner)
	}
	now := m.keyspace(nil)
	if got := now.owners["n1"]; !slices.Equal(got, []uint32{2}) || now.names["n1"].value.GetId() != 2 {
		t.Errorf("IDs %v, name record %v; want ID 2 alone", got, now.names["n1"].value)
	}
}

// TestInterruptedOperations ends each operation after its first write: no other node can take the
// ID of the operation, and the node has it at the end.
func TestInterruptedOperations(t *testing.T) {
	claim := func(t *testing.T, m *leaseModel, name string, id uint32) {
		t.Helper()
		op, err := m.keyspace(nil).takeFree([]uint32{id}, name, "u"+name)
		if err != nil {
			t.Fatal(err)
		}
		m.apply(op)
	}
	for name, tt := range map[string]struct {
		prepare, operate func(*testing.T, *leaseModel)
	}{
		"claim": {
			prepare: func(*testing.T, *leaseModel) {},
			operate: func(t *testing.T, m *leaseModel) { claim(t, m, "n1", 1) },
		},
		"collection": {
			prepare: func(t *testing.T, m *leaseModel) { claim(t, m, "n1", 1) },
			operate: func(_ *testing.T, m *leaseModel) { m.apply(m.keyspace(nil).dropNode("n1")) },
		},
	} {
		m := newLeaseModel()
		tt.prepare(t, m)
		m.between = func() error { return errCrash }
		tt.operate(t, m)
		m.between = func() error { return nil }
		k := m.keyspace(nil)
		if len(k.ids)+len(k.names) != 1 {
			t.Errorf("%s: %d IDs and %d names after one write, want one of either", name, len(k.ids), len(k.names))
		}
		claim(t, m, "n2", k.free(1)[0])
		in := input{connected: true, self: identity{name: "n1"}, candidates: 1, view: view{}.next(nodesOf("n1", node("n1", "again"), node("n2", "un2")))}
		for range 3 {
			in.keys = m.keyspace(nil)
			d := decide(in)
			if d.op != nil && m.apply(d.op) {
				in.self.confirmed = true
			}
		}
		in.keys = m.keyspace(nil)
		if d := decide(in); d.claim != holds || d.id != 1 || in.keys.idOf("n2") != 2 {
			t.Errorf("%s: n1 ends as %s with ID %d (%s), n2 with ID %d; want IDs 1 and 2", name, d.claim, d.id, d.reason, in.keys.idOf("n2"))
		}
	}
}
