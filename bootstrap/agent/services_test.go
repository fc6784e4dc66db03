package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// serviceStatus makes a status with an acknowledgement of each renderer; change may alter it and
// the one of nat44.
func serviceStatus(change func(s *messages.ServiceStatus, ack *messages.RenderAck)) *messages.ServiceStatus {
	ack := &messages.RenderAck{Key: "shop/web", Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC, Rows: []*messages.RowState{
		{Vip: "10.96.0.1:80/TCP", InSync: true}, {Vip: "10.96.0.1:443/TCP", InSync: true},
	}}
	routes := &messages.RenderAck{Key: "shop/web", Renderer: "routes", State: messages.RenderState_RENDER_IN_SYNC}
	s := &messages.ServiceStatus{
		Key: "shop/web", Generation: 7, Renders: []*messages.RenderAck{ack, routes}, View: &messages.ServiceView{Key: "shop/web", Frontends: []*messages.Frontend{
			{Address: "10.96.0.1", Port: 80, Backends: []*messages.Backend{{Address: "10.1.1.1", Port: 8080}, {Address: "10.1.1.2", Port: 8080}}},
			{Address: "10.96.0.1", Port: 443, Backends: []*messages.Backend{{Address: "10.1.1.1", Port: 8443}}},
			{Address: "203.0.113.1", Port: 80, Backends: []*messages.Backend{{Address: "10.1.1.1", Port: 8080}}},
		}},
	}
	if change != nil {
		change(s, ack)
	}
	return s
}

func TestServiceLine(t *testing.T) {
	system := runtime.NewSystem(runtime.Options{Logger: slog.New(slog.DiscardHandler)})
	b := backend{agent: &Agent{system: system, cfg: &config.Agent{Renderer: config.RendererNAT44}, health: healthcheck.New(healthcheck.Config{})}}
	for name, tt := range map[string]struct {
		change func(s *messages.ServiceStatus, ack *messages.RenderAck)
		lost   string
		state  api.ServiceState
		rows   int
		err    string
	}{
		"in sync":                       {state: api.ServiceInSync, rows: 2},
		"not told":                      {change: func(s *messages.ServiceStatus, _ *messages.RenderAck) { s.Renders = nil }, state: api.ServicePending},
		"one renderer has not answered": {change: func(s *messages.ServiceStatus, _ *messages.RenderAck) { s.Renders = s.Renders[1:] }, state: api.ServicePending},
		"one pending": {change: func(_ *messages.ServiceStatus, ack *messages.RenderAck) {
			ack.State, ack.Rows[1].InSync = messages.RenderState_RENDER_PENDING, false
		}, state: api.ServicePending, rows: 1},
		"refused": {change: func(_ *messages.ServiceStatus, ack *messages.RenderAck) {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, "10.96.0.1:80/TCP: VPP said no"
		}, state: api.ServiceFailed, rows: 2, err: "10.96.0.1:80/TCP: VPP said no"},
		"failed in one renderer of two": {change: func(s *messages.ServiceStatus, _ *messages.RenderAck) {
			s.Renders[1].State, s.Renders[1].Error = messages.RenderState_RENDER_FAILED, "no"
		}, state: api.ServiceFailed, rows: 2, err: "no"},
		"contested": {change: func(_ *messages.ServiceStatus, ack *messages.RenderAck) {
			ack.Conflicts = []*messages.Conflict{{Frontend: "203.0.113.1:80/TCP", Owner: "shop/old"}}
		}, state: api.ServiceInSync, rows: 2, err: "203.0.113.1:80/TCP is in use by shop/old"},
		"broken input": {change: func(s *messages.ServiceStatus, _ *messages.RenderAck) {
			s.Errors = []*messages.ObjectError{{Source: "a.yaml", Kind: "Service", Object: "shop/web", Field: "spec.ports[0].port", Message: "99999 is none"}}
		}, state: api.ServiceInSync, rows: 2, err: "Service shop/web: spec.ports[0].port: 99999 is none"},
		"broken input of unknown place": {change: func(s *messages.ServiceStatus, _ *messages.RenderAck) {
			s.Errors = []*messages.ObjectError{{Message: "is no YAML"}}
		}, state: api.ServiceInSync, rows: 2, err: "is no YAML"},
		"a refusal counts more than the input": {change: func(s *messages.ServiceStatus, ack *messages.RenderAck) {
			ack.State, ack.Error = messages.RenderState_RENDER_FAILED, "no"
			s.Errors = []*messages.ObjectError{{Message: "is no YAML"}}
		}, state: api.ServiceFailed, rows: 2, err: "no"},
		"headless": {change: func(s *messages.ServiceStatus, ack *messages.RenderAck) {
			s.View.NotServed, ack.Rows = "headless", nil
		}, state: api.ServiceNotServed},
		"above a limit": {change: func(s *messages.ServiceStatus, ack *messages.RenderAck) {
			s.View.Refused, ack.Rows = "it has 9 frontends", nil
			s.Errors = []*messages.ObjectError{{Message: "is no YAML"}}
		}, state: api.ServiceFailed, err: "not served: it has 9 frontends"},
		"VPP lost": {lost: "VPP is not connected: gone", state: api.ServicePending, err: "VPP is not connected: gone"},
		"VPP lost, headless": {change: func(s *messages.ServiceStatus, ack *messages.RenderAck) {
			s.View.NotServed, ack.Rows = "headless", nil
		}, lost: "VPP is not connected: gone", state: api.ServiceNotServed},
	} {
		got := b.service(serviceStatus(tt.change), tt.lost, nil)
		if got.State != tt.state || got.Rows != tt.rows || got.Error != tt.err {
			t.Errorf("%s: %s, %d rows, %q; want %s, %d rows, %q", name, got.State, got.Rows, got.Error, tt.state, tt.rows, tt.err)
		}
		if got.Key != "shop/web" || got.Generation != 7 || got.Frontends != 3 || got.Endpoints != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWords: the words of the API are those of the messages.
func TestWords(t *testing.T) {
	for value, want := range map[fmt.Stringer]string{
		messages.InterfaceKind_INTERFACE_POD: "pod", messages.InterfaceKind_INTERFACE_UPLINK: "uplink",
		messages.InterfaceKind_INTERFACE_INTERNAL: "internal", messages.InterfaceKind_INTERFACE_OTHER: "other",
		messages.ClaimState_CLAIM_HELD: "held", messages.ClaimState_CLAIM_FENCED: "fenced", messages.ClaimState_CLAIM_PENDING: "pending",
		messages.Method_METHOD_UPDATE: "update", messages.Method_METHOD_UPSTREAM_RESYNC: "upstream-resync",
		messages.Method_METHOD_DOWNSTREAM_RESYNC: "downstream-resync", messages.Method_METHOD_FULL_RESYNC: "full-resync",
	} {
		if got := service.Word(value); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// TestFaultsOfEndpoints: a service in sync whose endpoint has no interface says so, also at the
// endpoint.
func TestFaultsOfEndpoints(t *testing.T) {
	b := backend{agent: &Agent{metrics: metrics.New(), cfg: &config.Agent{}}}
	lost := b.faults(&status.ServicesPage{Unplaced: []string{"10.1.1.4", "10.1.9.9"}})
	view := &messages.ServiceView{Frontends: []*messages.Frontend{frontend("10.96.0.10", 80, nil), frontend("10.96.0.10", 81, nil)}}
	const want = "1 of 2 endpoints: 10.1.1.4: VPP has no interface or route for it: connections to it are lost"
	if got := lost.of(view); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lost.of(&messages.ServiceView{}) + faults(nil).of(view); got != "" {
		t.Errorf("without a fault: %q", got)
	}
	chained := frontend("10.96.0.10", 80, nil)
	chained.Backends[0].Address = "10.96.0.20"
	page := &status.ServicesPage{ServiceCIDRs: []string{"10.96.0.0/16"}, Services: []*messages.ServiceStatus{{View: &messages.ServiceView{Frontends: []*messages.Frontend{chained}}}}}
	if got := b.faults(page).of(page.Services[0].View); !strings.HasPrefix(got, "1 of 2 endpoints: 10.96.0.20: it is in the service CIDRs") {
		t.Errorf("an endpoint that is a cluster IP: %q", got)
	}
	w := packetNode()
	w.faults = lost
	p, err := parsePacket("10.1.1.9", "10.96.0.10:80/TCP")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range explainPacket(p, w).Backends {
		if (b.Fault != "") != (b.Address == "10.1.1.4:8080") {
			t.Errorf("%+v", b)
		}
	}
}
