package nat44

import (
	"testing"
)

// TestPart: a change of backends can be carried out in parts, each of which leaves VPP with a sound
// row that the next part starts from; a row that is replaced cannot.
func TestPart(t *testing.T) {
	have := newRow("10.96.0.1:80/TCP")
	want := have
	have.Locals, want.Locals = many(72)[:36], many(72)[36:]
	steps := 0
	for ops := DiffRow(&have, &want); len(ops) > 0; ops = DiffRow(&have, &want) {
		if got := Cost(ops); got != len(ops) {
			t.Fatalf("%d operations on one backend each cost %d", len(ops), got)
		}
		part := Part(ops, 10)
		if len(part) > 10 {
			t.Fatalf("a part has %d operations", len(part))
		}
		state := NewState()
		state.Rows[have.Key] = have
		for _, op := range part {
			if err := op.Check(); err != nil {
				t.Fatal(err)
			}
			state.Record(op)
		}
		have = state.Rows[have.Key]
		steps++
	}
	if steps != 8 || !have.Equal(want) {
		t.Errorf("equal %t after %d parts, want 72 operations in 8", have.Equal(want), steps)
	}
	want.Flags = TwiceNAT
	if ops := DiffRow(&have, &want); len(Part(ops, 1)) != 2 || Cost(ops) != 3+len(have.Entries()) {
		t.Errorf("a row is replaced by %d operations that cost %d, want 2 and %d", len(Part(ops, 1)), Cost(ops), 3+len(have.Entries()))
	}
}
