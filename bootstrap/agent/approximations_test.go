package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
)

func TestApproximationsAreCountedByReason(t *testing.T) {
	kept := &messages.Approximation{Wanted: "source replaced", Rendered: "source kept", Why: "one row"}
	sticky := &messages.Approximation{Wanted: "affinity for 600 s", Rendered: "affinity per frontend", Why: "per row", Particular: true}
	family := &messages.ObjectError{Field: "ports[x].address", Message: "frontend [fd00::1]:80/TCP is IPv6", General: "IPv4 only"}
	sctp := &messages.ObjectError{Field: "ports[x].protocol", Message: "frontend 10.0.0.1:80/SCTP is not served"}
	service := func(key string, approximations []*messages.Approximation, unrendered ...*messages.ObjectError) *messages.ServiceStatus {
		return &messages.ServiceStatus{Key: key, Renders: []*messages.RenderAck{
			{Key: key, Renderer: "nat44", Approximations: approximations, Unrendered: unrendered}, {Key: key, Renderer: "routes"},
		}}
	}
	got := approximations([]*messages.ServiceStatus{
		service("a/a", []*messages.Approximation{kept, kept, sticky}),
		service("a/b", []*messages.Approximation{kept}, family, family, sctp),
		service("a/c", nil),
	})
	want := []api.Approximation{
		{Renderer: "nat44", Services: 1, Wanted: "served", Rendered: "not served", Why: "IPv4 only"},
		{Renderer: "nat44", Services: 2, Wanted: "source replaced", Rendered: "source kept", Why: "one row"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := approximations(nil); got == nil || len(got) > 0 {
		t.Errorf("without services: %v, want an empty list", got)
	}
}
