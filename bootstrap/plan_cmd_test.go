package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/kube/kubetest"
)

const nodeA = `apiVersion: v1
kind: Node
metadata: {name: a}
spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.16.1}]}
---
`

const web = `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10]
  ipFamilies: [IPv4]
  ports: [{name: http, protocol: TCP, port: 80, nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints: [{addresses: [10.1.1.3], nodeName: a, conditions: {ready: true}}, {addresses: [10.1.2.3], nodeName: b, conditions: {ready: true}}]
---
`

// TestPlanJSON pins the public form of the output.
func TestPlanJSON(t *testing.T) {
	r := troupe(nodeA+web, "plan", "-f", "-", "--node-name", "a", "-o", "json")
	want := `{
  "node": "a",
  "services": [
    {
      "service": "shop/web",
      "plan": "as asked",
      "frontends": 2,
      "endpoints": 2,
      "why": []
    }
  ],
  "frontends": [
    {
      "frontend": "10.96.0.10:80/TCP",
      "service": "shop/web",
      "port": "http",
      "scope": "cluster",
      "kind": "clusterIP",
      "from": "any",
      "action": "forward",
      "endpoints": [
        "10.1.1.3:8080",
        "10.1.2.3:8080"
      ],
      "affinitySeconds": 0,
      "masqueradeFrom": [],
      "allowSources": []
    },
    {
      "frontend": "192.168.16.1:30080/TCP",
      "service": "shop/web",
      "port": "http",
      "scope": "nodeport",
      "kind": "nodePort",
      "from": "any",
      "action": "forward",
      "endpoints": [
        "10.1.1.3:8080",
        "10.1.2.3:8080"
      ],
      "affinitySeconds": 0,
      "masqueradeFrom": [
        "pod",
        "node",
        "remote"
      ],
      "allowSources": []
    }
  ],
  "healthChecks": [],
  "rows": [
    {
      "renderer": "nat44",
      "vip": "10.96.0.10:80/TCP",
      "service": "shop/web",
      "flags": [
        "out2in-only",
        "self-twice-nat"
      ],
      "locals": [
        {
          "address": "10.1.1.3:8080",
          "weight": 7
        },
        {
          "address": "10.1.2.3:8080",
          "weight": 7
        }
      ],
      "affinitySeconds": 0
    },
    {
      "renderer": "nat44",
      "vip": "192.168.16.1:30080/TCP",
      "service": "shop/web",
      "flags": [
        "out2in-only",
        "twice-nat"
      ],
      "locals": [
        {
          "address": "10.1.1.3:8080",
          "weight": 7
        },
        {
          "address": "10.1.2.3:8080",
          "weight": 7
        }
      ],
      "affinitySeconds": 0
    }
  ],
  "beside": [],
  "approximations": []
}
`
	if r.code != exitOK || r.errs != "" {
		t.Fatalf("exit code %d: %s", r.code, r.errs)
	}
	if diff := cmp.Diff(want, r.out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestPlanFormats: YAML and JSON have the same content; the table names every frontend and row.
func TestPlanFormats(t *testing.T) {
	asJSON := troupe(nodeA+web, "plan", "-f", "-", "--node-name", "a", "-o", "json")
	asYAML := troupe(nodeA+web, "plan", "-f", "-", "--node-name", "a", "-o", "yaml")
	text, err := yaml.YAMLToJSON([]byte(asYAML.out))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decodeReport(t, asJSON.out), decodeReport(t, string(text))); diff != "" {
		t.Errorf("YAML differs from JSON:\n%s", diff)
	}
	table := troupe(nodeA+web, "plan", "-f", "-", "--node-name", "a", "-o", "wide")
	for _, want := range []string{"FRONTEND", "10.96.0.10:80/TCP", "192.168.16.1:30080/TCP", "Rows in VPP", "out2in-only,twice-nat"} {
		if !strings.Contains(table.out, want) {
			t.Errorf("the table lacks %q:\n%s", want, table.out)
		}
	}
}

// TestPlanSummary: one line counts the services and each service has one; the details are those of
// the chosen services.
func TestPlanSummary(t *testing.T) {
	more := `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: headless}
spec: {type: ClusterIP, clusterIP: None, ports: [{protocol: TCP, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: alias}
spec: {type: ExternalName, externalName: example.com}
---
apiVersion: v1
kind: Service
metadata: {namespace: other, name: empty}
spec: {type: ClusterIP, clusterIP: 10.96.0.11, clusterIPs: [10.96.0.11], ipFamilies: [IPv4], ports: [{protocol: TCP, port: 80}]}
---
`
	for args, want := range map[string]string{
		"": `
4 services: 1 as asked, 1 refused, 1 headless, 1 ExternalName

Services
SERVICE PLAN FRONTENDS ENDPOINTS WHY
other/empty refused 1 0 no endpoint is ready; and 1 more
shop/alias not served 0 0 ExternalName
shop/headless not served 0 0 headless
shop/web as asked 2 2 -`,
		"-n other": `
1 service: 1 refused

Services
SERVICE PLAN FRONTENDS ENDPOINTS WHY
other/empty refused 1 0 no endpoint is ready; and 1 more`,
		"other/empty --service-cidr 10.96.0.0/12": `
1 service: 1 refused

Services
SERVICE PLAN FRONTENDS ENDPOINTS WHY
other/empty refused 1 0 no endpoint is ready; and 1 more

Frontends
FRONTEND SERVICE KIND FROM ACTION ENDPOINTS
10.96.0.11:80/TCP other/empty clusterIP any reject -

Routes and access lists in VPP
OBJECT SERVICE TEXT
route - reject 10.96.0.0/12
route other/empty reject 10.96.0.11/32

Approximations
FRONTEND SERVICE WANTED RENDERED WHY
10.96.0.11:80/TCP other/empty reject: connection refused reject: host unreachable without its session layer VPP answers with ICMP host unreachable: TCP clients fail at once, UDP clients only time out; with session { enable } VPP refuses them, except where its tables or listeners prevent it`,
		"shop/web": `
1 service: 1 as asked

Services
SERVICE PLAN FRONTENDS ENDPOINTS WHY
shop/web as asked 2 2 -

Frontends
FRONTEND SERVICE PORT KIND FROM ACTION ENDPOINTS MASQUERADE
10.96.0.10:80/TCP shop/web http clusterIP any forward 10.1.1.3:8080,10.1.2.3:8080 -
192.168.16.1:30080/TCP shop/web http nodePort any forward 10.1.1.3:8080,10.1.2.3:8080 pod,node,remote

Rows in VPP
RENDERER FRONTEND SERVICE FLAGS BACKENDS WEIGHT
nat44 10.96.0.10:80/TCP shop/web out2in-only,self-twice-nat 10.1.1.3:8080,10.1.2.3:8080 7
nat44 192.168.16.1:30080/TCP shop/web out2in-only,twice-nat 10.1.1.3:8080,10.1.2.3:8080 7`,
	} {
		r := troupe(nodeA+web+more, append([]string{"plan", "-f", "-", "--node-name", "a"}, strings.Fields(args)...)...)
		if diff := cmp.Diff(strings.TrimSpace(want), squeeze(r.out)); diff != "" || r.code != exitOK {
			t.Errorf("plan %s: %d %s (-want +got):\n%s", args, r.code, r.errs, diff)
		}
	}
}

// TestPlanReportsEveryProblem: each problem names its place, and all other objects are planned.
func TestPlanReportsEveryProblem(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "good.yaml", nodeA+web)
	bad := write(t, dir, "bad.yaml", `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: cart}
spec: {type: ClusterIP, clusterIP: 10.96.0.11, ports: [{name: http, protocol: TCP, port: 99999}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: mangled}
spec: {ports: "none"}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: partly}
spec:
  type: ClusterIP
  clusterIP: 10.96.0.12
  externalIPs: [300.1.1.1, 198.51.100.1]
  ports: [{name: http, protocol: TCP, port: 80}]
---
: [
`)
	r := troupe("", "plan", "-f", good, "-f", bad, "--node-name", "a", "-o", "json")
	if r.code != exitFailed {
		t.Errorf("exit code %d, want %d", r.code, exitFailed)
	}
	lines := strings.Split(strings.TrimSpace(r.errs), "\n")
	for _, want := range [][]string{
		{"bad.yaml", "Service shop/cart", "spec.ports[0].port", "99999"},
		{"bad.yaml", "Service shop/mangled", "spec.ports"},
		{"bad.yaml", "Service shop/partly", "spec.externalIPs", "300.1.1.1"},
		{"bad.yaml", "document 4"},
	} {
		if n := countLines(lines, want); n != 1 {
			t.Errorf("%d lines with %q in:\n%s", n, want, r.errs)
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d lines:\n%s", len(lines), r.errs)
	}
	var frontends []string
	for _, f := range decodeReport(t, r.out).Frontends {
		frontends = append(frontends, f.Frontend)
	}
	want := []string{"10.96.0.12:80/TCP", "198.51.100.1:80/TCP", "10.96.0.10:80/TCP", "192.168.16.1:30080/TCP"}
	if diff := cmp.Diff(want, frontends); diff != "" {
		t.Errorf("frontends (-want +got):\n%s", diff)
	}
}

// countLines counts the lines that hold all of the words.
func countLines(lines, words []string) int {
	n := 0
	for _, line := range lines {
		all := strings.HasPrefix(line, "troupe: ")
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			n++
		}
	}
	return n
}

func TestPlanErrors(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "cluster.yaml", nodeA+web)
	empty := t.TempDir()
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown node", []string{"-f", file, "--node-name", "c"}, 1, `troupe: unknown node "c": the input holds a`},
		{"unknown service", []string{"-f", file, "--node-name", "a", "shop/none"}, 1, "troupe: service shop/none: not in the input"},
		{"no nodes", []string{"-f", "-", "--node-name", "c"}, 1, `troupe: unknown node "c": the input holds no Node objects`},
		{"no file of that name", []string{"-f", "none.yaml", "--node-name", "a"}, 1, "troupe: read objects: stat none.yaml: no such file or directory"},
		{"empty directory", []string{"-f", empty, "--node-name", "a"}, 1, "troupe: read objects: directory " + empty + " has no *.yaml, *.yml or *.json"},
		{"no file", []string{"--node-name", "a"}, 2, "troupe: expected -f FILE (- for standard input)"},
		{"no node name", []string{"-f", file}, 2, "troupe: expected --node-name NAME, the node of the plan"},
		{"unknown flag", []string{"--file", file}, 2, "troupe: unknown flag: --file (see 'troupe plan --help')"},
		{"argument", []string{file}, 2, `troupe: "` + file + `" is not the name of a service: expected NAMESPACE/NAME`},
		{"format", []string{"-o", "xml"}, 2, `troupe: invalid argument "xml" for "-o, --output" flag: expected one of table, wide, json, yaml (see 'troupe plan --help')`},
		{"renderer", []string{"-f", file, "--node-name", "a", "--renderer", "ipvs"}, 2, `troupe: --renderer: renderer: "ipvs" is not one of auto, nat44, cnat, dual`},
		{"node ports", []string{"-f", file, "--node-name", "a", "--node-port-addresses", "all,10.0.0.0/8"}, 2, `troupe: --node-port-addresses: services.nodePortAddresses[0]: "all" must be the only entry`},
		{"configuration", []string{"-f", file, "--node-name", "a", "--config", "none.yaml"}, 1, "troupe: read configuration: open none.yaml: no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := troupe("", append([]string{"plan"}, tt.args...)...)
			if r.code != tt.code || r.errs != tt.want+"\n" || r.out != "" {
				t.Errorf("exit code %d, stdout %q, stderr\n%swant %d\n%s", r.code, r.out, r.errs, tt.code, tt.want)
			}
		})
	}
}

// TestPlanContestedFrontend: two services want one external address; the older one gets the row,
// and the other one shows a conflict.
func TestPlanContestedFrontend(t *testing.T) {
	service := func(name, created, ip string) string {
		return `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: ` + name + `, creationTimestamp: "` + created + `"}
spec: {type: ClusterIP, clusterIP: ` + ip + `, externalIPs: [198.51.100.9], ports: [{name: http, protocol: TCP, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: ` + name + `-1, labels: {kubernetes.io/service-name: ` + name + `}}
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints: [{addresses: [10.1.1.3], nodeName: a}]
---
`
	}
	in := nodeA + service("young", "2026-02-01T00:00:00Z", "10.96.0.21") + service("old", "2026-01-01T00:00:00Z", "10.96.0.22")
	report := decodeReport(t, troupe(in, "plan", "-f", "-", "--node-name", "a", "-o", "json").out)
	owners := map[string]string{}
	for _, row := range report.Rows {
		if owners[row.VIP] != "" {
			t.Errorf("two rows for %s", row.VIP)
		}
		owners[row.VIP] = row.Service
	}
	if owners["198.51.100.9:80/TCP"] != "shop/old" {
		t.Errorf("owners of the rows: %v", owners)
	}
	if len(report.Approximations) != 1 || report.Approximations[0].Service != "shop/young" || !strings.Contains(report.Approximations[0].Why, "shop/old") {
		t.Errorf("approximations: %+v", report.Approximations)
	}
}

// TestPlanSaysWhatCannotBeUsed: in the plan and on standard error. Source ranges that cannot be
// read admit no client.
func TestPlanSaysWhatCannotBeUsed(t *testing.T) {
	in := nodeA + `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10]
  loadBalancerSourceRanges: ["", "192.0.2.1"]
  ports: [{name: http, protocol: TCP, port: 80}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.9}]}}
`
	r := troupe(in, "plan", "-f", "-", "--node-name", "a", "-o", "json")
	report := decodeReport(t, r.out)
	var fields []string
	for _, p := range report.Problems {
		fields = append(fields, p.Object+" "+p.Field)
	}
	want := []string{"shop/web spec.loadBalancerSourceRanges[0]", "shop/web spec.loadBalancerSourceRanges[1]"}
	if diff := cmp.Diff(want, fields); diff != "" || !strings.Contains(r.errs, "spec.loadBalancerSourceRanges[0]") {
		t.Errorf("problems (-want +got):\n%s\nstderr: %s", diff, r.errs)
	}
	for _, f := range report.Frontends {
		if f.Frontend == "203.0.113.9:80/TCP" && (f.Action != "drop" || f.From != "any") {
			t.Errorf("clients are served: %+v", f)
		}
	}
	if table := troupe(in, "plan", "-f", "-", "--node-name", "a").out; !strings.Contains(table, "Invalid input") {
		t.Errorf("no problems in\n%s", table)
	}
}

// TestPlanSaysWhatIsNotRendered: a frontend without a row is explained.
func TestPlanSaysWhatIsNotRendered(t *testing.T) {
	in := nodeA + `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: mixed}
spec:
  clusterIP: 10.96.0.30
  clusterIPs: [10.96.0.30, "fd00:96::30"]
  ipFamilies: [IPv4, IPv6]
  ports: [{name: sig, protocol: SCTP, port: 3868}, {name: http, protocol: TCP, port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: mixed-4, labels: {kubernetes.io/service-name: mixed}}
addressType: IPv4
ports: [{name: sig, protocol: SCTP, port: 3868}, {name: http, protocol: TCP, port: 80}]
endpoints: [{addresses: [10.1.1.3], nodeName: a}]
`
	r := troupe(in, "plan", "-f", "-", "--node-name", "a", "-o", "json")
	if r.code != exitOK {
		t.Errorf("exit code %d: %s", r.code, r.errs)
	}
	report := decodeReport(t, r.out)
	explained := map[string]bool{}
	for _, row := range report.Rows {
		explained[row.VIP] = true
	}
	for _, a := range report.Approximations {
		explained[a.Frontend] = true
	}
	if len(report.Frontends) != 4 {
		t.Errorf("%d frontends, want 4", len(report.Frontends))
	}
	for _, f := range report.Frontends {
		if !explained[f.Frontend] {
			t.Errorf("%s has neither a row nor an explanation: %+v", f.Frontend, report.Approximations)
		}
	}
}

// TestPlanRealCluster: a dump as it is, at every node.
func TestPlanRealCluster(t *testing.T) {
	dump := string(kubetest.Read(t, "real-cluster-shop.yaml"))
	for _, node := range []string{"edge-1", "edge-2", "edge-3"} {
		r := troupe(dump, "plan", "-f", "-", "--node-name", node, "--cluster-cidr", "10.1.0.0/16,fd00:1::/48", "-o", "json")
		if r.code != exitOK || r.errs != "" {
			t.Errorf("%s: exit code %d: %s", node, r.code, r.errs)
			continue
		}
		if report := decodeReport(t, r.out); len(report.Frontends) < 20 || len(report.Rows) < 20 {
			t.Errorf("%s: %d frontends, %d rows", node, len(report.Frontends), len(report.Rows))
		}
	}
}

// TestPlanDemo: the demo cluster has no problems, and every node has something to serve.
func TestPlanDemo(t *testing.T) {
	dir := filepath.Join("..", "deploy", "demo")
	for _, node := range []string{"shop-a", "shop-b", "shop-c"} {
		r := troupe("", "plan", "-f", dir, "--node-name", node, "-o", "json")
		if r.code != exitOK || r.errs != "" {
			t.Fatalf("%s: exit code %d: %s", node, r.code, r.errs)
		}
		if report := decodeReport(t, r.out); len(report.Rows) < 14 {
			t.Errorf("%s: only %d rows", node, len(report.Rows))
		}
	}
}

// TestPlanDoesNotDependOnOrder: the documents of a cluster in any order and in any number of files
// give the same plan.
func TestPlanDoesNotDependOnOrder(t *testing.T) {
	dir := filepath.Join("..", "deploy", "demo")
	want := troupe("", "plan", "-f", dir, "--node-name", "shop-a", "-o", "json").out
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, strings.Split(string(content), "\n---\n")...)
	}
	to := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		parts := [2]string{}
		for _, doc := range rapid.Permutation(documents).Draw(r, "documents") {
			parts[rapid.IntRange(0, 1).Draw(r, "file")] += doc + "\n---\n"
		}
		one, two := write(t, to, "1.yaml", parts[0]), write(t, to, "2.yaml", parts[1])
		if got := troupe("", "plan", "-f", one, "-f", two, "--node-name", "shop-a", "-o", "json"); got.out != want {
			r.Fatalf("another plan: %s\n%s", got.errs, cmp.Diff(want, got.out))
		}
	})
}

// TestReadSameObjectTwice: the first file counts, and the other is named.
func TestReadSameObjectTwice(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "1.yaml", nodeA+web)
	second := write(t, dir, "2.yaml", strings.ReplaceAll(web, "10.96.0.10", "10.96.0.99"))
	write(t, dir, ".hidden.yaml", ": [")
	write(t, dir, "notes.txt", ": [")
	objects, problems, err := plan.Read([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects.Services) != 1 || objects.Services[0].GetClusterIps()[0] != "10.96.0.10" || len(objects.Slices) != 1 {
		t.Errorf("objects %+v", objects)
	}
	if len(problems) != 2 || problems[0].GetSource() != second || problems[0].GetObject() != "shop/web" || !strings.Contains(problems[0].GetMessage(), "1.yaml") {
		t.Errorf("problems %v", problems)
	}
}
