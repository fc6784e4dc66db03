package config

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const head = "apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\n"

func TestDecode(t *testing.T) {
	full := Defaults()
	full.NodeName = "shop-a"
	full.VPP.ReplyTimeout = Duration(90 * time.Second)
	full.VPP.RequestWindow = 8
	full.Services.ClusterCIDRs = []string{"10.1.0.0/16", "fd00:1::/48"}
	full.Services.NodePortAddresses = []string{}
	full.API.EnableChaos = true

	for _, tt := range []struct {
		name, in string
		want     *Agent
	}{
		{"only the head keeps every default", head, Defaults()},
		{"values replace defaults", head + `
nodeName: shop-a
vpp: {replyTimeout: 1m30s, requestWindow: 8}
services:
  clusterCIDRs: [10.1.0.0/16, "fd00:1::/48"]
  nodePortAddresses: []
api:
  enableChaos: true
`, full},
		{"JSON is YAML", `{"apiVersion":"troupe.dev/v1alpha1","kind":"AgentConfiguration","nodeName":"shop-a",
"vpp":{"replyTimeout":"90s","requestWindow":8},"services":{"clusterCIDRs":["10.1.0.0/16","fd00:1::/48"],"nodePortAddresses":[]},
"api":{"enableChaos":true}}`, full},
		{"null keeps the default", head + "vpp:\nservices: {nodePortAddresses: null, masqueradeAll: ~}\n", Defaults()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Decode([]byte(tt.in), "f.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, doc.Agent); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneOrMoreAddresses: the address of the API server is one string, as in earlier versions, or a
// list; the flag may be repeated.
func TestOneOrMoreAddresses(t *testing.T) {
	const a, b = "https://10.0.0.1:6443", "https://10.0.0.2:6443"
	for in, want := range map[string]OneOrMore{
		"''": {}, "[]": {}, "~": {}, a: {a}, "[" + a + "]": {a}, "[" + a + ", " + b + "]": {a, b},
	} {
		doc, err := Load([]byte(head+"kubernetes: {apiServer: "+in+"}\n"), "f.yaml")
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if diff := cmp.Diff(want, doc.Agent.Kubernetes.APIServer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
	doc, err := parse(t, nil, "--kube-api-server", a, "--kube-api-server", b).Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(OneOrMore{a, b}, doc.Agent.Kubernetes.APIServer); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

// TestDecodeErrors holds the text that a user sees: place, path, error. All problems of a file come
// at once.
func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "f.yaml: is empty: expected apiVersion troupe.dev/v1alpha1, kind AgentConfiguration"},
		{
			"no head", "nodeName: a\n",
			"f.yaml: apiVersion: is missing: expected troupe.dev/v1alpha1\nf.yaml: kind: is missing: expected AgentConfiguration",
		},
		{"unknown field", head + "nope: 1\n", "f.yaml:3: nope: unknown field"},
		{"unknown field that is nearly one", head + "vpp:\n  apiSoket: /x\n", `f.yaml:4: vpp.apiSoket: unknown field; did you mean "apiSocket"?`},
		{"wrong case", head + "nodename: a\n", `f.yaml:3: nodename: unknown field; did you mean "nodeName"?`},
		{"twice", head + "nodeName: a\nnodeName: b\n", "f.yaml:4: nodeName: is duplicate"},
		{"number for a string", head + "nodeName: 12\n", `f.yaml:3: nodeName: expected a string, found "12" (int)`},
		{"object for a string", head + "nodeName: {}\n", "f.yaml:3: nodeName: expected a string, found an object"},
		{"word for a number", head + "vpp:\n  requestWindow: many\n", `f.yaml:4: vpp.requestWindow: expected a number, found "many" (str)`},
		{"huge number", head + "vpp:\n  requestWindow: 99999999999999999999\n", `f.yaml:4: vpp.requestWindow: expected a number, found "99999999999999999999" (float)`},
		{"word for a boolean", head + "cleanupOnExit: perhaps\n", `f.yaml:3: cleanupOnExit: expected true or false, found "perhaps" (str)`},
		{"duration without a unit", head + "vpp: {replyTimeout: 5}\n", `f.yaml:3: vpp.replyTimeout: expected a duration with its unit, for example 30s, found "5" (int)`},
		{"no duration", head + "vpp: {replyTimeout: soon}\n", `f.yaml:3: vpp.replyTimeout: expected a duration with its unit, for example 30s, found "soon" (str)`},
		{"text for a list", head + "services: {clusterCIDRs: 10.0.0.0/8}\n", `f.yaml:3: services.clusterCIDRs: expected a list, found "10.0.0.0/8" (str)`},
		{"empty element", head + "services:\n  clusterCIDRs:\n  - 10.0.0.0/8\n  -\n", "f.yaml:6: services.clusterCIDRs[1]: is empty"},
		{"list for an object", head + "vpp: []\n", "f.yaml:3: vpp: expected an object, found a list"},
		{"alias", head + "nodeName: &a x\nrenderer: *a\n", "f.yaml:4: renderer: YAML aliases are not supported"},
		{"second document", head + "---\n" + head, "f.yaml:3: has a second document: only one is expected"},
		{"not YAML", head + "a: [\n", "f.yaml:3: is not YAML: did not find expected node content"},
		{
			"all at once", head + "nope: 1\nvpp:\n  requestWindow: x\n  what: y\nnodeName: []\n",
			"f.yaml:3: nope: unknown field\n" +
				`f.yaml:5: vpp.requestWindow: expected a number, found "x" (str)` + "\n" +
				"f.yaml:6: vpp.what: unknown field\n" +
				"f.yaml:7: nodeName: expected a string, found a list",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Decode([]byte(tt.in), "f.yaml")
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("error %v is not ErrInvalid", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecodeTooLarge keeps a wrong file (a disk image, a log) from being parsed.
func TestDecodeTooLarge(t *testing.T) {
	_, err := Decode([]byte(strings.Repeat("#\n", maxSize)), "f.yaml")
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error = %v", err)
	}
}

// TestJoinReportsAFieldOnce: an unreadable value is not reported as out of range as well.
func TestJoinReportsAFieldOnce(t *testing.T) {
	_, err := Load([]byte(head+"etcd: {endpoints: x}\nrenderer: ipvs\n"), "f.yaml")
	want := `f.yaml:3: etcd.endpoints: expected a list, found "x" (str)` + "\n" + `f.yaml:4: renderer: "ipvs" is not one of auto, nat44, cnat, dual`
	if err == nil || err.Error() != want {
		t.Errorf("errors:\n%v\nwant:\n%s", err, want)
	}
	plain := errors.New("plain")
	if got := Join(plain, err); !errors.Is(got, plain) || !errors.Is(got, ErrInvalid) {
		t.Errorf("Join with another error lost one: %v", got)
	}
}

// TestMarshalRoundTrip: whatever texts and numbers a configuration holds, it is read back as it was
// written.
func TestMarshalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Defaults()
		text := rapid.StringMatching(`[ -~]{0,12}|true|null|0x1f|1e3|~|-|\*a|&a|a: b|"`)
		a.NodeName = text.Draw(t, "nodeName")
		a.Etcd.Prefix = text.Draw(t, "prefix")
		a.Services.ClusterCIDRs = append([]string{}, rapid.SliceOfN(text, 0, 4).Draw(t, "cidrs")...)
		a.VPP.RequestWindow = rapid.Int().Draw(t, "window")
		a.VPP.ReplyTimeout = Duration(rapid.Int64().Draw(t, "timeout"))
		a.API.EnableChaos = rapid.Bool().Draw(t, "chaos")
		doc, err := Decode([]byte(Marshal(a, rapid.Bool().Draw(t, "comments"))), "f.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, doc.Agent); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
	})
}

// FuzzDecode: no input makes the decoder panic, and an input that is valid can be written and read
// back without loss.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(Marshal(Defaults(), true)))
	f.Add([]byte(head + "vpp: {requestWindow: 3}\n"))
	f.Add([]byte(head + "a: &a [*a, {<<: *a}]\n"))
	f.Add([]byte("- 1\n---\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Load(data, "f.yaml")
		if err != nil {
			var all Errors
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("error without a place: %v", err)
			}
			lines := 1
			for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
				// for YAML each of them ends a line
				lines += bytes.Count(data, []byte(end))
			}
			for _, e := range all {
				if e.Source != "f.yaml" || e.Message == "" || e.Line < 0 || e.Line > lines {
					t.Fatalf("%d lines, error %+v", lines, e)
				}
			}
			return
		}
		again, err := Load([]byte(Marshal(doc.Agent, false)), "again.yaml")
		if err != nil {
			t.Fatalf("written and read back: %v", err)
		}
		if diff := cmp.Diff(doc.Agent, again.Agent); diff != "" {
			t.Fatalf("changed by writing and reading (-want +got):\n%s", diff)
		}
	})
}
