package daemonset_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/manifests"
	"github.com/troupe-vpp/troupe/test/node"
)

// services6 are the cluster IPs of IPv6.
const services6 = "fd00:96::/112"

// nodePorts has node ports at the uplinks only, which are not the addresses of the Nodes.
const nodePorts = `  nodePortAddresses: [192.0.2.0/24, "2001:db8::/64"]`

// TestExampleCNI: a cluster from nothing. Two nodes without a network get VPP and the plugin of
// deploy/kubernetes/example-cni and the agent; their pods talk through VPP only, in both families.
// VPP has the pods in its default table, or in one of their own.
func TestExampleCNI(t *testing.T) {
	for _, table := range []string{"0", "2"} {
		t.Run("table "+table, func(t *testing.T) { exampleCNI(t, table) })
	}
}

func exampleCNI(t *testing.T, table string) {
	t.Helper()
	if missing := node.Missing(); missing != "" {
		t.Skip(missing)
	}
	vpp := os.Getenv("TROUPE_VPP_BIN")
	if vpp == "" {
		t.Skip("no real VPP, TROUPE_VPP_BIN is not set: not played are DNS-like, web and node port of pods behind VPP on two nodes, IPv4 and IPv6")
	}
	c, outside := stageFromNothing(t, vpp, table)
	c.Namespace("shop")
	for name, on := range map[string]int{"a": 0, "b": 1} {
		c.runPod("web", name, on, strconv.Itoa(large))
	}
	services := []*corev1.Service{c.dualService("web", corev1.ProtocolTCP, 80), c.dualService("dns", corev1.ProtocolUDP, 53)}
	c.allReached(services, outside)

	// A pod that goes leaves nothing in VPP, and its address is not the next one to be used.
	before := c.podAddress("b")
	c.removePod("b")
	c.runPod("web", "b", 1, strconv.Itoa(large))
	if after := c.podAddress("b"); after == before {
		t.Errorf("the address %s is used again at once", after)
	}
	if links := strings.Count(c.vppctl(1, "show", "interface"), "host-pod"); links != 1 {
		t.Errorf("VPP of node2 has %d interfaces of pods, want 1", links)
	}

	c.called("CHECK", podOf(c), "")
	c.called("CHECK", "other", "eth0 has no attachment")
	c.called("DEL", "other", "")

	// A VPP that restarts has lost everything.
	c.kill(0, "vpp", "-c")
	c.allReached(services, outside)

	// A companion that restarts finds everything in place.
	c.kill(1, "/example-cni", "node")
	controlplane.Eventually(t, "companion of VPP on node2 content", func() string {
		said, err := c.nodes[1].Try("sh", "-c", "tail -n 1 /var/log/pods/example-cni_*/node/1.log")
		if err != nil || !strings.Contains(said, "state of VPP: as it should be") {
			return said
		}
		return ""
	})

	// Processes of the host, by the overlay for them.
	dir := c.manifests()
	edit(t, filepath.Join(dir, "components", "host-route", "kustomization.yaml"), "172.30.0.1", "169.254.1.1")
	c.applyCopy(dir, "overlays/host-route")
	c.rolledOut()
	c.answered(services[0].Spec.ClusterIP+":80", "a", "b")

	config := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\nservices:\n"+nodePorts+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.packetsChecked(map[string]string{
		"node1 to pods": "ok 4 of 4 addresses", "node1 to cluster IPs": "ok 2 of 2 addresses", "node1 to node ports": "skipped",
		"node2 to pods": "ok 4 of 4 addresses", "node2 to cluster IPs": "ok 2 of 2 addresses", "node2 to node ports": "skipped",
	}, "--config", config)
}

// large is a length of answers that take many packets, or few that are joined to larger ones.
const large = 300_000

// allReached asks each service at all of its addresses: by its cluster IPs from a pod on each node,
// and by the node port at each node from outside.
func (c *cluster) allReached(services []*corev1.Service, outside *node.Node) {
	c.Helper()
	for _, s := range services {
		for family, vip := range s.Spec.ClusterIPs {
			port := s.Spec.Ports[0]
			network := strings.ToLower(string(port.Protocol))
			for _, client := range []string{"a", "b"} {
				address := net.JoinHostPort(vip, fmt.Sprint(port.Port))
				c.reached(fmt.Sprintf("pod %s asks %s %s", client, s.Name, address), network, func() (string, error) {
					return c.exec("shop", client, "/pod", "ask", network, address)
				})
			}
			for on := range c.nodes {
				address := net.JoinHostPort(uplinks(on)[family].Addr().String(), fmt.Sprint(port.NodePort))
				c.reached(fmt.Sprintf("outside asks %s at %s", s.Name, address), network, func() (string, error) {
					return askAs(outside, network, address)
				})
			}
		}
	}
}

// kill kills the only process of a node whose command line begins with these words.
func (c *cluster) kill(on int, words ...string) {
	c.Helper()
	pids := c.nodes[on].Find(words...)
	if len(pids) != 1 {
		c.Fatalf("processes %v on %s: %v", words, c.nodes[on].Name, pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		c.Fatal(err)
	}
}

// podAddress is the address of a pod.
func (c *cluster) podAddress(name string) string {
	c.Helper()
	pod, err := c.Admin.CoreV1().Pods("shop").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return pod.Status.PodIP
}

// podOf is the container, in the words of CNI, of the pod on the second node.
func podOf(c *cluster) string {
	c.Helper()
	const prefix, suffix = "/var/lib/cni/results/example-cni-", "-eth0" // that the runtime keeps
	kept := strings.Fields(c.nodes[1].Do("sh", "-c", "ls "+prefix+"*"))
	if len(kept) != 1 {
		c.Fatalf("results of the plugin on node2: %v", kept)
	}
	return strings.TrimSuffix(strings.TrimPrefix(kept[0], prefix), suffix)
}

// called calls the plugin on the second node for a container, and expects an error or none.
func (c *cluster) called(command, container, want string) {
	c.Helper()
	const line = `echo '{"cniVersion": "1.0.0"}' | CNI_IFNAME=eth0 CNI_NETNS=/run/netns/$(ls /run/netns) /opt/cni/bin/example-cni`
	out, err := c.nodes[1].Try("env", "CNI_COMMAND="+command, "CNI_CONTAINERID="+container, "sh", "-c", line)
	if (err == nil) != (want == "") || !strings.Contains(out, want) {
		c.Errorf("%s of %s: %v, %s; want %q", command, container, err, out, want)
	}
}

// vppctl asks the VPP of a node.
func (c *cluster) vppctl(on int, command ...string) string {
	c.Helper()
	program := filepath.Join(filepath.Dir(os.Getenv("TROUPE_VPP_BIN")), "vppctl")
	return c.nodes[on].Do(append([]string{program, "-s", "/run/vpp/cli.sock"}, command...)...)
}

// stageFromNothing starts the cluster, and a machine in the network of the nodes' uplinks.
func stageFromNothing(t *testing.T, vpp, table string) (*cluster, *node.Node) {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	archive, vppArchive := filepath.Join(t.TempDir(), "troupe.tar"), filepath.Join(t.TempDir(), "vpp.tar")
	if err := build.Image(t.Context(), archive, image); err != nil {
		t.Fatal(err)
	}
	if err := build.ExampleVPP(t.Context(), vppArchive, vpp, os.Getenv("TROUPE_VPP_PLUGINS")); err != nil {
		t.Fatal(err)
	}
	program, err := build.Agent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, program: program, Plane: controlplane.StartForNodes(t, bin, "--service-cluster-ip-range="+controlplane.ServiceCIDR+","+services6)}
	c.nodes = node.StartBare(t, c.Plane, archive, vppArchive)
	t.Cleanup(c.logs)
	t.Cleanup(c.vppLogs)
	outside := node.Machine(t, "outside")
	outside.Do("ip", "link", "add", "br0", "up", "type", "bridge")
	outside.Do("ip", "address", "add", "192.0.2.254/24", "dev", "br0")
	outside.Do("ip", "address", "add", "2001:db8::fe/64", "dev", "br0", "nodad")
	for i, n := range c.nodes {
		port := fmt.Sprintf("port%d", i)
		node.Connect(n, "vpp0", outside, port)
		outside.Do("ip", "link", "set", port, "up", "master", "br0")
		c.annotate(n, "example-cni.troupe.dev/uplink", fmt.Sprintf("%s,%s", uplinks(i)[0], uplinks(i)[1]))
	}
	dir := c.manifests()
	edit(t, filepath.Join(dir, "example-cni", "node.env"), "POD_TABLE=0", "POD_TABLE="+table)
	c.applyCopy(dir, "example-cni")
	c.applyCopy(dir, "base")
	for i, n := range c.nodes {
		n.WaitReady(n.Pods, netip.MustParsePrefix(fmt.Sprintf("fd00:1:0:%d::/64", i+1)))
	}
	c.rolledOut()
	return c, outside
}

// manifests returns a copy of deploy/kubernetes, edited for this cluster.
func (c *cluster) manifests() string {
	c.Helper()
	dir := manifests.Copy(c.T, "https://"+c.Address(), controlplane.ServiceCIDR+", "+services6)
	edit(c.T, filepath.Join(dir, "base", "agent.yaml"), "clusterCIDRs: [auto]", "clusterCIDRs: [auto]\n"+nodePorts)
	edit(c.T, filepath.Join(dir, "example-cni", "node.env"), "API_SERVER=\n", "API_SERVER=https://"+c.Address()+"\n", "UPLINK=eth1", "UPLINK=vpp0")
	return dir
}

// uplinks are the addresses of the VPP of a node.
func uplinks(on int) []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", on+1)), netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", on+1))}
}

// annotate annotates a node as soon as it has registered.
func (c *cluster) annotate(n *node.Node, key, value string) {
	c.Helper()
	controlplane.Eventually(c, n.Name+" annotated", func() string {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
		if _, err := c.Admin.CoreV1().Nodes().Patch(context.Background(), n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// edit replaces texts, each of which is in the file once.
func edit(t *testing.T, file string, pairs ...string) {
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

// dualService creates a service of both families with a node port for the pods app=web.
func (c *cluster) dualService(name string, protocol corev1.Protocol, port int32) *corev1.Service {
	c.Helper()
	both := corev1.IPFamilyPolicyRequireDualStack
	made, err := c.Admin.CoreV1().Services("shop").Create(context.Background(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: &both, Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Protocol: protocol, Port: port, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.Fatalf("create service %s: %v", name, err)
	}
	return made
}

// reached asks until each of the pods a and b has answered, completely: one of them is on the node
// of the client, or of the address, the other is not.
func (c *cluster) reached(what, network string, ask func() (string, error)) {
	c.Helper()
	answers := map[string]int{}
	controlplane.Eventually(c, what, func() string {
		answer, err := ask()
		name := strings.TrimSpace(answer)
		switch {
		case err != nil:
			return fmt.Sprintf("%v: %s; before: %v", err, name, answers)
		case network == "tcp" && len(answer) != len(name)+len("\n")+large:
			return fmt.Sprintf("%s: the answer has %d bytes", name, len(answer))
		}
		if answers[name]++; answers["a"] == 0 || answers["b"] == 0 {
			return fmt.Sprint(answers)
		}
		return ""
	})
	c.Logf("%s: %v", what, answers)
}

// askAs asks from the network of a machine.
func askAs(from *node.Node, network, address string) (string, error) {
	connection, err := from.DialNetwork(network, address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
		return "", err
	}
	if network == "tcp" {
		line, err := io.ReadAll(connection)
		return string(line), err
	}
	if _, err := fmt.Fprintln(connection, "?"); err != nil {
		return "", err
	}
	answer := make([]byte, 100)
	n, err := connection.Read(answer)
	return string(answer[:n]), err
}

// vppLogs shows the logs of VPP and its companion in a test that has failed.
func (c *cluster) vppLogs() {
	if !c.Failed() {
		return
	}
	for _, n := range c.nodes {
		out, _ := n.Try("sh", "-c", "tail -n 20 /var/log/pods/example-cni_*/*/*.log; ip address; ip route")
		c.Logf("%s: logs of VPP:\n%s", n.Name, out)
	}
	events, err := c.Admin.CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			c.Logf("event: %s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}
