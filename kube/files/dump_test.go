package files

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// TestRealDump reads the unchanged output of kubectl, for every node.
func TestRealDump(t *testing.T) {
	dump := kubetest.Read(t, "real-cluster-shop.yaml")
	objects, problems := Decode(bytes.NewReader(dump), "dump")
	if len(problems) > 0 {
		t.Errorf("errors: %v", texts(problems))
	}
	if got, want := fmt.Sprint(len(objects.Services), len(objects.Slices), len(objects.Nodes), len(objects.Pods), objects.Ignored), "17 17 3 31 0"; got != want {
		t.Errorf("services, slices, nodes, pods, ignored: %s, want %s", got, want)
	}
	onNode := map[string]int{}
	for _, p := range objects.Pods {
		onNode[p.GetNode()]++
	}
	for _, n := range objects.Nodes {
		snapshot := kube.Collect(n.GetName(), objects.Select(n.GetName()), problems)
		// The source does not deliver the headless service, its slice, or the ExternalName service.
		if got := len(snapshot.GetServices()); got != 15 {
			t.Errorf("%s: %d services", n.GetName(), got)
		}
		if got := snapshot.GetNode(); got.GetSelf() != n || len(got.GetPods()) != onNode[n.GetName()] || len(got.GetErrors()) > 0 {
			t.Errorf("%s: this node %v, %d pods, errors %v", n.GetName(), got.GetSelf(), len(got.GetPods()), got.GetErrors())
		}
	}
}

// TestRealDumpInOtherForms: the same cluster as JSON and as a stream of documents.
func TestRealDumpInOtherForms(t *testing.T) {
	dump := kubetest.Read(t, "real-cluster-shop.yaml")
	want, _ := Decode(bytes.NewReader(dump), "dump")
	asJSON, err := yaml.YAMLToJSON(dump)
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := strings.Cut(string(dump), "\nkind: List")
	_, list, _ = strings.Cut(list, "items:\n")
	stream := "---\n" + strings.ReplaceAll("\n"+list, "\n- ", "\n---\n  ")
	for name, text := range map[string]string{"JSON": string(asJSON), "documents": stream} {
		got, problems := Decode(strings.NewReader(text), "dump")
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, texts(problems))
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-as it was printed +so):\n%s", name, diff)
		}
	}
}

// TestRealDumpWithMistakes makes one mistake at a time. There is exactly one error, which names it,
// and all other objects are read.
func TestRealDumpWithMistakes(t *testing.T) {
	dump := string(kubetest.Read(t, "real-cluster-shop.yaml"))
	all, _ := Decode(strings.NewReader(dump), "dump")
	for _, c := range []struct {
		name, from, to string // the first occurrence is replaced
		want           string // the error
		lost           []string
	}{
		{"a name instead of a port number", "port: 443\n", "port: https\n", `dump Service default/kubernetes spec.ports[0].port: is a string, want int32 (line 3)`, []string{"Service default/kubernetes"}},
		{"a port number too large", "port: 443\n", "port: 65536\n", `dump Service default/kubernetes spec.ports[0].port: 65536 is not a port number (1 to 65535) (line 3)`, nil},
		{"a bad cluster IP", "    - 10.96.0.53\n", "    - 10.96.0.533\n", `dump Service kube-system/dns spec.clusterIPs[0]: "10.96.0.533" is not an IP address (line \d+)`, nil},
		{"a protocol that does not exist", "protocol: UDP\n", "protocol: QUIC\n", `dump Service kube-system/dns spec.ports[0].protocol: "QUIC" is not a protocol (TCP, UDP, SCTP) (line \d+)`, nil},
		{"a bad external IP", "- 198.51.100.7\n", "- 198.51.100.7.1\n", `dump Service shop/syslog spec.externalIPs[0]: "198.51.100.7.1" is not an IP address (line \d+)`, nil},
		{"a bad load balancer IP", "ip: 198.51.100.10\n", "ip: pending\n", `dump Service shop/web status.loadBalancer.ingress[0].ip: "pending" is not an IP address (line \d+)`, nil},
		{"a bad endpoint", "- 172.20.0.5\n", "- 172.20.0\n", `dump EndpointSlice shop/legacy-manual-0 endpoints[0].addresses[0]: "172.20.0" is not an IP address (line \d+)`, nil},
		{"a word instead of a condition", "ready: true\n", "ready: maybe\n", `dump EndpointSlice kube-system/dns-\w+ endpoints[0].conditions.ready: is a string, want bool (line \d+)`, []string{"EndpointSlice kube-system/dns-jkk7c"}},
		{"a bad node address", "address: 192.168.50.2\n", "address: 192.168.50\n", `dump Node edge-2 status.addresses[0].address: "192.168.50" is not an IP address (line \d+)`, nil},
		{"a bad pod CIDR", "- 10.1.3.0/24\n", "- 10.1.3.0/240\n", `dump Node edge-3 spec.podCIDRs[0]: "10.1.3.0/240" is not an address range (ip/length) (line \d+)`, nil},
		{"no kind", "  kind: Pod\n  metadata:", "  sort: Pod\n  metadata:", `dump document 1, line \d+, items[37]: apiVersion or kind is missing`, []string{"Pod kube-system/dns-58261"}},
		{"a name that cannot be", "    name: ads\n    namespace", "    name: ADS!\n    namespace", `dump Service "shop/ADS!" metadata.name: "ADS!" is not a name (line \d+)`, []string{"Service shop/ads"}},
		{"a key twice", "    clusterIP: 10.96.0.1\n", "    clusterIP: 10.96.0.1\n    clusterIP: 10.96.0.2\n", `dump Service default/kubernetes: the key "clusterIP" occurs twice (line 42)`, []string{"Service default/kubernetes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			edited := strings.Replace(dump, c.from, c.to, 1)
			if edited == dump {
				t.Fatalf("%q is not in the dump", c.from)
			}
			objects, problems := Decode(strings.NewReader(edited), "dump")
			if len(problems) != 1 {
				t.Fatalf("%d errors, want one: %v", len(problems), texts(problems))
			}
			pattern := strings.NewReplacer(`\\d\+`, `\d+`, `\\w\+`, `\w+`).Replace(regexp.QuoteMeta(c.want))
			if got := text(problems[0]); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
				t.Errorf("error %s\n want %s", got, c.want)
			}
			var lost []string
			for _, name := range contents(all) {
				if !slices.Contains(contents(objects), name) {
					lost = append(lost, name)
				}
			}
			if diff := cmp.Diff(c.lost, lost); diff != "" {
				t.Errorf("lost objects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAcceptanceCasesDecode: every case, written as a file, gives its objects and no error.
func TestAcceptanceCasesDecode(t *testing.T) {
	for _, c := range kubetest.Load(t).Cases {
		for _, objects := range append([]kubetest.Objects{c.Objects}, applied(c)...) {
			got, problems := Decode(bytes.NewReader(objects.List(t)), c.Name)
			if len(problems) > 0 || got.Ignored > 0 {
				t.Errorf("%s: %d ignored, %v", c.Name, got.Ignored, texts(problems))
			}
			if len(got.Services) != len(objects.Services) || len(got.Slices) != len(objects.EndpointSlices) || len(got.Nodes) != len(objects.Nodes) {
				t.Errorf("%s: %v", c.Name, contents(got))
			}
		}
	}
}

func applied(c kubetest.Case) []kubetest.Objects {
	var out []kubetest.Objects
	for _, s := range c.Steps {
		out = append(out, s.Apply)
	}
	return out
}

func BenchmarkDecodeDump(b *testing.B) {
	dump := kubetest.Read(b, "real-cluster-shop.yaml")
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	for range b.N {
		if _, problems := Decode(bytes.NewReader(dump), "dump"); len(problems) > 0 {
			b.Fatal(texts(problems))
		}
	}
}
