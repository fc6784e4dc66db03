package contract

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// layer decodes a document of external configuration.
func layer(t testing.TB, source, document string) *external.Layer {
	t.Helper()
	l, err := external.Decode([]byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", `+document+`}`), source)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// externalRows adds what layers want to what VPP should hold.
func externalRows(want *nat44.Want, layers ...*external.Layer) *external.Merged {
	merged := external.Merge(layers)
	for _, of := range merged.Rows(nat44.Config{Pads: true}) {
		for _, row := range of {
			want.Rows[row.Key] = row
		}
	}
	want.Pool = merged.Addresses()
	return merged
}

func texts(addresses []netip.Addr) (texts []string) {
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	return texts
}

// externalCases are what external configuration makes VPP hold: every kind of mapping, pool and
// output interfaces, added, found as they are wanted, changed and taken away.
var externalCases = []contractCase{
	{"external/mappings of every kind", func(t *testing.T, v *rig) {
		want := service(t, v, wanted(t, "10.96.0.1:80/TCP", 2))
		v.settle(t, want)
		externalRows(want, layer(t, "file", `
			"staticMappings": [{"external": "203.0.113.1:443/TCP", "to": ["10.1.1.3:8443", "10.1.1.4:8443"]}, {"external": "203.0.113.2", "to": ["10.1.1.5"]}],
			"identityMappings": ["192.168.16.1:4789/UDP"], "natAddresses": ["203.0.113.9"], "snatExclusions": ["10.1.7.0/30"]`))
		check(t, "operations", []string{
			"add-nat-address", "add-row", "add-row", "add-row", "add-row", "add-row", "add-row", "add-row",
		}, verbs(v.settle(t, want)))
		if n := len(v.read(t).Foreign); n != 0 {
			t.Errorf("%d mappings are taken for those of others", n)
		}
		less := service(t, v)
		less.Interfaces, less.RetiredPool = want.Interfaces, want.Pool
		externalRows(less, layer(t, "file", `"staticMappings": [{"external": "203.0.113.2", "to": ["10.1.1.6"]}], "identityMappings": ["192.168.16.1"]`))
		v.settle(t, less)
		state := v.read(t)
		check(t, "pool", nil, texts(state.Pool))
		if n := len(state.Rows); n != 2 {
			t.Errorf("%d rows: %v", n, state.Rows)
		}
	}},
	{"external/what is translated on the way out is unique", func(t *testing.T, v *rig) {
		want := service(t, v)
		externalRows(want, layer(t, "file", `"staticMappings": [{"external": "203.0.113.2", "to": ["10.1.1.5"]}]`))
		v.settle(t, want)
		// Merge never lets two mappings have the same inside. VPP would, with the inside of the
		// second one for both.
		other := external.Merge([]*external.Layer{layer(t, "file", `"identityMappings": ["10.1.1.5"]`)}).Rows(nat44.Config{})["file"][0]
		result := nat44.Apply(t.Context(), v.link, []nat44.Op{{Verb: nat44.AddRow, Key: other.Key, Row: &other}})[0]
		if result.Err != nil {
			t.Errorf("an identity mapping of the backend of a static one: %v", result.Err)
		}
		// A port of an address that is mapped as a whole is a mapping of its own.
		externalRows(want, layer(t, "file", `"staticMappings": [{"external": "203.0.113.2:80/TCP", "to": ["10.1.1.5:80"]}]`))
		want.Rows[other.Key] = other
		v.settle(t, want)
	}},
	{"external/output interface", func(t *testing.T, v *rig) {
		want := service(t, v, wanted(t, "10.96.0.1:80/TCP", 2))
		v.settle(t, want)
		var index uint32
		for i := range want.Interfaces {
			index = max(index, i)
		}
		want.Outputs = map[uint32]bool{index: true}
		check(t, "operations", []string{"delete-roles", "add-output-interface"}, verbs(v.settle(t, want)))
		want.Outputs[index] = false
		check(t, "operations", []string{"delete-output-interface", "add-roles"}, verbs(v.settle(t, want)))
		want.Outputs = nil
		check(t, "operations", nil, verbs(v.settle(t, want)))
	}},
	{"external/address in both pools", func(t *testing.T, v *rig) {
		want := service(t, v)
		want.Pool = []netip.Addr{want.TwiceNAT}
		v.settle(t, want)
		want.RetiredPool, want.Pool = want.Pool, nil
		check(t, "operations", []string{"delete-nat-address"}, verbs(v.settle(t, want)))
		check(t, "twice-NAT pool", []string{want.TwiceNAT.String()}, texts(v.read(t).TwiceNAT))
	}},
}
