package daemonset_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
	"github.com/troupe-vpp/troupe/test/stage"
)

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
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	started, outside := stage.FromNothing(t, stage.Options{
		Binaries: bin, VPP: vpp, Table: table, Overlay: "base", NodePorts: stage.NodePorts, Gateway: stage.Gateway, Nodes: node.StartBare,
	})
	c := &cluster{Cluster: *started}
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
	if links := strings.Count(c.VPPCtl(1, "show", "interface"), "host-pod"); links != 1 {
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
		said, err := c.Nodes[1].Try("sh", "-c", "tail -n 1 /var/log/pods/example-cni_*/node/1.log")
		if err != nil || !strings.Contains(said, "state of VPP: as it should be") {
			return said
		}
		return ""
	})

	// Processes of the host, by the overlay for them.
	dir := c.Manifests(stage.NodePorts, stage.Gateway)
	c.ApplyCopy(dir, "overlays/host-route")
	c.RolledOut()
	c.answered(services[0].Spec.ClusterIP+":80", "a", "b")

	config := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\nservices:\n"+stage.NodePorts+"\n"), 0o600); err != nil {
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
			for on := range c.Nodes {
				address := net.JoinHostPort(stage.Uplinks(on)[family].Addr().String(), fmt.Sprint(port.NodePort))
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
	pids := c.Nodes[on].Find(words...)
	if len(pids) != 1 {
		c.Fatalf("processes %v on %s: %v", words, c.Nodes[on].Name, pids)
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
	kept := strings.Fields(c.Nodes[1].Do("sh", "-c", "ls "+prefix+"*"))
	if len(kept) != 1 {
		c.Fatalf("results of the plugin on node2: %v", kept)
	}
	return strings.TrimSuffix(strings.TrimPrefix(kept[0], prefix), suffix)
}

// called calls the plugin on the second node for a container, and expects an error or none.
func (c *cluster) called(command, container, want string) {
	c.Helper()
	const line = `echo '{"cniVersion": "1.0.0"}' | CNI_IFNAME=eth0 CNI_NETNS=/run/netns/$(ls /run/netns) /opt/cni/bin/example-cni`
	out, err := c.Nodes[1].Try("env", "CNI_COMMAND="+command, "CNI_CONTAINERID="+container, "sh", "-c", line)
	if (err == nil) != (want == "") || !strings.Contains(out, want) {
		c.Errorf("%s of %s: %v, %s; want %q", command, container, err, out, want)
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
