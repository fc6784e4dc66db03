package service_test

import (
	"fmt"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// withEndpoints returns the service of the tables with the given number of endpoints, in slices of
// 1000. Every tenth address is unusable.
func withEndpoints(n int) *messages.ServiceInput {
	in := input(webService(nodePort(30080), externalLocal))
	for i := range n {
		if i%1000 == 0 {
			in.Slices = append(in.Slices, sliceOf(fmt.Sprint("s", i/1000)))
		}
		e := &messages.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Ready: true, Serving: true, Node: fmt.Sprint("n", i%100)}
		if i%10 == 9 {
			e.Address = "127.0.0.1.1"
		}
		last := in.Slices[len(in.Slices)-1]
		last.Endpoints = append(last.Endpoints, e)
	}
	return in
}

// TestManyEndpoints: 100,000 endpoints are served. The unusable ones cause one problem per slice.
// Ten times as many endpoints need at most ten times as much memory.
func TestManyEndpoints(t *testing.T) {
	const many = 100_000
	large, small := withEndpoints(many), withEndpoints(many/10)
	view := service.Resolve(large, nodeN1(), detect())
	if got := len(view.GetFrontends()[0].GetBackends()); got != many*9/10 {
		t.Errorf("%d backends", got)
	}
	if got := len(view.GetErrors()); got != many/1000 {
		t.Errorf("%d problems, want one for each slice", got)
	}
	cost := func(in *messages.ServiceInput) float64 {
		return testing.AllocsPerRun(2, func() { service.Hash(service.Resolve(in, nodeN1(), detect())) })
	}
	if s, l := cost(small), cost(large); l > 11*s {
		t.Errorf("%v allocations for %d endpoints, %v for %d", s, many/10, l, many)
	}
}
