package runtime

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// TestTraffic: messages by type with their times, and who sends to whom, by kind.
func TestTraffic(t *testing.T) {
	s := &System{}
	service, renderer := s.trafficOf("service"), s.trafficOf("renderer")
	for range 98 {
		service.handled(reflect.TypeOf("x"), 1000)
	}
	service.handled(reflect.TypeOf("x"), 1_000_000)
	service.handled(reflect.TypeOf("x"), -1)
	service.handled(reflect.TypeOf(1), 5)
	for range 3 {
		service.sent(renderer)
	}
	renderer.sent(service)
	renderer.sent(renderer)
	for kind, want := range map[string]string{
		"service":  "[{string 100 1.024µs 1.024µs} {int 1 8ns 8ns}] from [{renderer 1}] to [{renderer 3}]",
		"renderer": "[] from [{service 3} {renderer 1}] to [{renderer 1} {service 1}]",
		"nobody":   "[] from [] to []",
	} {
		got := s.Traffic(kind)
		if text := fmt.Sprintf("%v from %v to %v", got.Messages, got.From, got.To); text != want {
			t.Errorf("%s: %s, want %s", kind, text, want)
		}
	}
	service.handled(reflect.TypeOf("x"), int64(time.Hour))
	service.handled(reflect.TypeOf("x"), int64(time.Hour))
	if got := s.Traffic("service").Messages[0]; got.P50 != 1024 || got.P99 < time.Hour {
		t.Errorf("%+v", got)
	}
}
