package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// listener is an ear that adds up.
type listener struct {
	nodes            []*messages.NodeInput
	services, slices int
	healths          []string
}

func (l *listener) heardNode(in *messages.NodeInput) { l.nodes = append(l.nodes, in) }
func (l *listener) heardChanges(services, slices int) {
	l.services, l.slices = l.services+services, l.slices+slices
}

func (l *listener) heardHealth(ok bool, reason string) {
	l.healths = append(l.healths, fmt.Sprintf("%t: %s", ok, reason))
}

// taken is a sink that counts what arrives.
type taken struct{ calls []string }

func (s *taken) ServiceChanged(in *messages.ServiceInput) {
	s.calls = append(s.calls, "service "+in.GetKey())
}
func (s *taken) NodeChanged(*messages.NodeInput) { s.calls = append(s.calls, "node") }
func (s *taken) Snapshot(*messages.Snapshot)     { s.calls = append(s.calls, "snapshot") }
func (s *taken) Health(bool, string)             { s.calls = append(s.calls, "health") }

// talker is a source that says something and ends.
type talker struct {
	kube.Source
	say func(kube.Sink)
}

func (t *talker) Run(_ context.Context, sink kube.Sink) error {
	t.say(sink)
	return errors.New("over")
}

func service(key string, slices ...*messages.EndpointSlice) *messages.ServiceInput {
	return &messages.ServiceInput{Key: key, Service: &messages.Service{}, Slices: slices}
}

// TestOverheard: everything is passed on, and changes are counted as kube-proxy counts them.
func TestOverheard(t *testing.T) {
	one, two := &messages.EndpointSlice{Name: "1"}, &messages.EndpointSlice{Name: "2"}
	web := service("shop/web", one, two)
	ear, sink := &listener{}, &taken{}
	expect := func(what string, services, slices int) {
		t.Helper()
		if ear.services != services || ear.slices != slices {
			t.Errorf("%s: %d services, %d slices; want %d, %d", what, ear.services, ear.slices, services, slices)
		}
		ear.services, ear.slices = 0, 0
	}
	source := &overheard{ear: ear, Source: &talker{say: func(sink kube.Sink) {
		sink.Snapshot(&messages.Snapshot{Services: []*messages.ServiceInput{web, service("shop/mail")}, Node: &messages.NodeInput{}})
		expect("first list", 2, 2)
		sink.Snapshot(&messages.Snapshot{Services: []*messages.ServiceInput{web}})
		expect("the same without one", 1, 0)
		sink.ServiceChanged(&messages.ServiceInput{Key: "shop/web", Service: web.Service, Slices: []*messages.EndpointSlice{one, {Name: "2"}}})
		expect("another value of a slice", 0, 1)
		sink.ServiceChanged(&messages.ServiceInput{Key: "shop/web", Service: &messages.Service{}, Slices: []*messages.EndpointSlice{one}})
		expect("another value of the service, and a slice less", 1, 1)
		sink.ServiceChanged(&messages.ServiceInput{Key: "shop/web", Slices: []*messages.EndpointSlice{one}})
		expect("the service is gone, its slice not yet", 1, 0)
		sink.ServiceChanged(&messages.ServiceInput{Key: "shop/web"})
		expect("gone", 0, 1)
		sink.NodeChanged(&messages.NodeInput{})
		sink.Health(false, "blind")
	}}}
	if err := source.Run(t.Context(), sink); err == nil || err.Error() != "over" {
		t.Errorf("the end of the source is %v", err)
	}
	if len(ear.nodes) != 2 || len(ear.healths) != 1 || ear.healths[0] != "false: blind" {
		t.Errorf("heard %d nodes, %v", len(ear.nodes), ear.healths)
	}
	if len(sink.calls) != 8 || sink.calls[7] != "health" {
		t.Errorf("passed on: %v", sink.calls)
	}
}

// TestOverheardForgets: whatever comes, it remembers exactly the services that are there, so that its memory is bounded by them.
func TestOverheardForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sink := &overheardSink{Sink: &taken{}, ear: &listener{}, known: map[string]*messages.ServiceInput{}}
		there := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a/a", "a/b", "a/c"}).Draw(t, "key")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				sink.ServiceChanged(service(key))
				there[key] = true
			case 1:
				sink.ServiceChanged(&messages.ServiceInput{Key: key})
				delete(there, key)
			default:
				sink.Snapshot(&messages.Snapshot{Services: []*messages.ServiceInput{service(key)}})
				there = map[string]bool{key: true}
			}
		}
		if len(sink.known) != len(there) {
			t.Fatalf("knows %d services, there are %d", len(sink.known), len(there))
		}
		for key := range there {
			if sink.known[key] == nil {
				t.Fatalf("does not know %s", key)
			}
		}
	})
}
