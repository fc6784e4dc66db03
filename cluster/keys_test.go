package cluster

import (
	"math"
	"testing"
)

func TestEtcdLayoutParse(t *testing.T) {
	l := etcdLayout{prefix: "/p"}
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

func TestLeaseLayoutParse(t *testing.T) {
	l := leaseLayout{"ns"}
	for key, want := range map[string]parsedKey{
		"lease ns/troupe-id-1":           {kind: kindID, id: 1},
		"lease ns/troupe-id-4294967295":  {kind: kindID, id: math.MaxUint32},
		"lease ns/troupe-id-4294967296":  {},
		"lease ns/troupe-id-0":           {},
		"lease ns/troupe-id-07":          {},
		"lease ns/troupe-id-":            {},
		"lease ns/troupe-id-x":           {},
		"lease ns/troupe-id-1 addresses": {},
		"lease ns/n1.example.org":        {kind: kindName, name: "n1.example.org"},
		"lease ns/n1 addresses":          {kind: kindAddresses, name: "n1"},
		"lease ns/n1 other":              {},
		"lease ns/":                      {},
		"lease other/n1":                 {},
		"n1":                             {},
		"":                               {},
	} {
		if got := l.parse(key); got != want {
			t.Errorf("parse(%q) = %+v, want %+v", key, got, want)
		}
	}
}
