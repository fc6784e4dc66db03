package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// bench is a loop on a model of etcd, stepped by hand in virtual time. Transactions and lists
// arrive when the test says so.
type bench struct {
	*loop
	t      *testing.T
	model  *model
	ops    []*operation
	states []*messages.ClusterState
}

// newBench makes the loop of node "me", which Kubernetes lists, on an etcd that answers.
func newBench(t *testing.T) *bench {
	b := &bench{t: t, model: newModel()}
	s := New(NewEtcdStore(nil, ""), Config{NodeName: "me"}, nil)
	f := s.newFollower(func(any) {})
	b.loop = newLoop(s, f, func(state *messages.ClusterState) { b.states = append(b.states, state) })
	b.write = func(op *operation) { b.ops = append(b.ops, op) }
	s.SetNodes(me("u"))
	b.takeRequests()
	b.list()
	return b
}

func (b *bench) list() { b.take(listed{revision: b.model.revision, pairs: b.model.list()}) }

// started steps and returns the transaction that was started, nil if none.
func (b *bench) started() *operation {
	before := len(b.ops)
	b.step()
	if len(b.ops) == before {
		return nil
	}
	return b.ops[len(b.ops)-1]
}

// mustStart lets virtual time pass until a transaction is started, and returns it.
func (b *bench) mustStart() *operation {
	b.t.Helper()
	for range 100 {
		before := len(b.ops)
		wait := b.step()
		if len(b.ops) > before {
			return b.ops[before]
		}
		time.Sleep(min(wait, time.Second))
	}
	b.t.Fatal("no transaction is started")
	return nil
}

// carry carries a transaction out on the model and reports the outcome to the loop. The watch does
// not deliver the change yet.
func (b *bench) carry(op *operation) {
	b.take(wrote{op: op, ok: b.model.apply(op), revision: b.model.revision})
}

func (b *bench) state() *messages.ClusterState { return b.states[len(b.states)-1] }

func (b *bench) asksForList() bool {
	select {
	case <-b.follower.relist:
		return true
	default:
		return false
	}
}

// TestLoopWaitsForItsOwnWrite: the loop does not decide on a keyspace without its last write. It
// asks for a new list if the watch never delivers the write.
func TestLoopWaitsForItsOwnWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.carry(b.mustStart())
		if op := b.started(); op != nil {
			t.Fatalf("%s before the watch has delivered the last write", op.verb)
		}
		b.list()
		if b.started() != nil || b.state().GetClaim() != holds {
			t.Errorf("after the watch has delivered it: %s, %d transactions", b.state().GetClaim(), len(b.ops))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.carry(b.mustStart())
		b.mustStart() // after RequestTimeout
		if !b.asksForList() {
			t.Error("no new list asked for")
		}
	})
}

// TestLoopOneTransactionAtATime: steps during a transaction start no other one.
func TestLoopOneTransactionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.mustStart()
		time.Sleep(time.Hour)
		if b.started() != nil {
			t.Error("a second transaction was started beside the first")
		}
	})
}

// TestLoopBacksOff: after one conflict after the other the loop still retries, offers more
// candidates, and sometimes asks for a new list.
func TestLoopBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lists := 0
		for n := range 3 * conflictsBeforeRelist {
			op := b.mustStart()
			if want := candidatesAfter(n); len(op.branches) != want {
				t.Errorf("attempt %d offers %d candidates, want %d", n, len(op.branches), want)
			}
			b.take(wrote{op: op})
			if b.asksForList() {
				lists++
			}
		}
		if lists != 3 {
			t.Errorf("%d new lists asked for, want 3", lists)
		}
		b.carry(b.mustStart())
		b.list()
		if b.step(); b.state().GetClaim() != holds {
			t.Errorf("ends as %s", b.state().GetClaim())
		}
	})
}

// TestLoopLostAnswer: the answer to a committed transaction is lost. The error ends as soon as the
// keyspace shows the transaction.
func TestLoopLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.carry(b.mustStart())
		b.list()
		b.step()
		b.syncer.Publish([]string{"10.0.0.1/24"})
		b.takeRequests()
		op := b.mustStart()
		b.model.apply(op)
		b.take(wrote{op: op, err: errors.New("no answer")})
		if b.step(); !strings.Contains(b.state().GetReason(), "no answer") || b.state().GetPublished() {
			t.Errorf("after the error: %v", b.state())
		}
		b.list()
		if b.step(); b.state().GetReason() != "" || !b.state().GetPublished() {
			t.Errorf("after the picture: %v", b.state())
		}
	})
}

// TestLoopPacesPeers changes peers quickly: the loop emits few states, and the last one is right.
func TestLoopPacesPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.carry(b.mustStart())
		b.list()
		b.step()
		time.Sleep(emitDistance)
		before := len(b.states)
		for id := uint32(2); id <= 101; id++ {
			b.model.record(testLayout, id, fmt.Sprintf("n%d", id), "u")
			b.list()
			b.step()
		}
		for b.stale {
			time.Sleep(b.step())
		}
		if got := len(b.states) - before; got > 2 || len(b.state().GetNodes()) != 102 {
			t.Errorf("%d states for 100 changes, the last with %d nodes; want at most 2, 102 nodes", got, len(b.state().GetNodes()))
		}
	})
}

// TestLoopDisconnected: the loop starts no transaction while etcd does not answer, and goes on when
// etcd answers.
func TestLoopDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.take(probed{err: errors.New("gone")})
		if b.started() != nil || !strings.Contains(b.state().GetReason(), "etcd: gone") || b.state().GetConnected() {
			t.Errorf("disconnected: %v, %d transactions", b.state(), len(b.ops))
		}
		b.take(probed{})
		if b.started() == nil {
			t.Error("nothing is started after the connection came back")
		}
	})
}
