package kube

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// totals is an Observer that adds the counts up.
type totals struct {
	nodes            []*messages.NodeInput
	services, slices int
	healths          []string
}

func (o *totals) NodeChanged(in *messages.NodeInput) { o.nodes = append(o.nodes, in) }
func (o *totals) ObjectsChanged(services, slices int) {
	o.services, o.slices = o.services+services, o.slices+slices
}

func (o *totals) Health(h Health) {
	o.healths = append(o.healths, fmt.Sprintf("%t: %s", h.OK, h.Reason))
}

func service(key string, slices ...*messages.EndpointSlice) *messages.ServiceInput {
	return &messages.ServiceInput{Key: key, Service: &messages.Service{}, Slices: slices}
}

// TestObserver: every delivery is passed on, and changes are counted like in kube-proxy.
func TestObserver(t *testing.T) {
	one, two := &messages.EndpointSlice{Name: "1"}, &messages.EndpointSlice{Name: "2"}
	web := service("shop/web", one, two)
	source, seen, listener := &script{t: t}, &totals{}, &recorder{}
	r := NewRelay(source, seen, time.Now)
	_ = r.Run(t.Context())
	r.Listen(listener)
	sink := source.sink
	expect := func(what string, services, slices int) {
		t.Helper()
		if seen.services != services || seen.slices != slices {
			t.Errorf("%s: %d services, %d slices; want %d, %d", what, seen.services, seen.slices, services, slices)
		}
		seen.services, seen.slices = 0, 0
	}
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
	sink.Health(Health{Reason: "blind"})
	if len(seen.nodes) != 2 || len(seen.healths) != 1 || seen.healths[0] != "false: blind" {
		t.Errorf("observed %d nodes, %v", len(seen.nodes), seen.healths)
	}
	if len(listener.calls) != 8 || listener.calls[7] != "health blind" {
		t.Errorf("passed on: %v", listener.calls)
	}
}

// TestCountedForgets: the memory holds exactly the existing services, so that it does not grow.
func TestCountedForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known, there := counted{}, map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a/a", "a/b", "a/c"}).Draw(t, "key")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				known.change(service(key))
				there[key] = true
			case 1:
				known.change(&messages.ServiceInput{Key: key})
				delete(there, key)
			default:
				known.replace(&messages.Snapshot{Services: []*messages.ServiceInput{service(key)}})
				there = map[string]bool{key: true}
			}
		}
		if len(known) != len(there) {
			t.Fatalf("knows %d services, there are %d", len(known), len(there))
		}
		for key := range there {
			if known[key] == nil {
				t.Fatalf("does not know %s", key)
			}
		}
	})
}
