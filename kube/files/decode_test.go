package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// contents names the objects.
func contents(o *normalize.Objects) []string {
	var out []string
	for _, s := range o.Services {
		out = append(out, "Service "+normalize.ServiceKey(s))
	}
	for _, s := range o.Slices {
		out = append(out, "EndpointSlice "+normalize.SliceKey(s))
	}
	for _, n := range o.Nodes {
		out = append(out, "Node "+n.GetName())
	}
	for _, p := range o.Pods {
		out = append(out, "Pod "+normalize.PodKey(p))
	}
	for _, c := range o.ServiceCIDRs {
		out = append(out, fmt.Sprint("ServiceCIDR ", c.Name, " ", c.Networks))
	}
	return out
}

// texts returns the errors as text.
func texts(problems []*messages.ObjectError) []string {
	var out []string
	for _, p := range problems {
		out = append(out, text(p))
	}
	return out
}

const web = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 10.96.0.1
  ports:
  - port: 80
`

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
		ignored  int
		errors   []string
	}{
		{name: "nothing"},
		{name: "empty documents", in: "---\n# only a comment\n---\nnull\n---\n~\n"},
		{name: "one", in: web, want: []string{"Service shop/web"}},
		{name: "the default namespace", in: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", want: []string{"Service default/web"}},
		{name: "a node has no namespace", in: "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n", want: []string{"Node n1"}},
		{
			name: "all kinds in JSON",
			in: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}
				{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"a-1"},"addressType":"IPv4"}
				{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"podIP":"10.0.0.1"}} {"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`,
			want: []string{"Service default/a", "EndpointSlice default/a-1", "Node n", "Pod default/p"},
		},
		{name: "YAML in flow style is no JSON", in: "{apiVersion: v1, kind: Node, metadata: {name: n}}", want: []string{"Node n"}},
		{name: "JSON and YAML", in: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}` + "\n---" + web, want: []string{"Service shop/web", "Node n"}},
		{name: "JSON escapes that YAML does not know", in: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","labels":{"x":"\ud83d\ude00\/"}}}`, want: []string{"Node n"}},
		{
			name: "other kinds and groups",
			in: "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: web}\n---\napiVersion: v1\nkind: Secret\n---\n" +
				"apiVersion: apps/v1\nkind: DeploymentList\nitems: [1, 2]\n",
			ignored: 3,
		},
		{
			name: "networks of cluster IPs",
			in: "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: a}\nspec: {cidrs: [10.96.0.1/12, x]}\n---\n" +
				"apiVersion: networking.k8s.io/v1\nkind: ServiceCIDRList\nitems: [{metadata: {name: b}, spec: {cidrs: ['fd00::/112']}}]\n---\n" +
				"apiVersion: networking.k8s.io/v1beta1\nkind: ServiceCIDR\nmetadata: {name: c}\n",
			want: []string{"ServiceCIDR a [10.96.0.0/12]", "ServiceCIDR b [fd00::/112]"},
			errors: []string{
				`f ServiceCIDR a spec.cidrs[1]: "x" is not an address range (ip/length) (line 1)`,
				`f ServiceCIDR document 3, line 10 apiVersion: "networking.k8s.io/v1beta1" is not supported, want networking.k8s.io/v1`,
			},
		},
		{name: "pods that cannot be reached", in: "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {phase: Pending}\n", ignored: 1},
		{
			name: "lists",
			in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap}\n---\n" +
				"apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: b}\n- {apiVersion: v1, kind: Node, metadata: {name: c}}\n---\n" +
				"apiVersion: v1\nkind: ServiceList\nitems: null\n---\napiVersion: v1\nkind: PodList\n---\n" +
				`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","items":[{"metadata":{"name":"s"},"addressType":"IPv6"}]}` + "\n---\n" +
				`{"apiVersion":"v1","kind":"List","items":null,"metadata":{}}`,
			want: []string{"EndpointSlice default/s", "Node a", "Node b", "Node c"}, ignored: 1,
		},
		{
			name: "unknown fields of newer servers", in: web + "  trafficMagic: {a: [1]}\n", want: []string{"Service shop/web"},
		},
		{
			name: "fields are told apart by case", in: "apiVersion: v1\nkind: Service\nmetadata: {name: web, Namespace: shop}\n",
			want: []string{"Service default/web"},
		},
		{
			name: "anchors", in: "apiVersion: v1\nkind: List\nitems:\n- &n {apiVersion: v1, kind: Node, metadata: {name: a}}\n- {<<: *n, metadata: {name: b}}\n",
			want: []string{"Node a", "Node b"},
		},
		{
			name:   "dates and numbers keep their meaning",
			in:     "apiVersion: v1\nkind: Node\nmetadata: {name: n, creationTimestamp: 2026-11-21T03:12:47Z, annotations: {a: '1', b: \"yes\"}}\nspec: {podCIDR: 0x0}\n",
			errors: []string{"f Node n spec.podCIDR: is a number, want string (line 1)"},
		},

		{name: "no object", in: "just text\n---\n[1, 2]\n---\n3\n---" + web, want: []string{"Service shop/web"}, errors: []string{
			"f document 1, line 1: is not a mapping", "f document 2, line 3: is not a mapping", "f document 3, line 5: is not a mapping",
		}},
		{name: "no kind", in: "apiVersion: v1\nmetadata: {name: web}\n---\nkind: Service\n---\n{}\n", errors: []string{
			"f document 1, line 1: apiVersion or kind is missing", "f document 2, line 4: apiVersion or kind is missing",
			"f document 3, line 6: apiVersion or kind is missing",
		}},
		{name: "kind is no text", in: "apiVersion: v1\nkind: [Service]\n---\n{\"apiVersion\": 1, \"kind\": \"Service\"}", errors: []string{
			"f document 1, line 1: kind: is not a string", "f document 2, line 4: apiVersion: is not a string",
		}},
		{
			name: "broken YAML costs its document", in: web + "---\na: [1\nb: 2\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
			want: []string{"Service shop/web", "Node n"}, errors: []string{"f document 2, line 10: is not YAML: did not find expected ',' or ']'"},
		},
		{
			name: "broken JSON costs what follows in its document",
			in:   `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}` + "\n" + `{"apiVersion":` + "\n" + `]}` + "\n---\n" + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`,
			want: []string{"Node a", "Node b"}, errors: []string{"f document 1, line 3: json: invalid character ']' looking for beginning of value"},
		},
		{name: "JSON cut off", in: `{"apiVersion":"v1","kind":"No`, errors: []string{"f document 1, line 1: json: unexpected EOF"}},
		{name: "wrong type", in: strings.Replace(web, "80", "http", 1), errors: []string{"f Service shop/web spec.ports[0].port: is a string, want int32 (line 2)"}},
		{
			name: "wrong type in JSON", in: "\n" + `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80},{"name":"x","port":99999999999}]}}`,
			errors: []string{"f Service default/web spec.ports[1].port: is a number 99999999999, want int32 (line 2)"},
		},
		{name: "a list where there is one", in: strings.Replace(web, "10.96.0.1", "[10.96.0.1]", 1), errors: []string{"f Service shop/web spec.clusterIP: is a array, want string (line 2)"}},
		{name: "a key twice", in: web + "spec: {}\n", errors: []string{`f Service shop/web: the key "spec" occurs twice (line 9)`}},
		{
			name: "old API", in: "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: x}\n",
			errors: []string{`f EndpointSlice document 1, line 1 apiVersion: "discovery.k8s.io/v1beta1" is not supported, want discovery.k8s.io/v1`},
		},
		{name: "no name", in: "apiVersion: v1\nkind: Service\nspec: {}\n", errors: []string{`f Service "default/" metadata.name: "" is not a name (line 1)`}},
		{
			name: "items is no list", in: "apiVersion: v1\nkind: List\nitems: 5\n---\n{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":{}}",
			errors: []string{"f List document 1, line 1 items: is not a list", "f List document 2, line 5 items: is not a list"},
		},
		{
			name: "an item is no object", in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- 5\n- null\n",
			want: []string{"Node a"}, errors: []string{"f document 1, line 5, items[1]: is not a mapping", "f document 1, line 6, items[2]: is not a mapping"},
		},
		{
			name: "twice", in: web + "---" + web, want: []string{"Service shop/web"},
			errors: []string{"f Service shop/web: occurs twice: document 2, line 10 is ignored, document 1, line 2 counts"},
		},
		{
			name: "normalisation", in: strings.Replace(web, "10.96.0.1", "10.96.0.300", 1), want: []string{"Service shop/web"},
			errors: []string{`f Service shop/web spec.clusterIP: "10.96.0.300" is not an IP address (line 2)`},
		},
		{name: "infinite", in: "apiVersion: v1\nkind: Node\nmetadata: {name: n, generation: .inf}\n", errors: []string{`f Node n: ".inf" is not a number of JSON (line 3)`}},
		{name: "a key is no text", in: "apiVersion: v1\nkind: Node\nmetadata: {name: n, [a]: b}\n", errors: []string{`f Node n: a key is not a string (line 3)`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects, problems := Decode(strings.NewReader(c.in), "f")
			if diff := cmp.Diff(c.want, contents(objects)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if objects.Ignored != c.ignored {
				t.Errorf("%d ignored, want %d", objects.Ignored, c.ignored)
			}
			if diff := cmp.Diff(c.errors, texts(problems)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecodeHostile decodes small inputs that could be expensive. Each must end soon, within little
// memory, with an error.
func TestDecodeHostile(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9)+"*"+string(c-1))
	}
	head := "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	list := func(kind string, depth int) string {
		return strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, depth) + strings.Repeat("]}", depth)
	}
	merges := "x0: &x0 {k: v}\n"
	for i := 1; i < 60; i++ {
		merges += fmt.Sprintf("x%d: &x%d {<<: [*x%d, *x%d]}\n", i, i, i-1, i-1)
	}
	for name, in := range map[string]string{
		"alias bomb":         head + bomb,
		"large string":       head + "s: &s " + strings.Repeat("x", 1<<20) + "\nt: [" + strings.Repeat("*s, ", 100_000) + "]\n",
		"circle":             head + "c: &c {d: *c}\n",
		"circle of merges":   head + "c: &c\n  <<: *c\n  e: [*c]\n",
		"deep":               head + "d: " + deep,
		"lists in lists":     list("List", 4000),
		"many aliases":       "apiVersion: v1\nkind: List\nbig: &b {" + strings.Repeat("k: v, ", 1) + manyKeys(50_000) + "}\nitems: [" + strings.Repeat("*b, ", 50_000) + "]\n",
		"merge of many":      head + "big: &b {" + manyKeys(20_000) + "}\nm:\n  <<: [" + strings.Repeat("*b, ", 20_000) + "]\n",
		"merges in merges":   head + merges + strings.Repeat("y", 5<<20) + ": 1\n",
		"very many errors":   strings.Repeat("---\n5\n", 20_000),
		"control characters": "apiVersion: v1\nkind: \"Ser\\nvice\"\nmetadata: {name: \"a\\nb\"}\n---\nkind: \"\\e[31m\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := Decode(strings.NewReader(in), "f")
			if len(problems) > maxErrors+1 {
				t.Errorf("%d errors", len(problems))
			}
			for _, p := range problems {
				if strings.ContainsAny(text(p), "\n\x1b") || len(text(p)) > 600 {
					t.Errorf("an error forges or floods the log: %.100q", text(p))
				}
			}
			if len(problems) == 0 && name != "control characters" {
				t.Errorf("was taken: %v", contents(objects))
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: v, ", i)
	}
	return b.String()
}

func TestDecodeCountsErrorsBeyondTheLimit(t *testing.T) {
	_, problems := Decode(strings.NewReader(strings.Repeat("---\n5\n", maxErrors+7)), "f")
	if len(problems) != maxErrors+1 || problems[maxErrors].GetMessage() != "7 more errors" {
		t.Errorf("%d errors, the last: %v", len(problems), problems[len(problems)-1])
	}
}

func TestFieldAt(t *testing.T) {
	object := `{"a":{"b":[{"c":1},{"c":"x"}]},"d":[[true]]}`
	for i, want := range []string{"a.b[1].c", "d[0][0]"} {
		needle := []string{`"x"`, "true"}[i]
		if got := fieldAt([]byte(object), int64(strings.Index(object, needle)+len(needle))); got != want {
			t.Errorf("path %q, want %q", got, want)
		}
	}
	if got := fieldAt([]byte(object), 1<<40); got != "" {
		t.Errorf("path beyond the end: %q", got)
	}
	if got := fieldAt([]byte(`{"a":[`), 1<<40); got != "" {
		t.Errorf("path in broken JSON: %q", got)
	}
}

func TestYAMLAndJSONAgree(t *testing.T) {
	asYAML, problems := Decode(strings.NewReader("apiVersion: v1\nkind: List\nitems:\n-"+strings.ReplaceAll(web, "\n", "\n  ")), "f")
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	asJSON, problems := Decode(strings.NewReader(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Service",
		"metadata":{"name":"web","namespace":"shop"},"spec":{"clusterIP":"10.96.0.1","ports":[{"port":80}]}}]}`), "f")
	if len(problems) > 0 || !slices.Equal(contents(asYAML), contents(asJSON)) || asYAML.Services[0].String() != asJSON.Services[0].String() {
		t.Errorf("YAML gives %v, JSON %v, %v", asYAML.Services, asJSON.Services, texts(problems))
	}
}
