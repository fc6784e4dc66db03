package agent_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

const (
	thisNode  = "n1"
	nodeIP    = "192.168.16.1"
	namespace = "troupe-system" // of the agent
	account   = "troupe-agent"
)

// topology is what a CNI has made of VPP.
const topology = `interfaces:
- {name: uplink0, addresses: [192.168.16.1/24], gateway: 192.168.16.254}
pods: [{name: tap-a, address: 10.1.1.3}, {name: tap-b, address: 10.1.1.4}, {name: tap-c, address: 10.1.1.5}]
`

// configuration is what has no flag.
const configuration = `apiVersion: troupe.dev/v1alpha1
kind: AgentConfiguration
kubernetes: {stalenessLimit: 15s}
`

// node is a node with its agent and its VPP.
type node struct {
	testing.TB
	*controlplane.Plane
	vpp, agent *controlplane.Process
	start      func() // the agent; only in a town
	client     http.Client
	dir        string
	token      string // path of the token
}

// stage starts a control plane, a VPP and an agent, and waits until the agent is ready.
func stage(t *testing.T) *node {
	t.Helper()
	n := prepare(t)
	n.launch(troupe)
	n.ready()
	return n
}

// prepare starts a control plane and a VPP.
func prepare(t testing.TB) *node {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "troupe") // short: paths of sockets are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &node{TB: t, Plane: controlplane.Start(t, bin), dir: dir, token: filepath.Join(dir, "token")}
	n.Grant(namespace, filepath.Join(build.Root(), "deploy", "kubernetes", "base", "rbac.yaml"))
	n.write(n.token, n.Token(namespace, account, "first"))
	n.write(filepath.Join(dir, "topology.yaml"), topology)
	n.write(filepath.Join(dir, "config.yaml"), configuration)
	n.register(thisNode, nodeIP, "10.1.1.0/24")
	n.register("n2", "192.168.16.2", "10.1.2.0/24")

	// the two processes have the same binary, so their logs need two directories
	vppDir := n.file("vpp")
	if err := os.Mkdir(vppDir, 0o700); err != nil {
		t.Fatal(err)
	}
	n.vpp = controlplane.Spawn(t, vppDir, troupe, "simulator", "--api-socket", n.file("api.sock"), "--stats-socket", n.file("stats.sock"),
		"--topology", n.file("topology.yaml"))
	n.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.file("control.sock"))
	}}
	return n
}

// file is the path of a file of the node.
func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

// launch starts the agent from a program.
func (n *node) launch(program string) { n.launchAt(program, "127.0.0.1:0") }

// launchAt is launch with the address of the HTTP server, and perhaps more flags.
func (n *node) launchAt(program, http string, more ...string) {
	n.Helper()
	n.agent = controlplane.Spawn(n, n.dir, program, append([]string{
		"agent", "--node-name", thisNode, "--kubeconfig", n.Kubeconfig("agent", "tokenFile: "+n.token),
		"--vpp-api-socket", n.file("api.sock"), "--vpp-stats-socket", n.file("stats.sock"), "--etcd", "none",
		"--config", n.file("config.yaml"), "--cluster-cidr", "10.1.0.0/16", "--data-dir", n.file("data"),
		"--control-socket", n.file("control.sock"), "--http-address", http, "--healthz-bind-address", "", "--log-format", "text",
	}, more...)...)
}

// write writes a file at once, as the kubelet replaces a token.
func (n *node) write(file, content string) {
	n.Helper()
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		n.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		n.Fatal(err)
	}
}

// register creates the Node object.
func (n *node) register(name, ip, cidr string) {
	n.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}}}
	made, err := n.Admin.CoreV1().Nodes().Create(n.Context(), object, metav1.CreateOptions{})
	if err == nil {
		made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
		_, err = n.Admin.CoreV1().Nodes().UpdateStatus(n.Context(), made, metav1.UpdateOptions{})
	}
	if err != nil {
		n.Fatalf("register node: %v", err)
	}
}

// get asks the agent and decodes the answer into v, or returns what went wrong.
func (n *node) get(path string, v any) string {
	return controlplane.Get(&n.client, "http://agent"+path, v)
}

// ready waits until the node is ready.
func (n *node) ready() {
	n.Helper()
	controlplane.Eventually(n, "agent ready", func() string {
		if n.agent.Ended() {
			n.Fatal("the agent has ended")
		}
		return n.get("/readyz?verbose", nil)
	})
}

// rowsOf returns the rows of a service in VPP as "vip -> local,local", sorted.
func (n *node) rowsOf(service string) (rows []string, problem string) {
	var detail struct {
		InVPP []struct {
			VIP    string
			Locals []struct{ Address string }
		}
	}
	if problem := n.get("/api/v1/services/"+service, &detail); problem != "" {
		if strings.HasPrefix(problem, "404") {
			return nil, ""
		}
		return nil, problem
	}
	for _, row := range detail.InVPP {
		var locals []string
		for _, local := range row.Locals {
			locals = append(locals, local.Address)
		}
		slices.Sort(locals)
		rows = append(rows, row.VIP+" -> "+strings.Join(locals, ","))
	}
	slices.Sort(rows)
	return rows, ""
}

// want waits until VPP holds exactly these rows of the service.
func (n *node) want(service string, rows ...string) {
	n.Helper()
	slices.Sort(rows)
	controlplane.Eventually(n, "rows of "+service, func() string {
		have, problem := n.rowsOf(service)
		if problem == "" && !slices.Equal(have, rows) {
			problem = fmt.Sprintf("have %q, want %q", have, rows)
		}
		return problem
	})
}

var counters = regexp.MustCompile(`mutating (\d+)\nrows (\d+)\n`)

// counted asks the simulator how many requests for a change it has had and how many rows it has.
func (n *node) counted() (mutating, rows int) {
	n.Helper()
	before := len(counters.FindAllString(n.vpp.Output(), -1))
	n.vpp.Signal(syscall.SIGUSR1)
	controlplane.Eventually(n, "counters of VPP", func() string {
		all := counters.FindAllStringSubmatch(n.vpp.Output(), -1)
		if len(all) == before {
			return "no answer"
		}
		last := all[len(all)-1]
		mutating, _ = strconv.Atoi(last[1])
		rows, _ = strconv.Atoi(last[2])
		return ""
	})
	return mutating, rows
}
