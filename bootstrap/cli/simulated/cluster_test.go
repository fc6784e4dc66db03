package simulated

import (
	"bytes"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/deploy/demo"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// TestNothingIsWrongWithIt: every file is read without a problem and without an ignored object.
func TestNothingIsWrongWithIt(t *testing.T) {
	names, err := fs.Glob(demo.Files, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range names {
		content, err := demo.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		objects, problems := files.Decode(bytes.NewReader(content), name)
		for _, p := range problems {
			t.Errorf("%s: %s %s: %s: %s", name, p.GetKind(), p.GetObject(), p.GetField(), p.GetMessage())
		}
		if objects.Ignored > 0 {
			t.Errorf("%s: %d objects are ignored", name, objects.Ignored)
		}
	}
}

// TestEveryNodeServesIt: at each node the plan has no problems, the same cluster IPs, and the node
// ports of that node.
func TestEveryNodeServesIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, demo.Files); err != nil {
		t.Fatal(err)
	}
	objects, problems, err := plan.Read([]string{dir}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	serving, err := config.Defaults().Services.Serving()
	if err != nil {
		t.Fatal(err)
	}
	serving.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	var first []string
	for node, address := range map[string]string{"shop-a": "192.168.16.1", "shop-b": "192.168.16.2", "shop-c": "192.168.16.3"} {
		report, problems, err := plan.Build(objects, plan.Options{Node: node, Serving: serving, NAT44: nat44.Config{Node: node, Pads: true}})
		if err != nil || len(problems) > 0 {
			t.Fatalf("%s: %v, %v", node, problems, err)
		}
		var cluster, nodePorts []string
		for _, row := range report.Rows {
			switch {
			case strings.HasPrefix(row.VIP, "10.96."):
				cluster = append(cluster, row.VIP)
			case strings.HasPrefix(row.VIP, address+":"):
				nodePorts = append(nodePorts, row.VIP)
			case strings.HasPrefix(row.VIP, "192.168."):
				t.Errorf("%s: row %s of another node", node, row.VIP)
			}
		}
		if first == nil {
			first = cluster
		}
		if !slices.Equal(cluster, first) || len(cluster) < 12 {
			t.Errorf("%s: cluster IPs %v, another node has %v", node, cluster, first)
		}
		if len(nodePorts) < 2 {
			t.Errorf("%s: node ports %v", node, nodePorts)
		}
	}
}
