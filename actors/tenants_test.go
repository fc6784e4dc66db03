package actors_test

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// TestTenantWithManyEndpoints: 100,000 endpoints of one tenant cost VPP one row, and the change of
// another tenant what it costs without them.
func TestTenantWithManyEndpoints(t *testing.T) {
	w := web(t, actorstest.Config{})
	const many = 100_000
	before := w.VPP.Counters()
	w.Source.Change(func(s *kube.Store) {
		s.Set(probe.Service("many", "10.96.0.99"), nil)
		var slice *messages.EndpointSlice
		for i := range many {
			if i%1000 == 0 {
				if slice != nil {
					s.Set(slice, nil)
				}
				slice = probe.Slice("many")
				slice.Name = fmt.Sprint("many-", i/1000)
			}
			slice.Endpoints = append(slice.Endpoints, &messages.Endpoint{
				Address: fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255, i&255), Ready: true, Serving: true, Node: "n2",
			})
		}
		s.Set(slice, nil)
	})
	w.Await("row", func() bool { return len(w.Rows()) == 3 })
	w.Settled()
	after := w.VPP.Counters()
	if n := after.Mutating() - before.Mutating(); n != 1 {
		t.Errorf("%d messages changed VPP, want 1:\n%s", n, after.String())
	}
	status := w.Statuses()["default/many"]
	if got := len(status.GetView().GetFrontends()[0].GetBackends()); got != many {
		t.Errorf("the view has %d endpoints, want all", got)
	}
	ack := status.GetRenders()[0]
	if len(ack.GetApproximations()) == 0 || ack.GetApproximations()[0].GetWanted() != "100000 endpoints" {
		t.Errorf("approximations %v", ack.GetApproximations())
	}
	if n := w.Backends(ack.GetRows()[0].GetVip()); n != 127 {
		t.Errorf("%d backends in VPP, want 127", n)
	}
	w.Source.Change(func(s *kube.Store) { s.Set(probe.Slice("db", "10.1.1.4", "10.1.1.5"), nil) })
	w.Settled()
	last := w.VPP.Counters()
	if n := last.Mutating() - after.Mutating(); n != 2 {
		t.Errorf("%d messages changed VPP for another tenant, want 2:\n%s", n, last.String())
	}
}
