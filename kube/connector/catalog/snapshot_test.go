package catalog

import (
	"strings"
	"testing"
)

// TestClean: the result is within the limits and ordered, with each name once. Left-out parts are
// reported. A service above the limit makes the snapshot incomplete, so that it is not deleted.
func TestClean(t *testing.T) {
	in := Snapshot{Complete: true, Services: []Service{
		{Name: "d"},
		{Name: "b", Instances: []Instance{{Address: "1", State: NotReady}, {Address: "3"}, {Address: "2"}}},
		{Name: "b"},
		{Name: ""},
		{Name: "\xff"},
		{Name: strings.Repeat("x", MaxName+1)},
		{Name: "a", Unknown: true},
		{Name: "c"},
	}}
	out := Clean(in, Limits{Services: 3, Instances: 2, All: 2})
	if len(out.Services) != 3 || out.Services[0].Name != "a" || !out.Services[0].Unknown || out.Services[1].Name != "b" || out.Services[2].Name != "c" {
		t.Errorf("services %v", out.Services)
	}
	if b := out.Services[1]; len(b.Instances) != 2 || b.Instances[0].Address != "2" || b.Instances[1].Address != "3" {
		t.Errorf("b is %v: the healthy instances should stay", b)
	}
	if out.Complete {
		t.Error("complete although d is left out")
	}
	if n := Count(out.Problems); n[ReasonName] != 3 || n[ReasonDuplicate] != 1 || n[ReasonLimit] != 2 {
		t.Errorf("problems %v", out.Problems)
	}
	out = Clean(in, Limits{Services: 10, Instances: 2, All: 1})
	if b := out.Services[1]; !b.Unknown || len(b.Instances) != 0 || out.Services[2].Unknown || !out.Complete {
		t.Errorf("with more than one instance: %+v", out)
	}
	if in.Services[1].Instances[0].Address != "1" {
		t.Error("the snapshot of the source was changed")
	}
	if same := Clean(Snapshot{Complete: true, Services: in.Services[:1]}, DefaultLimits()); !same.Complete || len(same.Problems) > 0 {
		t.Errorf("a good snapshot became %+v", same)
	}
}

// TestEqual: every field counts.
func TestEqual(t *testing.T) {
	snapshot := func() Snapshot {
		return Snapshot{
			Services: []Service{{
				Name: "a", Ports: []Port{{Name: "http", Number: 80}}, Instances: []Instance{{ID: "1", Address: "192.0.2.1", Ports: map[string]uint16{"http": 80}}},
			}},
			Problems: []Problem{{Message: "m"}},
		}
	}
	if !snapshot().Equal(snapshot()) {
		t.Error("the same is not equal")
	}
	for name, change := range map[string]func(s *Snapshot, first *Service, i *Instance){
		"complete":      func(s *Snapshot, _ *Service, _ *Instance) { s.Complete = true },
		"problem":       func(s *Snapshot, _ *Service, _ *Instance) { s.Problems[0].Message = "n" },
		"service":       func(s *Snapshot, _ *Service, _ *Instance) { s.Services = append(s.Services, Service{}) },
		"name":          func(_ *Snapshot, first *Service, _ *Instance) { first.Name = "b" },
		"unknown":       func(_ *Snapshot, first *Service, _ *Instance) { first.Unknown = true },
		"port":          func(_ *Snapshot, first *Service, _ *Instance) { first.Ports[0].Protocol = "UDP" },
		"instance":      func(_ *Snapshot, first *Service, _ *Instance) { first.Instances = nil },
		"ID":            func(_ *Snapshot, _ *Service, i *Instance) { i.ID = "2" },
		"address":       func(_ *Snapshot, _ *Service, i *Instance) { i.Address = "192.0.2.2" },
		"node address":  func(_ *Snapshot, _ *Service, i *Instance) { i.NodeAddress = "192.0.2.2" },
		"instance port": func(_ *Snapshot, _ *Service, i *Instance) { i.Ports["http"] = 81 },
		"no port":       func(_ *Snapshot, _ *Service, i *Instance) { i.Ports = map[string]uint16{} },
		"all ports":     func(_ *Snapshot, _ *Service, i *Instance) { i.Ports = nil },
		"state":         func(_ *Snapshot, _ *Service, i *Instance) { i.State = NotReady },
		"zone":          func(_ *Snapshot, _ *Service, i *Instance) { i.Zone = "z" },
	} {
		s := snapshot()
		change(&s, &s.Services[0], &s.Services[0].Instances[0])
		if s.Equal(snapshot()) {
			t.Errorf("another %s is no difference", name)
		}
	}
}

// TestProblemText: a text of the source cannot break a log line.
func TestProblemText(t *testing.T) {
	p := Problem{Source: "consul", Service: "a\nb", Instance: strings.Repeat("i", 100), Message: "m"}
	if got := p.String(); strings.Contains(got, "\n") || !strings.HasPrefix(got, `consul: "a\nb": iii`) || !strings.HasSuffix(got, "...: m") {
		t.Errorf("text %q", got)
	}
}
