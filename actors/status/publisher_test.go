package status

import (
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// outside is the world that a herald speaks to: it holds the ports that should be answered, and the reasons of the events.
type outside struct {
	ports   []uint32
	sets    int
	reasons []string
	last    events.Event
}

// Set satisfies HealthChecks.
func (o *outside) Set(checks []healthcheck.Check) {
	o.sets++
	o.ports = nil
	for _, c := range checks {
		o.ports = append(o.ports, c.Health.GetPort())
	}
}

// Record satisfies events.Recorder.
func (o *outside) Record(e events.Event) { o.reasons, o.last = append(o.reasons, e.Reason), e }

// spoken is the status of a service in sync; port 0 = without a health check.
func spoken(key string, port uint32) *messages.ServiceStatus {
	view := &messages.ServiceView{Key: key, Uid: "uid-" + key}
	if port != 0 {
		view.HealthChecks = []*messages.HealthCheck{{Port: port, LocalEndpoints: 1, ListenAddresses: []string{"192.168.16.1:31000"}}}
	}
	return &messages.ServiceStatus{Key: key, View: view, Renders: []*messages.RenderAck{{Key: key, Renderer: "nat44", State: messages.RenderState_RENDER_IN_SYNC}}}
}

func TestHealthChecksAreHandedOnOnlyWhenComplete(t *testing.T) {
	o := &outside{}
	h := newHerald(&Deps{HealthChecks: o})
	heard := map[string]*messages.ServiceStatus{}
	say := func(s *messages.ServiceStatus) { heard[s.GetKey()] = s; h.status(s) }
	steps := []struct {
		name  string
		do    func()
		sets  int
		ports []uint32
	}{
		{"one service speaks, nobody knows who exists", func() { say(spoken("a/web", 31000)) }, 0, nil},
		{"two exist, one is silent", func() { h.exist(map[string]bool{"a/web": true, "a/img": true}, heard) }, 0, nil},
		{"the other one speaks", func() { say(spoken("a/img", 31001)) }, 1, []uint32{31001, 31000}},
		{"nothing new", func() { h.exist(map[string]bool{"a/web": true, "a/img": true}, heard) }, 1, []uint32{31001, 31000}},
		{"one without a health check speaks", func() { say(spoken("a/db", 0)) }, 1, []uint32{31001, 31000}},
		{"one gives its health check up", func() { say(spoken("a/img", 0)) }, 2, []uint32{31000}},
		{"one is gone without a word", func() { h.exist(map[string]bool{"a/img": true}, heard) }, 3, nil},
	}
	for _, step := range steps {
		step.do()
		if o.sets != step.sets || !slices.Equal(o.ports, step.ports) {
			t.Errorf("%s: handed on %d times, last %v; want %d times, %v", step.name, o.sets, o.ports, step.sets, step.ports)
		}
	}
}

func TestHeraldRecordsWhatIsWorthAnEvent(t *testing.T) {
	o := &outside{}
	h := newHerald(&Deps{Events: o})
	h.status(spoken("a/web", 0))
	quiet := len(o.reasons)
	failed := spoken("a/web", 0)
	failed.Renders[0].State, failed.Renders[0].Error = messages.RenderState_RENDER_FAILED, "10.96.0.1:80/TCP: refused"
	h.status(failed)
	if quiet != 0 || len(o.reasons) != 1 || o.reasons[0] != "FailedToRender" {
		t.Errorf("events %v, want FailedToRender alone", o.reasons)
	}
}

func TestHeraldTellsOfQuarantine(t *testing.T) {
	fault := func(decision string) *messages.Fault {
		return &messages.Fault{Actor: PathService("a/web"), Decision: decision, Reason: "panic: boom"}
	}
	o := &outside{}
	h := newHerald(&Deps{Events: o, NodeName: "n1"})
	h.status(spoken("a/web", 0))
	h.fault(fault("restart"))
	h.fault(&messages.Fault{Actor: PathRegistry, Decision: "quarantine"})
	h.fault(fault("quarantine"))
	h.status(spoken("a/db", 0))
	if !slices.Equal(o.reasons, []string{"Quarantined"}) || o.last.Object.UID != "uid-a/web" || o.last.Object.Name != "web" {
		t.Errorf("events %v, last %+v", o.reasons, o.last)
	}
	h.status(spoken("a/web", 0))
	h.status(spoken("a/web", 0))
	if !slices.Equal(o.reasons, []string{"Quarantined", "Recovered"}) || o.last.Object.UID != "uid-a/web" {
		t.Errorf("events %v, last %+v", o.reasons, o.last)
	}
	h.fault(fault("quarantine"))
	h.exist(map[string]bool{"a/db": true}, nil)
	h.status(spoken("a/web", 0)) // another one of the same name
	if !slices.Equal(o.reasons, []string{"Quarantined", "Recovered", "Quarantined"}) {
		t.Errorf("events %v", o.reasons)
	}
}
