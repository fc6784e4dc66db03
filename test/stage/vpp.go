package stage

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
)

// Services6 are the cluster IPs of IPv6.
const Services6 = "fd00:96::/112"

// NodePorts has node ports at the Uplinks only, which are not the addresses of the Nodes.
const NodePorts = `  nodePortAddresses: [192.0.2.0/24, "2001:db8::/64"]`

// Gateway is VPP for processes of the host, which have IPv4 only.
const Gateway = "169.254.1.1"

// Uplink is the device of a node that is its link to the network of the Uplinks.
const Uplink = "uplink0"

// Options are of a cluster from nothing. WithoutNetwork uses Binaries, Images, Nodes and Addresses.
type Options struct {
	Binaries  string   // directory of etcd, kube-apiserver and controllers
	VPP       string   // path
	Table     string   // of VPP, for the pods
	Overlay   string   // of deploy/kubernetes, with the agent
	NodePorts string   // as NodePorts
	Addresses bool     // Services of type LoadBalancer get addresses of AddressPools, and VPP answers
	Gateway   string   // as Gateway
	Images    []string // archives for the nodes, beside those of the agent and VPP
	Nodes     func(testing.TB, *controlplane.Plane, ...string) []*node.Node
}

// FromNothing starts nodes without a network, which get VPP and the plugin of
// deploy/kubernetes/example-cni and the agent, and a machine in the network of their uplinks.
func FromNothing(t *testing.T, o Options) (c *Cluster, outside *node.Node) {
	t.Helper()
	vppArchive := filepath.Join(t.TempDir(), "vpp.tar")
	if err := build.ExampleVPP(t.Context(), vppArchive, o.VPP, os.Getenv("TROUPE_VPP_PLUGINS")); err != nil {
		t.Fatal(err)
	}
	program, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Images = append(o.Images, vppArchive)
	c, outside = WithoutNetwork(t, o)
	c.Program = program
	for i, n := range c.Nodes {
		c.annotate(n, "example-cni.troupe.dev/uplink", fmt.Sprintf("%s,%s", Uplinks(i)[0], Uplinks(i)[1]))
	}
	dir := c.Manifests(o.NodePorts, o.Gateway)
	Edit(t, filepath.Join(dir, "example-cni", "node.env"), "POD_TABLE=0", "POD_TABLE="+o.Table)
	c.ApplyCopy(dir, "example-cni")
	if o.Addresses {
		Edit(t, filepath.Join(dir, "base", "agent.yaml"), "dataDir:", "addresses: {enabled: true}\ndataDir:")
	}
	c.ApplyCopy(dir, o.Overlay)
	for i, n := range c.Nodes {
		n.WaitReady(n.Pods, Pods6(i))
	}
	c.RolledOut()
	return c, outside
}

// WithoutNetwork starts the nodes, which have the image of the agent, and a machine to which their
// uplinks lead. Uplinks are down and have no addresses.
func WithoutNetwork(t *testing.T, o Options) (c *Cluster, outside *node.Node) {
	t.Helper()
	c = &Cluster{T: t, Plane: controlplane.StartForNodes(t, o.Binaries, "--allow-privileged=true", "--service-cluster-ip-range="+controlplane.ServiceCIDR+","+Services6)}
	archive := filepath.Join(t.TempDir(), "troupe.tar")
	if err := build.Image(t.Context(), archive, Image); err != nil {
		t.Fatal(err)
	}
	c.Nodes = o.Nodes(t, c.Plane, append(o.Images, archive)...)
	t.Cleanup(c.Logs)
	outside = node.Machine(t, "outside")
	outside.Do("ip", "link", "add", "br0", "up", "type", "bridge")
	outside.Do("ip", "address", "add", Outside.String()+"/24", "dev", "br0")
	outside.Do("ip", "address", "add", Outside6.String()+"/64", "dev", "br0", "nodad")
	for i, n := range c.Nodes {
		port := fmt.Sprintf("port%d", i)
		node.Connect(n, Uplink, outside, port)
		outside.Do("ip", "link", "set", port, "up", "master", "br0")
	}
	if o.Addresses {
		dir := CopyManifests(t, "", controlplane.ServiceCIDR)
		Edit(t, filepath.Join(dir, "addresses", "deployment.yaml"), "- addresses\n", "- addresses\n        - --default-class\n")
		c.ApplyCopy(dir, "addresses")
	}
	return c, outside
}

// Outside and Outside6 are the addresses of the machine in the network of the uplinks.
var (
	Outside  = netip.MustParseAddr("192.0.2.254")
	Outside6 = netip.MustParseAddr("2001:db8::fe")
)

// Pods6 are the addresses of IPv6 of the pods of a node.
func Pods6(on int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:1:0:%d::/64", on+1))
}

// Manifests returns a copy of deploy/kubernetes, edited for this cluster with these addresses of
// node ports and this gateway of the host.
func (c *Cluster) Manifests(nodePorts, gateway string) string {
	c.Helper()
	dir := CopyManifests(c.T, "https://"+c.Address(), controlplane.ServiceCIDR+", "+Services6)
	Edit(c.T, filepath.Join(dir, "base", "agent.yaml"), "clusterCIDRs: [auto]", "clusterCIDRs: [auto]\n"+nodePorts)
	Edit(c.T, filepath.Join(dir, "components", "host-route", "kustomization.yaml"), "172.30.0.1", gateway)
	Edit(c.T, filepath.Join(dir, "example-cni", "node.env"), "API_SERVER=\n", "API_SERVER=https://"+c.Address()+"\n", "UPLINK=eth1", "UPLINK="+Uplink)
	return dir
}

// Uplinks are the addresses of the VPP of a node.
func Uplinks(on int) []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", on+1)), netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", on+1))}
}

// annotate annotates a node as soon as it has registered.
func (c *Cluster) annotate(n *node.Node, key, value string) {
	c.Helper()
	controlplane.Eventually(c, n.Name+" annotated", func() string {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
		if _, err := c.Admin.CoreV1().Nodes().Patch(context.Background(), n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// Edit replaces texts, each of which is in the file once.
func Edit(t *testing.T, file string, pairs ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(pairs, 2) {
		if bytes.Count(text, []byte(pair[0])) != 1 {
			t.Fatalf("%s has not one %q", file, pair[0])
		}
		text = bytes.Replace(text, []byte(pair[0]), []byte(pair[1]), 1)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// VPPCtl asks the VPP of a node.
func (c *Cluster) VPPCtl(on int, command ...string) string {
	c.Helper()
	program := filepath.Join(filepath.Dir(os.Getenv("TROUPE_VPP_BIN")), "vppctl")
	return c.Nodes[on].Do(append([]string{program, "-s", "/run/vpp/cli.sock"}, command...)...)
}
