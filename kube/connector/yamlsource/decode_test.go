package yamlsource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

const billing = `services:
- name: billing
  ports:
  - {name: http, port: 80, protocol: TCP}
  - name: dns
    port: 53
    protocol: UDP
  instances:
  - {address: 192.0.2.10, ports: {http: 8080}, healthy: true}
  - {address: "2001:db8::1", healthy: false, zone: b}
`

// TestDecode: the documented form, in YAML, as JSON, and in several documents.
func TestDecode(t *testing.T) {
	want := []catalog.Service{{
		Name:  "billing",
		Ports: []catalog.Port{{Name: "http", Number: 80, Protocol: "TCP"}, {Name: "dns", Number: 53, Protocol: "UDP"}},
		Instances: []catalog.Instance{
			{Address: "192.0.2.10", Ports: map[string]uint16{"http": 8080}},
			{Address: "2001:db8::1", State: catalog.NotReady, Zone: "b"},
		},
	}}
	got, errs := Decode([]byte(billing))
	if diff := cmp.Diff(want, got); diff != "" || errs != nil {
		t.Errorf("errors %v:\n%s", errs, diff)
	}
	two, errs := Decode([]byte(`{"services": [{"name": "a"}]}` + "\n---\n# nothing\n---\nservices: [{name: b}]\n"))
	if len(two) != 2 || two[1].Name != "b" || errs != nil {
		t.Errorf("services %v, errors %v", two, errs)
	}
	if none, errs := Decode(nil); len(none) != 0 || errs != nil {
		t.Errorf("services %v, errors %v", none, errs)
	}
}

// TestA23Errors: every mistake is named with its line, and nothing of the file is used.
func TestA23Errors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"protocol: TCP", "protocoll: TCP", "line 4: field protocoll not found"},
		{"protocol: UDP", "protocol: udp", `line 7: "udp" is not one of TCP, UDP, SCTP`},
		{"port: 53", "port: 0", `line 6: "0" is not a port, 1 to 65535`},
		{"port: 53", "port: 65536", `line 6: "65536" is not a port, 1 to 65535`},
		{"http: 8080", "http: -1", `line 9: "-1" is not a port, 1 to 65535`},
		{"name: billing", "name: 7", `line 2: "7" is not a string`},
		{"name: billing", "name: ''", `services[0]: name is missing`},
		{"healthy: true", "healthy: perhaps", "line 9: cannot unmarshal !!str `perhaps` into bool"},
		{"services:", "service:", "line 1: field service not found"},
		{"- name: billing", "- name: billing\n  name: again", `line 3: mapping key "name" already defined at line 2`},
		{"    port: 53", "\tport: 53", "yaml: line 5: found a tab character that violates indentation"},
		{billing, "- billing", "line 1: cannot unmarshal !!seq"},
	} {
		services, errs := Decode([]byte(strings.Replace(billing, c.old, c.new, 1)))
		if len(services) > 0 || len(errs) != 1 || errs[0].Error() != c.want {
			t.Errorf("%s: services %v, errors %q, want %q", c.new, services, errs, c.want)
		}
	}
	_, errs := Decode([]byte(strings.NewReplacer("80,", "0,", "53", "x").Replace(billing)))
	if len(errs) != 2 {
		t.Errorf("of two mistakes %q are reported", errs)
	}
}

// TestDecodeHostile: a small input that expands to a large one is refused.
func TestDecodeHostile(t *testing.T) {
	var b strings.Builder
	b.WriteString("x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d, ", i), 10), ", "))
	}
	b.WriteString("services: *x9\n")
	if services, errs := Decode([]byte(b.String())); len(services) > 0 || len(errs) == 0 {
		t.Errorf("%d services, errors %v", len(services), errs)
	}
}

// FuzzA29Decode: no input stops the process; it is either refused, each error in one line, or fit
// for a snapshot.
func FuzzA29Decode(f *testing.F) {
	f.Add([]byte(billing))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		services, errs := Decode(in)
		for _, err := range errs {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
		}
		if len(errs) > 0 && services != nil {
			t.Errorf("%d services beside errors", len(services))
		}
		for _, s := range services {
			for _, p := range s.Ports {
				if p.Protocol != "" && p.Protocol != "TCP" && p.Protocol != "UDP" && p.Protocol != "SCTP" {
					t.Errorf("port %v", p)
				}
			}
		}
	})
}
