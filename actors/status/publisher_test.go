package status

import (
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// outside is the world that a publisher publishes to: it holds the ports that should be answered,
// and the reasons of the events.
type outside struct {
	ports   []uint32
	sets    int
	reasons []string
	last    events.Event
}

func (o *outside) Set(checks []healthcheck.Check) {
	o.sets++
	o.ports = nil
	for _, c := range checks {
		o.ports = append(o.ports, c.Health.GetPort())
	}
}

func (o *outside) Record(e events.Event) { o.reasons, o.last = append(o.reasons, e.Reason), e }

// inSync is the status of a service in sync; port 0 = without a health check.
func inSync(key string, port uint32) *messages.ServiceStatus {
	view := &messages.ServiceView{Key: key, Uid: "uid-" + key}
	if port != 0 {
		view.HealthChecks = []*messages.HealthCheck{{Port: port, LocalEndpoints: 1, ListenAddresses: []string{"192.168.16.1:31000"}}}
	}
	return &messages.ServiceStatus{Key: key, View: view, Renders: []*messages.RenderAck{{Key: key, Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC}}}
}

func TestHealthChecksAreHandedOnOnlyWhenComplete(t *testing.T) {
	o := &outside{}
	p := newPublisher(&Config{HealthChecks: o})
	known := map[string]*messages.ServiceStatus{}
	take := func(s *messages.ServiceStatus) { known[s.GetKey()] = s; p.status(s) }
	steps := []struct {
		name  string
		do    func()
		sets  int
		ports []uint32
	}{
		{"one service has a status, it is not known which exist", func() { take(inSync("a/web", 31000)) }, 0, nil},
		{"two exist, one has no status", func() { p.exist(map[string]bool{"a/web": true, "a/img": true}, known) }, 0, nil},
		{"the other one has a status", func() { take(inSync("a/img", 31001)) }, 1, []uint32{31001, 31000}},
		{"nothing new", func() { p.exist(map[string]bool{"a/web": true, "a/img": true}, known) }, 1, []uint32{31001, 31000}},
		{"one without a health check has a status", func() { take(inSync("a/db", 0)) }, 1, []uint32{31001, 31000}},
		{"one gives its health check up", func() { take(inSync("a/img", 0)) }, 2, []uint32{31000}},
		{"one is gone without a last status", func() { p.exist(map[string]bool{"a/img": true}, known) }, 3, nil},
	}
	for _, step := range steps {
		step.do()
		if o.sets != step.sets || !slices.Equal(o.ports, step.ports) {
			t.Errorf("%s: handed on %d times, last %v; want %d times, %v", step.name, o.sets, o.ports, step.sets, step.ports)
		}
	}
}

func TestPublisherRecordsEvents(t *testing.T) {
	o := &outside{}
	p := newPublisher(&Config{Events: o})
	p.status(inSync("a/web", 0))
	quiet := len(o.reasons)
	failed := inSync("a/web", 0)
	failed.Renders[0].State, failed.Renders[0].Error = messages.RenderState_RENDER_FAILED, "10.96.0.1:80/TCP: refused"
	p.status(failed)
	if quiet != 0 || len(o.reasons) != 1 || o.reasons[0] != "FailedToRender" {
		t.Errorf("events %v, want FailedToRender alone", o.reasons)
	}
}

func TestPublisherRecordsQuarantine(t *testing.T) {
	fault := func(decision string) *messages.Fault {
		return &messages.Fault{Actor: address.Service("a/web"), Decision: decision, Reason: "panic: boom"}
	}
	o := &outside{}
	p := newPublisher(&Config{Events: o, NodeName: "n1"})
	p.status(inSync("a/web", 0))
	p.fault(fault("restart"))
	p.fault(&messages.Fault{Actor: address.Registry, Decision: "quarantine"})
	p.fault(fault("quarantine"))
	p.status(inSync("a/db", 0))
	if !slices.Equal(o.reasons, []string{"Quarantined"}) || o.last.Object.UID != "uid-a/web" || o.last.Object.Name != "web" {
		t.Errorf("events %v, last %+v", o.reasons, o.last)
	}
	p.status(inSync("a/web", 0))
	p.status(inSync("a/web", 0))
	if !slices.Equal(o.reasons, []string{"Quarantined", "Recovered"}) || o.last.Object.UID != "uid-a/web" {
		t.Errorf("events %v, last %+v", o.reasons, o.last)
	}
	p.fault(fault("quarantine"))
	p.exist(map[string]bool{"a/db": true}, nil)
	p.status(inSync("a/web", 0)) // another one of the same name
	if !slices.Equal(o.reasons, []string{"Quarantined", "Recovered", "Quarantined"}) {
		t.Errorf("events %v", o.reasons)
	}
}
