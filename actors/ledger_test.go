package actors

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// viewOf is a service with one TCP frontend on each address and one backend.
func viewOf(key string, created int64, addresses ...string) *messages.ServiceView {
	v := &messages.ServiceView{Key: key, Created: created}
	for _, a := range addresses {
		v.Frontends = append(v.Frontends, &messages.Frontend{
			Address: a, Port: 80, Protocol: messages.Protocol_TCP, Action: messages.Action_ACTION_FORWARD,
			Backends: []*messages.Backend{{Address: "10.1.1.2", Port: 8080, Local: true}},
		})
	}
	return v
}

func testConfig() nat44.Config {
	return nat44.Config{Node: "n1", TwiceNAT: netip.MustParseAddr("10.1.1.254"), Pads: true}
}

func keyOf(address string) frontend.Key {
	return frontend.Key{Addr: netip.MustParseAddr(address), Port: 80, Proto: 6}
}

func TestLedgerTellsEverybodyWhoseStandingChanged(t *testing.T) {
	l := newLedger(testConfig())
	steps := []struct {
		name     string
		key      string
		view     *messages.ServiceView
		affected []string
		owner    string // of 10.0.0.1
	}{
		{"first claim", "a/young", viewOf("a/young", 20, "10.0.0.1"), []string{"a/young"}, "a/young"},
		{"older one takes it", "b/old", viewOf("b/old", 10, "10.0.0.1"), []string{"a/young", "b/old"}, "b/old"},
		{"it moves away", "b/old", viewOf("b/old", 10, "10.0.0.2"), []string{"a/young", "b/old"}, "a/young"},
		{"it goes", "a/young", nil, []string{"a/young"}, ""},
	}
	for i, step := range steps {
		got := l.put(step.key, uint64(i+1), uint64(i+1), step.view)
		if diff := cmp.Diff(step.affected, got); diff != "" {
			t.Errorf("%s: affected (-want +got):\n%s", step.name, diff)
		}
		if owner, _ := l.claims.Owner(keyOf("10.0.0.1")); owner != step.owner {
			t.Errorf("%s: owner %q, want %q", step.name, owner, step.owner)
		}
		if !l.dirty[keyOf("10.0.0.1")] {
			t.Errorf("%s: the row is not looked at", step.name)
		}
		l.clean(keyOf("10.0.0.1"))
	}
}

func TestLedgerWaitsLongerAfterEachRefusal(t *testing.T) {
	l, now := newLedger(testConfig()), time.Unix(1000, 0)
	l.put("a/a", 1, 1, viewOf("a/a", 1, "10.0.0.1"))
	k := keyOf("10.0.0.1")
	l.batch(10)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		l.fail(k, errors.New("refused"), now, time.Second)
		if got := l.failed[k].until.Sub(now); got < want*time.Second*4/5 || got > want*time.Second*6/5 {
			t.Errorf("refusal %d: waits %v, want %v, up to a fifth longer or shorter", i+1, got, want*time.Second)
		}
		l.retry(now)
		if got := l.batch(10); len(got) != 0 {
			t.Errorf("refusal %d: tried again at once", i+1)
		}
		now = l.failed[k].until
		l.retry(now)
		if got := l.batch(10); len(got) != 1 {
			t.Errorf("refusal %d: not tried again afterwards", i+1)
		}
	}
	l.put("a/a", 2, 2, viewOf("a/a", 1, "10.0.0.1", "10.0.0.2"))
	l.put("a/a", 3, 3, viewOf("a/a", 1, "10.0.0.2"))
	if l.failed[k] != nil {
		t.Error("a row that is wanted differently keeps its failure")
	}
}

func TestAckSaysWhereAServiceStands(t *testing.T) {
	refused := errors.New("no")
	for name, tc := range map[string]struct {
		prepare func(l *ledger)
		have    *nat44.State
		state   messages.RenderState
		inSync  bool
		error   string
	}{
		"VPP unknown":  {func(*ledger) {}, nil, messages.RenderState_RENDER_PENDING, false, "waiting for VPP"},
		"under way":    {func(*ledger) {}, nat44.NewState(), messages.RenderState_RENDER_PENDING, false, ""},
		"done":         {func(l *ledger) { l.clean(keyOf("10.0.0.1")) }, nat44.NewState(), messages.RenderState_RENDER_IN_SYNC, true, ""},
		"refused":      {func(l *ledger) { l.fail(keyOf("10.0.0.1"), refused, time.Unix(0, 0), 1) }, nat44.NewState(), messages.RenderState_RENDER_FAILED, false, "10.0.0.1:80/TCP: no"},
		"going":        {func(l *ledger) { l.put("a/a", 2, 0, nil) }, nat44.NewState(), messages.RenderState_RENDER_PENDING, false, ""},
		"gone":         {func(l *ledger) { l.put("a/a", 2, 0, nil); l.clean(keyOf("10.0.0.1")) }, nat44.NewState(), messages.RenderState_RENDER_RETIRED, false, ""},
		"no news yet":  {func(l *ledger) { l.put("a/a", 2, 0, nil) }, nil, messages.RenderState_RENDER_PENDING, false, "waiting for VPP"},
		"owned by old": {func(l *ledger) { l.put("b/b", 1, 1, viewOf("b/b", 0, "10.0.0.1")); l.clean(keyOf("10.0.0.1")) }, nat44.NewState(), messages.RenderState_RENDER_IN_SYNC, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(testConfig())
			l.put("a/a", 1, 1, viewOf("a/a", 1, "10.0.0.1"))
			tc.prepare(l)
			ack := l.ack("nat44", "a/a", tc.have)
			if ack.GetState() != tc.state || ack.GetError() != tc.error {
				t.Errorf("state %v error %q, want %v %q", ack.GetState(), ack.GetError(), tc.state, tc.error)
			}
			if rows := ack.GetRows(); len(rows) > 0 && rows[0].GetInSync() != tc.inSync {
				t.Errorf("row in sync %v, want %v", rows[0].GetInSync(), tc.inSync)
			}
		})
	}
}

// TestLedgerOrderDoesNotMatter puts the same last word of each service in any order and with any history, and compares who owns what.
func TestLedgerOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		services := rapid.IntRange(1, 6).Draw(t, "services")
		final := map[string]*messages.ServiceView{}
		for i := range services {
			key := fmt.Sprintf("ns/s%d", i)
			if rapid.Bool().Draw(t, "exists") {
				addresses := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}), 0, 3, rapid.ID).Draw(t, "addresses")
				final[key] = viewOf(key, int64(rapid.IntRange(0, 2).Draw(t, "created")), addresses...)
			} else {
				final[key] = nil
			}
		}
		straight, history := newLedger(testConfig()), newLedger(testConfig())
		for i := range services {
			key := fmt.Sprintf("ns/s%d", i)
			straight.put(key, 1, 1, final[key])
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, services-1), 0, 20).Draw(t, "noise") {
			key := fmt.Sprintf("ns/s%d", i)
			history.put(key, 1, 1, viewOf(key, 1, rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(t, "address")))
		}
		for _, i := range rapid.Permutation(indices(services)).Draw(t, "order") {
			key := fmt.Sprintf("ns/s%d", i)
			history.put(key, 2, 2, final[key])
		}
		if diff := cmp.Diff(rowsOf(straight), rowsOf(history)); diff != "" {
			t.Fatalf("rows (-straight +after history):\n%s", diff)
		}
	})
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// rowsOf lists the wanted rows with their owners, as text.
func rowsOf(l *ledger) map[string]string {
	rows := map[string]string{}
	for k := range l.claims.Rows() {
		owner, _ := l.claims.Owner(k)
		rows[k.String()] = owner
	}
	return rows
}

// TestDelaysAreSpread: what was refused together is not tried again together, and a rerun of the same delays the same.
func TestDelaysAreSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 100 {
		name := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}).String()
		d := spread(10*time.Second, name, 3)
		if d < 8*time.Second || d > 12*time.Second || d != spread(10*time.Second, name, 3) {
			t.Errorf("%s: %v", name, d)
		}
		seen[d] = true
	}
	if len(seen) < 90 || spread(0, "a", 1) != 0 {
		t.Errorf("%d different delays of 100", len(seen))
	}
}
