package contract

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// rig is one VPP with a link to it.
type rig struct {
	Target
	link   *link.Link
	states chan *messages.LinkState
	boot   string
}

// newRig connects to a target. The link ends with the test, before the target does.
func newRig(t testing.TB, target Target) *rig {
	t.Helper()
	v := &rig{Target: target, states: make(chan *messages.LinkState, 100)}
	v.link = link.New(link.Config{Socket: target.Socket(), BackoffMax: 100 * time.Millisecond}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.link.Run(ctx, func(s *messages.LinkState) { v.states <- s }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("link: %v", err)
		}
	})
	v.waitUp(t)
	return v
}

// waitUp waits for the next session.
func (v *rig) waitUp(t testing.TB) { v.boot = v.wait(t, true).GetBoot() }

// waitDown waits for the end of the session.
func (v *rig) waitDown(t testing.TB) { v.wait(t, false) }

func (v *rig) wait(t testing.TB, up bool) *messages.LinkState {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case s := <-v.states:
			if s.GetUp() == up {
				return s
			}
		case <-deadline:
			t.Fatalf("the link does not become up=%v", up)
		}
	}
}

// retval sends a message and returns the return value of VPP.
func (v *rig) retval(t testing.TB, msg api.Message) int32 {
	t.Helper()
	results, err := v.link.Do(t.Context(), []api.Message{msg})
	if err != nil {
		t.Fatal(err)
	}
	retval, answered := link.Retval(results[0].Err)
	if !answered {
		t.Fatalf("%s: %v", msg.GetMessageName(), results[0].Err)
	}
	return retval
}

// expect sends a message and fails the test unless VPP returns the value.
func (v *rig) expect(t testing.TB, want int32, msg api.Message) {
	t.Helper()
	if got := v.retval(t, msg); got != want {
		t.Errorf("%s%+v returned %d, want %d", msg.GetMessageName(), msg, got, want)
	}
}

// ask sends a message and returns its reply, which has to say success.
func ask[R api.Message](t testing.TB, v *rig, msg api.Message) R {
	t.Helper()
	results, err := v.link.Do(t.Context(), []api.Message{msg})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		t.Fatalf("%s%+v: %v", msg.GetMessageName(), msg, err)
	}
	reply, ok := results[0].Reply.(R)
	if !ok {
		t.Fatalf("%s was answered by %T", msg.GetMessageName(), results[0].Reply)
	}
	return reply
}

// dump returns all details of one type.
func dump[D api.Message](t testing.TB, v *rig, req api.Message) []D {
	t.Helper()
	var all []D
	err := v.link.Dump(t.Context(), req, func(msg api.Message) {
		if d, ok := msg.(D); ok {
			all = append(all, d)
		} else {
			t.Errorf("%s was answered by %T", req.GetMessageName(), msg)
		}
	})
	if err != nil {
		t.Fatalf("%s: %v", req.GetMessageName(), err)
	}
	return all
}

// read reads the state of NAT44.
func (v *rig) read(t testing.TB) *nat44.State {
	t.Helper()
	state, err := nat44.Read(t.Context(), v.link)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// apply carries out operations, each of which has to succeed, and returns the number of messages.
func (v *rig) apply(t testing.TB, ops []nat44.Op) (sent int) {
	t.Helper()
	for _, result := range nat44.Apply(t.Context(), v.link, ops) {
		if result.Err != nil || result.Unknown {
			t.Errorf("%s: error %v, unknown %v", result.Op, result.Err, result.Unknown)
		}
		sent += result.Messages
	}
	return sent
}

// settle makes VPP hold what is wanted and returns the operations that it took.
func (v *rig) settle(t testing.TB, want *nat44.Want) []nat44.Op {
	t.Helper()
	have := v.read(t)
	ops := nat44.Diff(have, want, true)
	v.apply(t, ops)
	if again := nat44.Diff(v.read(t), want, true); len(again) > 0 {
		t.Errorf("operations\n%v\nleave\n%v", ops, again)
	}
	return ops
}

// refused fails the test unless the link refuses the message.
func (v *rig) refused(t testing.TB, msg api.Message) {
	t.Helper()
	results, err := v.link.Do(t.Context(), []api.Message{msg})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(results[0].Err, link.ErrRefused) {
		t.Errorf("%s was sent: %v", msg.GetMessageName(), results[0].Err)
	}
}

// waitFor polls a condition.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// check fails the test where values differ.
func check[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
