package cluster

import (
	"math"
	"strings"
	"testing"
)

func TestLayoutParse(t *testing.T) {
	l := layout{prefix: "/p"}
	for key, want := range map[string]parsedKey{
		"/p/nodes/id/1":                {kind: kindID, id: 1},
		"/p/nodes/id/4294967295":       {kind: kindID, id: math.MaxUint32},
		"/p/nodes/id/4294967296":       {},
		"/p/nodes/id/0":                {},
		"/p/nodes/id/07":               {},
		"/p/nodes/id/+7":               {},
		"/p/nodes/id/":                 {},
		"/p/nodes/id/1/2":              {},
		"/p/nodes/name/n1.example.org": {kind: kindName, name: "n1.example.org"},
		"/p/nodes/name/":               {},
		"/p/nodes/name/a/b":            {},
		"/p/nodes/addresses/n1":        {kind: kindAddresses, name: "n1"},
		"/p/nodes/other/n1":            {},
		"/p/nodes/id":                  {},
		"/q/nodes/id/1":                {},
		"id/1":                         {},
		"":                             {},
	} {
		if got := l.parse(key); got != want {
			t.Errorf("parse(%q) = %+v, want %+v", key, got, want)
		}
	}
}

func TestLayoutRoundTrip(t *testing.T) {
	l := layout{prefix: DefaultPrefix}
	if got := l.parse(l.id(42)); got.id != 42 {
		t.Errorf("id key read as %+v", got)
	}
	if got := l.parse(l.name("n1")); got.kind != kindName || got.name != "n1" {
		t.Errorf("name key read as %+v", got)
	}
	if got := l.parse(l.addresses("n1")); got.kind != kindAddresses || got.name != "n1" {
		t.Errorf("addresses key read as %+v", got)
	}
	if strings.HasPrefix(l.probe(), l.root()) {
		t.Errorf("the probe key %s is under the root %s that is watched", l.probe(), l.root())
	}
}
