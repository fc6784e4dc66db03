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
	h.set("nodes", "")
	want() // services are neither watched nor failing
	h.set("services", "down")
	h.set("services", "down")
	h.set("nodes", "gone")
	want(verdict{false, "services: down"}, verdict{false, "nodes: gone; services: down"})
	h.set("nodes", "")
	h.set("services", "")
	h.set("services", "")
	want(verdict{false, "services: down"}, verdict{true, ""})
	if woken != 4 {
		t.Errorf("woken %d times, want once for each verdict", woken)
	}
	for i := range 100 {
		h.set("nodes", fmt.Sprint(i))
	}
	got := h.take()
	if len(got) != maxPending || got[maxPending-1].reason != "nodes: 99" || h.state() != got[maxPending-1] {
		t.Errorf("a long series: %v, state %v", got, h.state())
	}
}
