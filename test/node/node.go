package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// Node is a node of the cluster. Its fields do not change.
type Node struct {
	Name     string
	Address  netip.Addr   // of its end of the link to the other node
	Address6 netip.Addr   // of IPv6; zero = none
	Pods     netip.Prefix // addresses of its pods

	t                         testing.TB
	plane                     *controlplane.Plane
	bare                      bool   // without a network for pods
	dir                       string // for files of this node, on the machine
	group                     string // its cgroup
	pid                       int    // of its first process
	kubeletDir, containerdDir string

	images              []string // paths of archives
	kubelet, containerd *Process
}

// Missing says what a node needs and the machine does not have, or "".
func Missing() string {
	if os.Geteuid() != 0 {
		return "a node needs root"
	}
	for _, command := range []string{"runc", "nsenter", "ip"} {
		if _, err := exec.LookPath(command); err != nil {
			return "a node needs " + command
		}
	}
	return missingCgroups(hierarchies)
}

// Start starts two nodes with the images of the archives, and waits until both are Ready. The third
// machine has no link to them and becomes a node by Join. All end with the test.
func Start(t testing.TB, plane *controlplane.Plane, images ...string) (nodes []*Node, third *Node) {
	t.Helper()
	nodes = machines(t, plane, false, images)
	link(nodes[0], nodes[1])
	for _, n := range nodes[:2] {
		n.join()
	}
	for _, n := range nodes[:2] {
		n.WaitReady(n.Pods)
	}
	return nodes[:2], nodes[2]
}

// StartBare is Start for nodes without a network for pods. They have no range of pods yet, and are
// Ready only after a CNI plugin has been installed (see WaitReady).
func StartBare(t testing.TB, plane *controlplane.Plane, images ...string) []*Node {
	t.Helper()
	nodes := machines(t, plane, true, images)[:2]
	link(nodes[0], nodes[1])
	for _, n := range nodes {
		n.join()
	}
	return nodes
}

// StartApart is StartBare for three nodes with addresses of both families and without links.
func StartApart(t testing.TB, plane *controlplane.Plane, images ...string) []*Node {
	t.Helper()
	nodes := machines(t, plane, true, images)
	for i, n := range nodes {
		n.Address6 = netip.MustParseAddr(fmt.Sprintf("fd31:250::%d", i+1))
		n.alone()
		n.Do("ip", "address", "add", n.Address6.String()+"/64", "dev", "eth0", "nodad")
		n.Do("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
		n.join()
	}
	return nodes
}

// machines starts the machines that become nodes.
func machines(t testing.TB, plane *controlplane.Plane, bare bool, images []string) []*Node {
	t.Helper()
	removeAbandoned()
	kubeletDir, containerdDir, err := build.Node(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	images = append(images, podImage(t))
	var nodes []*Node
	for i := range 3 {
		n := &Node{
			Name: fmt.Sprintf("node%d", i+1), Address: netip.AddrFrom4([4]byte{172, 31, 250, byte(i + 1)}),
			Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i + 1), 0}), 24),
			t:    t, plane: plane, bare: bare, kubeletDir: kubeletDir, containerdDir: containerdDir,
			images: images,
		}
		n.begin()
		nodes = append(nodes, n)
	}
	serveEgress(t, plane.EgressSocket(), nodes)
	return nodes
}

// alone gives a machine its address at a link that leads nowhere.
func (n *Node) alone() {
	n.t.Helper()
	n.Do("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "end0")
	n.Do("ip", "address", "add", n.Address.String()+"/24", "dev", "eth0")
	n.Do("ip", "link", "set", "end0", "up")
	n.Do("ip", "link", "set", "eth0", "up")
}

// join starts what makes a node of a machine. PodImage gets more names there.
func (n *Node) join(names ...string) {
	n.t.Helper()
	n.Forward(n.plane.Address(), n.plane.Address())
	n.StartContainerd()
	for _, image := range n.images {
		n.Ctr("images", "import", image)
	}
	for _, name := range names {
		n.Ctr("images", "tag", "--force", PodImage, name)
	}
	n.StartKubelet()
}

// Join makes a node of the third machine and waits until it is Ready. The images with these names
// are PodImage there.
func (n *Node) Join(names ...string) {
	n.t.Helper()
	n.alone()
	n.join(names...)
	n.WaitReady(n.Pods)
}

// Machine starts a machine that is not a node: a network without Kubernetes. It ends with the test.
func Machine(t testing.TB, name string) *Node {
	t.Helper()
	n := &Node{Name: name, t: t}
	n.begin()
	return n
}

// Connect joins a device of one node to a device of another by a link; both are down.
func Connect(a *Node, device string, b *Node, other string) {
	a.t.Helper()
	const moving = "moving0"
	a.Do("ip", "link", "add", device, "type", "veth", "peer", "name", moving)
	// The names of namespaces are pids in the pid namespace of the command; that of the machine
	// knows both.
	out, err := exec.Command("nsenter", "-t", fmt.Sprint(a.pid), "-n", "--", "ip", "link", "set", moving, "netns", fmt.Sprint(b.pid)).CombinedOutput()
	if err != nil {
		a.t.Fatalf("move link to %s: %v: %s", b.Name, err, out)
	}
	b.Do("ip", "link", "set", moving, "name", other)
}

// begin makes the namespaces and the cgroup.
func (n *Node) begin() {
	n.t.Helper()
	dir, err := os.MkdirTemp("", "troupe")
	if err != nil {
		n.t.Fatal(err)
	}
	n.dir, n.group = dir, groupName(n.Name)
	n.t.Cleanup(func() {
		controlplane.Eventually(n.t, "cgroups of "+n.Name+" removed", func() string { return removeCgroups(n.group) })
		if err := os.RemoveAll(dir); err != nil {
			n.t.Errorf("remove files of %s: %v", n.Name, err)
		}
	})
	if err := makeCgroup(hierarchies, n.group); err != nil {
		n.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	first := controlplane.SpawnAs(n.t, filepath.Join(dir, "init.log"), &exec.Cmd{
		Path: self, Args: []string{initial, dir, n.Name},
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS},
	})
	n.pid = first.Pid()
	controlplane.Eventually(n.t, n.Name+" has its namespaces", func() string {
		if said := first.Output(); said != "ready\n" {
			if first.Ended() {
				n.t.Fatalf("%s: %s", n.Name, said)
			}
			return "said " + said
		}
		return ""
	})
}

// link makes the link between two nodes; each is the router of the other one's pods.
func link(a, b *Node) {
	a.t.Helper()
	Connect(a, "eth0", b, "eth0")
	for _, pair := range [][2]*Node{{a, b}, {b, a}} {
		n, other := pair[0], pair[1]
		n.Do("ip", "address", "add", n.Address.String()+"/24", "dev", "eth0")
		n.Do("ip", "link", "set", "eth0", "up")
		if !n.bare {
			n.Do("ip", "route", "add", other.Pods.String(), "via", other.Address.String())
		}
		n.Do("ip", "route", "add", "default", "via", other.Address.String())
		n.Do("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	}
}

// WaitReady gives the node its ranges of pods, at most one per family, and waits until it is Ready.
func (n *Node) WaitReady(ranges ...netip.Prefix) {
	n.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"podCIDR": ranges[0], "podCIDRs": ranges}})
	if err != nil {
		n.t.Fatal(err)
	}
	given := false
	controlplane.Eventually(n.t, n.Name+" Ready", func() string {
		if n.kubelet.Ended() {
			n.t.Fatalf("kubelet of %s has ended", n.Name)
		}
		if !given {
			if _, err := n.plane.Admin.CoreV1().Nodes().Patch(context.Background(), n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return err.Error()
			}
			given = true
		}
		object, err := n.plane.Admin.CoreV1().Nodes().Get(context.Background(), n.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprintf("conditions: %v", object.Status.Conditions)
	})
}

// Ctr runs ctr for the containers of Kubernetes.
func (n *Node) Ctr(arguments ...string) string {
	n.t.Helper()
	return n.Do(n.ctr(arguments)...)
}

func (n *Node) ctr(arguments []string) []string {
	return append([]string{filepath.Join(n.containerdDir, "ctr"), "-a", socket, "-n", "k8s.io"}, arguments...)
}

// Write writes a file on the node.
func (n *Node) Write(file, content string) {
	n.t.Helper()
	command := n.enter("tee", file)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("write %s on %s: %v: %s", file, n.Name, err, out)
	}
}
