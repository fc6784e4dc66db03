package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestDecode: the documented form, in YAML, as JSON, in several documents, and with aliases.
func TestDecode(t *testing.T) {
	want := []Service{{
		Name:  "billing",
		Ports: []Port{{Name: "http", Number: 80, Protocol: "TCP"}, {Name: "dns", Number: 53, Protocol: "UDP"}},
		Instances: []Instance{
			{Address: "192.0.2.10", Ports: map[string]uint16{"http": 8080}},
			{Address: "2001:db8::1", State: NotReady, Zone: "b"},
		},
	}}
	got, errs := DecodeYAML([]byte(billing))
	if diff := cmp.Diff(want, got); diff != "" || errs != nil {
		t.Errorf("errors %v:\n%s", errs, diff)
	}
	two, errs := DecodeYAML([]byte(`{"services": [{"name": "a"}]}` + "\n---\n# nothing\n---\nservices: [{name: b}]\n"))
	if len(two) != 2 || two[1].Name != "b" || errs != nil {
		t.Errorf("services %v, errors %v", two, errs)
	}
	merged, errs := DecodeYAML([]byte("services:\n- &a {name: a, instances: [{address: 192.0.2.1, healthy: no}]}\n- {<<: *a, name: b}\n"))
	if len(merged) != 2 || merged[1].Name != "b" || len(merged[1].Instances) != 1 || merged[1].Instances[0].State != NotReady || errs != nil {
		t.Errorf("services %v, errors %v", merged, errs)
	}
	if none, errs := DecodeYAML(nil); len(none) != 0 || errs != nil {
		t.Errorf("services %v, errors %v", none, errs)
	}
}

// TestA23Errors: every mistake is named with its line, and nothing of the file is used.
func TestA23Errors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"protocol: TCP", "protocoll: TCP", `line 4: services[0].ports[0].protocoll: unknown field; did you mean "protocol"?`},
		{"protocol: UDP", "protocol: udp", `line 7: services[0].ports[1].protocol: expected one of TCP, UDP, SCTP, found "udp" (str)`},
		{"port: 53", "port: 0", `line 6: services[0].ports[1].port: expected a port, 1 to 65535, found "0" (int)`},
		{"port: 53", "port: 65536", `line 6: services[0].ports[1].port: expected a port, 1 to 65535, found "65536" (int)`},
		{"http: 8080", "http: -1", `line 9: services[0].instances[0].ports.http: expected a port, 1 to 65535, found "-1" (int)`},
		{"name: billing", "name: 7", `line 2: services[0].name: expected a string, found "7" (int)`},
		{"name: billing", "name: ''", `line 2: services[0]: name is missing`},
		{"healthy: true", "healthy: perhaps", `line 9: services[0].instances[0].healthy: expected true or false, found "perhaps" (str)`},
		{"services:", "service:", `line 1: service: unknown field; did you mean "services"?`},
		{"- name: billing", "- name: billing\n  name: again", `line 3: services[0].name: is duplicate`},
		{"    port: 53", "\tport: 53", "line 5: is not YAML: found a tab character that violates indentation"},
		{billing, "- billing", "line 1: expected an object, found a list"},
	} {
		services, errs := DecodeYAML([]byte(strings.Replace(billing, c.old, c.new, 1)))
		if len(services) > 0 || len(errs) != 1 || errs[0].Error() != c.want {
			t.Errorf("%s: services %v, errors %q, want %q", c.new, services, errs, c.want)
		}
	}
	_, errs := DecodeYAML([]byte(strings.NewReplacer("80,", "0,", "53", "x").Replace(billing)))
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
	instances := "services:\n- {name: a, instances: &i [" + strings.Repeat("{}, ", 10_000) + "]}\n" + strings.Repeat("- {name: a, instances: *i}\n", 10_000)
	for _, in := range []string{b.String(), instances} {
		if services, errs := DecodeYAML([]byte(in)); len(services) > 0 || len(errs) == 0 {
			t.Errorf("%d services, errors %v", len(services), errs)
		}
	}
}

// FuzzA29Decode: no input stops the process; it is either refused, each error in one line, or fit
// for a snapshot.
func FuzzA29YAML(f *testing.F) {
	f.Add([]byte(billing))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		services, errs := DecodeYAML(in)
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
