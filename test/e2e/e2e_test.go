package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
	"github.com/troupe-vpp/troupe/test/stage"
)

var (
	campaign = flag.Bool("campaign", false, "play everything that concerns services")
	focus    = flag.String("focus", `\[sig-network\] Services .*\[Conformance\]`, "play tests whose names match the `EXPRESSION`")
	beside   = flag.Bool("kube-proxy", false, "play with kube-proxy the tests of docs/conformance.md that do not pass")
)

// shards of the campaign, which run at the same time: they wait most of the time.
var shards = map[string]string{
	"services": `\[sig-network\] Services `,
	"granular": `\[sig-network\] Networking `,
	"others": `\[sig-network\] (Conntrack|EndpointSlice|Endpoints|Service CIDRs|ServiceCIDR|API Server|Proxy|` +
		`Traffic Distribution|Topology Hints|NoSNAT|Connectivity|Service endpoints latency|HostPort)`,
	"dual stack":      `\[sig-network\] \[Feature:IPv6DualStack\]`,
	"load balancers":  `\[sig-network\] LoadBalancers .*should [^n]`,
	"rolling updates": `\[sig-network\] LoadBalancers .*should n`,
}

// never is played: the outage of a node, and what lies outside of the machine.
const never = `\[Disruptive\]|Internet connection`

// TestKubernetes plays the tests of Kubernetes.
func TestKubernetes(t *testing.T) {
	vpp := os.Getenv("TROUPE_VPP_BIN")
	if vpp == "" && !*beside {
		t.Skip("no real VPP, TROUPE_VPP_BIN is not set: not played are Kubernetes' own tests of services, on three nodes with pods behind VPP")
	}
	for _, missing := range []string{node.Missing(), missingTools()} {
		if missing != "" {
			t.Skip(missing)
		}
	}
	all := results{file: filepath.Join(build.Root(), "docs", "conformance.md"), reasons: reasons(t)}
	suite, dns, err := build.Suite(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	c, outside := begun(t, vpp, suite, dns)
	played := map[string]string{"focus": *focus}
	if *campaign {
		played = shards
	}
	if *beside {
		played = all.failed(t)
	} else {
		version, _, _ := strings.Cut(c.VPPCtl(0, "show", "version"), " built by")
		all.vpp = strings.TrimSuffix(strings.TrimPrefix(version, "vpp v"), "-release")
	}
	for name, focus := range played {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.add(t, play(t, c, outside, suite, focus))
		})
	}
}

// begun starts the cluster.
func begun(t *testing.T, vpp, suite, dns string) (*stage.Cluster, *node.Node) {
	t.Helper()
	own, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(filepath.Join(own, name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	// all controllers of Kubernetes in place of the few that other tests need
	manager := fmt.Sprintf("#!/bin/sh\nexec %s/kube-controller-manager \"$@\" --leader-elect=false --secure-port=0 --kube-api-qps=200 --kube-api-burst=400\n", suite)
	if err := os.WriteFile(filepath.Join(bin, "controllers"), []byte(manager), 0o700); err != nil {
		t.Fatal(err)
	}
	nodes := func(t testing.TB, plane *controlplane.Plane, images ...string) []*node.Node {
		controlplane.Spawn(t, t.TempDir(), filepath.Join(suite, "kube-scheduler"), "--kubeconfig", plane.Kubeconfig("scheduler", controlplane.Credentials),
			"--leader-elect=false", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400")
		return node.StartApart(t, plane, images...)
	}
	o := stage.Options{
		Binaries: bin, VPP: vpp, Table: "0", Overlay: "overlays/host-route", Images: images(t, suite, dns), Nodes: nodes, Addresses: true, Gateway: stage.Gateway + ",fe80::1",
		// at the addresses of the Nodes, where the tests ask, and at the uplinks
		NodePorts: `  nodePortAddresses: [172.31.250.0/24, 192.0.2.0/24, "2001:db8::/64", "fd31:250::/64"]`,
	}
	start := withTroupe
	if *beside {
		start = withKubeProxy
	}
	c, outside := start(t, o)
	outside.Forward(c.Address(), c.Address())
	kubeconfig := c.Kubeconfig("labels", controlplane.Credentials)
	for i, n := range c.Nodes {
		outside.Do(filepath.Join(suite, "kubectl"), "--kubeconfig="+kubeconfig, "label", "node", n.Name, "topology.kubernetes.io/zone=zone-"+n.Name)
		n.Ctr("images", "tag", node.PodImage, pause)
		n.Ctr("images", "tag", agnhost, busybox)
		via := stage.Uplinks(i)
		for _, to := range []string{n.Pods.String(), n.Address.String()} {
			outside.Do("ip", "route", "add", to, "via", via[0].Addr().String())
		}
		for _, to := range []string{stage.Pods6(i).String(), n.Address6.String()} {
			outside.Do("ip", "route", "add", to, "via", via[1].Addr().String())
		}
	}
	outside.Forward(stage.Outside.String()+":6443", c.Address())
	c.ApplyAsItIs(filepath.Join(build.Root(), "test", "e2e", "cluster"))
	return c, outside
}

// withTroupe starts nodes that reach each other, and the network outside, through VPP only.
func withTroupe(t *testing.T, o stage.Options) (*stage.Cluster, *node.Node) {
	t.Helper()
	c, outside := stage.FromNothing(t, o)
	for i, n := range c.Nodes {
		for j, other := range c.Nodes {
			if j != i {
				n.Do("ip", "route", "replace", other.Address.String(), "via", "169.254.1.1", "dev", "vpp-host", "src", n.Address.String())
				n.Do("ip", "route", "replace", other.Address6.String(), "via", "fe80::1", "dev", "vpp-host", "src", n.Address6.String())
			}
		}
		n.Do("ip", "route", "replace", "default", "via", "169.254.1.1", "dev", "vpp-host")
	}
	return c, outside
}

// result is of one test, as the report of the suite has it.
type result struct {
	ContainerHierarchyTexts []string
	LeafNodeText            string
	LeafNodeType, State     string
	Failure                 struct{ Message string }
}

// play plays the tests whose names match, from the machine outside.
func play(t *testing.T, c *stage.Cluster, outside *node.Node, suite, focus string) (played []result) {
	t.Helper()
	dir := t.TempDir()
	said, err := outside.Try(filepath.Join(suite, "suite"), "--kubeconfig="+c.Kubeconfig(filepath.Base(dir), controlplane.Credentials), "--kubectl-path="+filepath.Join(suite, "kubectl"),
		"--provider=skeleton", "--num-nodes=3", "--minStartupPods=0", "--allowed-not-ready-nodes=0", "--node-os-distro=debian", "--report-dir="+dir,
		"--ginkgo.focus="+focus, "--ginkgo.skip="+never, "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.timeout=3h", "--ginkgo.json-report="+filepath.Join(dir, "report.json"))
	if err != nil {
		t.Logf("%v\n%s", err, said)
	}
	content, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var suites []struct{ SpecReports []result }
	if err := json.Unmarshal(content, &suites); err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			// one that is not in focus is skipped without a message
			if r.LeafNodeType == "It" && (r.State != "skipped" || r.Failure.Message != "") && r.State != "pending" {
				played = append(played, r)
			}
		}
	}
	return played
}
