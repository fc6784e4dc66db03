package external

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// document puts a head before the rest of a document.
func document(rest string) string {
	if rest != "" {
		rest = ", " + rest
	}
	return `{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration"` + rest + `}`
}

func mustDecode(t testing.TB, source, rest string) *Layer {
	t.Helper()
	l, err := Decode([]byte(document(rest)), source)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustKey(text string) rule.Key {
	k, err := rule.ParseKey(text)
	if err != nil {
		panic(err)
	}
	return k
}

func TestDecode(t *testing.T) {
	got := mustDecode(t, "ops", `"priority": 7,
		"staticMappings": [
			{"external": "203.0.113.1:443/TCP", "to": ["10.1.1.4:8443", "10.1.1.3:8443"], "masquerade": true},
			{"external": "203.0.113.2", "to": ["10.1.1.5"]}],
		"identityMappings": ["192.168.16.1:4789/UDP", "192.168.16.9"],
		"natAddresses": ["203.0.113.9", "203.0.113.8"],
		"interfaces": [{"name": "uplink0", "role": "output"}, {"name": "mgmt0", "role": "none"}],
		"snatExclusions": ["10.1.7.0/31", "10.1.8.1"]`)
	whole := func(text string) rule.Key { return rule.Key{Addr: netip.MustParseAddr(text)} }
	backends := func(texts ...string) (out []netip.AddrPort) {
		for _, text := range texts {
			out = append(out, netip.MustParseAddrPort(text))
		}
		return out
	}
	want := &Layer{
		Source: "ops", Priority: 7,
		Mappings: []Mapping{
			{Key: whole("10.1.7.0"), Kind: nat44.Identity, Field: "snatExclusions[0]"},
			{Key: whole("10.1.7.1"), Kind: nat44.Identity, Field: "snatExclusions[0]"},
			{Key: whole("10.1.8.1"), Kind: nat44.Identity, Field: "snatExclusions[1]"},
			{Key: mustKey("192.168.16.1:4789/UDP"), Kind: nat44.Identity, Field: "identityMappings[0]"},
			{Key: whole("192.168.16.9"), Kind: nat44.Identity, Field: "identityMappings[1]"},
			{
				Key: mustKey("203.0.113.1:443/TCP"), To: backends("10.1.1.3:8443", "10.1.1.4:8443"), Masquerade: true,
				Field: "staticMappings[0] 203.0.113.1:443/TCP",
			},
			{Key: whole("203.0.113.2"), Kind: nat44.Static, To: backends("10.1.1.5:0"), Field: "staticMappings[1] 203.0.113.2"},
		},
		Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.8"), netip.MustParseAddr("203.0.113.9")},
		Roles:     []InterfaceRole{{"mgmt0", RoleNone}, {"uplink0", RoleOutput}},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, rule.Key{})); d != "" {
		t.Errorf("layer (-want +got):\n%s", d)
	}
}

func TestDecodeNothing(t *testing.T) {
	for _, text := range []string{"", " \n", "null", document("")} {
		l, err := Decode([]byte(text), "etcd:x")
		if err != nil || l.Size() != 0 || l.Source != "etcd:x" || l.Priority != 200 {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
}

// TestDecodeErrors: all faults are reported at once, with object and field.
func TestDecodeErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"head":          {`{}`, []string{`apiVersion: "" is not supported: expected troupe.dev/v1alpha1`, `kind: "" is not supported: expected ExternalConfiguration`}},
		"syntax":        {`{"kind"`, []string{"unexpected EOF"}},
		"two documents": {document("") + "{}", []string{"more than one document"}},
		"unknown field": {document(`"rows": []`), []string{"rows: is unknown"}},
		"unknown field of a mapping": {
			document(`"staticMappings": [{"external": "1.2.3.4", "local": "10.1.1.1"}]`), []string{"local: is unknown"},
		},
		"type": {document(`"staticMappings": [{"external": 7}]`), []string{"staticMappings.external: is a number, expected a string"}},
		"priority": {
			document(`"priority": 1001`), []string{"priority: 1001 is not between 0 and 1000"},
		},
		"several at once": {
			document(`"staticMappings": [{"external": "203.0.113.1:443", "to": ["x"]}, {"external": "203.0.113.1", "to": ["10.1.1.1", "10.1.1.2"]}],
				"natAddresses": ["fd00::1"], "interfaces": [{"name": "up", "role": "in"}]`),
			[]string{
				`staticMappings[0] 203.0.113.1:443: external: "203.0.113.1:443" is not an IPv4 address`,
				`staticMappings[0] 203.0.113.1:443: to[0]: "x" is not an IPv4 address`,
				"staticMappings[1] 203.0.113.1: to: has 2 backends: a whole address has one",
				`natAddresses[0]: "fd00::1" is not an IPv4 address`,
				`interfaces[0] up: role: "in" is not one of nat, output, none`,
			},
		},
		"SCTP":              {document(`"identityMappings": ["1.2.3.4:1/SCTP"]`), []string{`identityMappings[0]: "1.2.3.4:1/SCTP" is neither an IPv4 address nor one with port and protocol, for example 203.0.113.9:443/TCP`}},
		"port 0":            {document(`"identityMappings": ["1.2.3.4:0/TCP"]`), []string{`identityMappings[0]: "1.2.3.4:0/TCP" is neither an IPv4 address nor one with port and protocol, for example 203.0.113.9:443/TCP`}},
		"no backend":        {document(`"staticMappings": [{"external": "1.2.3.4:1/TCP"}]`), []string{"staticMappings[0] 1.2.3.4:1/TCP: to: is empty: expected a backend"}},
		"backend twice":     {document(`"staticMappings": [{"external": "1.2.3.4:1/TCP", "to": ["10.1.1.1:1", "10.1.1.1:1"]}]`), []string{"staticMappings[0] 1.2.3.4:1/TCP: to[1]: 10.1.1.1:1 is there twice"}},
		"backend is a pad":  {document(`"staticMappings": [{"external": "1.2.3.4:1/TCP", "to": ["192.0.2.1:2"]}]`), []string{"staticMappings[0] 1.2.3.4:1/TCP: to[0]: 192.0.2.1:2 is reserved"}},
		"masquerade":        {document(`"staticMappings": [{"external": "1.2.3.4", "to": ["10.1.1.1"], "masquerade": true}]`), []string{"staticMappings[0] 1.2.3.4: masquerade: needs a port in external"}},
		"mapped twice":      {document(`"identityMappings": ["1.2.3.4", "1.2.3.4"]`), []string{"identityMappings[1]: 1.2.3.4 is mapped by identityMappings[0] already"}},
		"translated twice":  {document(`"staticMappings": [{"external": "1.2.3.4", "to": ["10.1.1.1"]}], "snatExclusions": ["10.1.1.0/30"]`), []string{"snatExclusions[0]: 10.1.1.1 is translated by staticMappings[0] 1.2.3.4 already"}},
		"address twice":     {document(`"natAddresses": ["1.2.3.4", "1.2.3.4"]`), []string{"natAddresses[1]: 1.2.3.4 is there twice"}},
		"interface twice":   {document(`"interfaces": [{"name": "a", "role": "none"}, {"name": "a", "role": "nat"}]`), []string{"interfaces[1] a: name: a is there twice"}},
		"no interface":      {document(`"interfaces": [{"name": "a b", "role": "none"}, {"name": "local0", "role": "none"}]`), []string{`interfaces[0] a b: name: "a b" is not the name of an interface`, "interfaces[1] local0: name: local0 is VPP's own"}},
		"network too large": {document(`"snatExclusions": ["10.0.0.0/8", "10.1.1.1/24", "224.0.0.0/24"]`), []string{"snatExclusions[0]: 10.0.0.0/8 has more than 256 addresses", `snatExclusions[1]: "10.1.1.1/24" is not an IPv4 network, for example 10.1.1.0/24`, "snatExclusions[2]: 224.0.0.0/24 is not the address of one host"}},
		"addresses of no host": {document(`"natAddresses": ["0.0.0.0", "127.0.0.1", "255.255.255.255"]`), []string{
			"natAddresses[0]: 0.0.0.0 means no address", "natAddresses[1]: 127.0.0.1 is a loopback address", "natAddresses[2]: 255.255.255.255 is not the address of one host",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Decode([]byte(tt.in), "ops")
			var errs Errors
			if l != nil || !errors.Is(err, ErrInvalid) || !errors.As(err, &errs) {
				t.Fatalf("layer %v, error %v", l, err)
			}
			var got []string
			for _, e := range errs {
				got = append(got, e.Error())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

// FuzzDecode: Decode fails with Errors only, and every layer that it returns can be merged and
// rendered.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte(document("")))
	f.Add([]byte(document(`"staticMappings": [{"external": "203.0.113.1:443/TCP", "to": ["10.1.1.4:8443"]}, {"external": "203.0.113.2", "to": ["10.1.1.5"]}]`)))
	f.Add([]byte(document(`"identityMappings": ["1.2.3.4"], "snatExclusions": ["255.255.255.0/24", "10.0.0.0/32"]`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Decode(data, "fuzz")
		if err != nil {
			if !errors.Is(err, ErrInvalid) || l != nil {
				t.Fatalf("layer %v, error %v", l, err)
			}
			return
		}
		for i := 1; i < len(l.Mappings); i++ {
			if l.Mappings[i-1].Key.Compare(l.Mappings[i].Key) >= 0 {
				t.Fatalf("keys are not unique and ordered: %v", l.Mappings)
			}
		}
		for _, row := range Merge([]*Layer{l}).Rows(nat44.Config{Pads: true})["fuzz"] {
			op := nat44.Op{Verb: nat44.AddRow, Key: row.Key, Row: &row}
			if err := op.Check(); err != nil || op.Describe() == "" || !nat44.External(row.Tag) {
				t.Fatalf("%s: %v, tag %q", op, err, row.Tag)
			}
		}
	})
}

// TestErrorsQuoteNoSecret: the document of something else is refused; its values and long names are
// not in the error, wherever they are.
func TestErrorsQuoteNoSecret(t *testing.T) {
	const secret = "s3cr3t-t0ken/of:a.tenant"
	for _, in := range []string{
		`{"apiVersion": "` + secret + `"}`, `{"kind": "` + secret + `"}`, `{"` + secret + `": 1}`, document(`"` + secret + `": 1`),
		document(`"staticMappings": [{"external": "` + secret + `", "to": ["` + secret + `"]}]`),
		document(`"staticMappings": [{"external": "1.2.3.4:1/TCP", "to": ["` + secret + `"]}]`),
		document(`"staticMappings": [{"external": 1, "` + secret + `": 1}]`),
		document(`"identityMappings": ["` + secret + `"], "natAddresses": ["` + secret + `"], "snatExclusions": ["` + secret + `"]`),
		document(`"interfaces": [{"name": "` + secret + ` ", "role": "` + secret + `"}]`), document(`"interfaces": [{"name": "up", "role": "` + secret + `"}]`),
		`"` + secret + `"`, `{"data": "` + secret, secret, `[` + secret + `]`,
	} {
		if _, err := Decode([]byte(in), "ops"); err == nil || strings.Contains(err.Error(), "t0ken") || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", in, err)
		}
	}
}
