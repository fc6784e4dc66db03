package informers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHealth(t *testing.T) {
	woken := 0
	h := newHealth(func() { woken++ }, []string{"nodes", "services"})
	want := func(verdicts ...verdict) {
		t.Helper()
		if diff := cmp.Diff(verdicts, h.take(), cmp.AllowUnexported(verdict{})); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	}
	well := trouble{}
	h.set("nodes", well)
	want() // services are neither watched nor failing
	h.set("services", trouble{other, "down"})
	h.set("services", trouble{other, "down"})
	h.set("nodes", trouble{other, "gone"})
	want(verdict{reason: "services: down", causes: "other"}, verdict{reason: "nodes: gone; services: down", causes: "other"})
	h.set("nodes", trouble{silent, "EOF"})
	h.set("services", trouble{silent, "EOF"})
	want(verdict{false, "the API server does not answer: EOF; services: down", string(silent) + "; other"}, verdict{false, "the API server does not answer: EOF", string(silent)})
	h.set("nodes", trouble{forbidden, "nodes is forbidden"})
	h.set("services", trouble{forbidden, "services is forbidden"})
	h.take()
	if now := h.state(); now.reason != "no permission to list and watch nodes, services: bind the ClusterRole of the agent to its service account (services is forbidden)" {
		t.Error(now.reason)
	}
	h.set("nodes", well)
	h.set("services", well)
	h.set("services", well)
	h.take()
	if now := h.state(); now != (verdict{ok: true}) {
		t.Error(now)
	}
	if woken != 8 {
		t.Errorf("woken %d times, want once for each verdict", woken)
	}
	for i := range 100 {
		h.set("nodes", trouble{other, fmt.Sprint(i)})
	}
	got := h.take()
	if len(got) != maxPending || got[maxPending-1].reason != "nodes: 99" || h.state() != got[maxPending-1] {
		t.Errorf("a long series: %v, state %v", got, h.state())
	}
}
