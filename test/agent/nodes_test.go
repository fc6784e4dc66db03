package agent_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// town is several nodes, each with its agent and its VPP, on one control plane and one node store.
type town struct {
	*testing.T
	*controlplane.Plane
	store string // etcd or kubernetes
	token string
	nodes map[string]*node
	wires map[string]*wire // to the node store
}

// newTown starts a control plane. The agents keep IDs of nodes that have left for a short time.
func newTown(t *testing.T, store string) *town {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	w := &town{T: t, Plane: controlplane.Start(t, bin), store: store, nodes: map[string]*node{}, wires: map[string]*wire{}}
	manifests := filepath.Join(build.Root(), "deploy", "kubernetes")
	w.Grant(namespace, filepath.Join(manifests, "base", "rbac.yaml"))
	w.Define(filepath.Join(manifests, "addresses", "definition.yaml"))
	w.token = w.Token(namespace, account, "first")
	return w
}

// address is that of a node's VPP.
func address(i int) string { return fmt.Sprintf("192.168.16.%d", i) }

// join registers node i, and starts its VPP and its agent.
func (w *town) join(i int) *node {
	w.Helper()
	name := fmt.Sprintf("n%d", i)
	dir, err := os.MkdirTemp("", "troupe") // short: paths of sockets are limited
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := func(name string) string { return filepath.Join(dir, name) }
	n := &node{TB: w.T, Plane: w.Plane, token: file("token")}
	n.write(n.token, w.token)
	n.write(file("topology.yaml"), strings.NewReplacer(nodeIP, address(i), "10.1.1.", fmt.Sprintf("10.1.%d.", i)).Replace(topology))
	n.write(file("agent.yaml"), "apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\netcd: {gracePeriod: 2s}\nkubernetes: {qps: 50, burst: 100}\naddresses: {enabled: true}\n")
	n.register(name, address(i), fmt.Sprintf("10.1.%d.0/24", i))
	arguments := []string{
		"agent", "--config", file("agent.yaml"), "--node-name", name, "--kubeconfig", n.Kubeconfig(name, "tokenFile: "+n.token),
		"--vpp-api-socket", file("api.sock"), "--vpp-stats-socket", file("stats.sock"),
		"--cluster-cidr", "10.1.0.0/16", "--data-dir", file("data"), "--control-socket", file("control.sock"),
		"--http-address", "", "--healthz-bind-address", "", "--log-format", "text",
	}
	if w.store == "etcd" {
		w.wires[name] = newWire(w.T, w.EtcdAddress())
		arguments = append(arguments, "--etcd-endpoints", "http://"+w.wires[name].Addr().String())
	} else {
		w.wires[name] = newWire(w.T, w.APIAddress())
		arguments = append(arguments, "--kube-api-server", "https://"+w.wires[name].Addr().String())
	}
	if err := os.Mkdir(file("vpp"), 0o700); err != nil {
		// the two processes have the same binary, so their logs need two directories
		w.Fatal(err)
	}
	n.vpp = controlplane.Spawn(w.T, file("vpp"), troupe, "simulator", "--api-socket", file("api.sock"), "--stats-socket", file("stats.sock"),
		"--topology", file("topology.yaml"))
	n.start = func() { n.agent = controlplane.Spawn(w.T, dir, troupe, arguments...) }
	n.start()
	n.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", file("control.sock"))
	}}
	w.nodes[name] = n
	return n
}

// seen is what an agent knows of the nodes.
type seen struct {
	Claim, Reason string
	Connected     bool
	Items         []struct {
		Name         string
		ID           uint32
		VPPAddresses []string
	}
}

// of returns the ID and the addresses of a node.
func (s seen) of(name string) (id uint32, addresses []string) {
	for _, item := range s.Items {
		if item.Name == name {
			return item.ID, item.VPPAddresses
		}
	}
	return 0, nil
}

// knows waits until what a node knows satisfies a condition, which says what is missing.
func (n *node) knows(what string, missing func(seen) string) seen {
	n.Helper()
	var s seen
	controlplane.Eventually(n, what, func() string {
		if n.agent.Ended() {
			n.Fatal("the agent has ended")
		}
		s = seen{}
		if problem := n.get("/api/v1/nodes", &s); problem != "" {
			return problem
		}
		if problem := missing(s); problem != "" {
			return fmt.Sprintf("%s: %+v", problem, s)
		}
		return ""
	})
	return s
}

// agree waits until every agent knows the IDs 1, 2, ... of all its peers and their addresses, all
// the same, and returns them by name.
func (w *town) agree() map[string]uint32 {
	w.Helper()
	ids := map[string]uint32{}
	for self, n := range w.nodes {
		s := n.knows("nodes known to "+self, func(s seen) string {
			if s.Claim != "held" || !s.Connected {
				return "no ID of its own"
			}
			for name := range w.nodes {
				id, addresses := s.of(name)
				want := address(int(name[1]-'0')) + "/24"
				if id == 0 || !slices.Equal(addresses, []string{want}) {
					return name + " without an ID or address " + want
				}
			}
			return ""
		})
		for name := range w.nodes {
			id, _ := s.of(name)
			if ids[name] != 0 && ids[name] != id {
				w.Errorf("%s knows %s with ID %d, others with %d", self, name, id, ids[name])
			}
			ids[name] = id
		}
	}
	taken := map[uint32]string{}
	for name, id := range ids {
		if other := taken[id]; other != "" || int(id) > len(ids) {
			w.Errorf("%s has ID %d of %d nodes, and so has %q", name, id, len(ids), other)
		}
		taken[id] = name
	}
	return ids
}

// TestManyNodes is the life of five nodes, with either store.
func TestManyNodes(t *testing.T) {
	for _, store := range []string{"etcd", "kubernetes"} {
		t.Run(store, func(t *testing.T) {
			w := newTown(t, store)
			for i := 1; i <= 5; i++ {
				w.join(i)
			}
			ids := w.agree()
			for _, n := range w.nodes {
				n.ready()
				if said := n.agent.Output(); !strings.Contains(said, "node store chosen") || !strings.Contains(said, "store="+store) {
					t.Errorf("the agent does not say that it has chosen %s", store)
				}
			}
			w.nodePorts()
			w.recreated("n4", ids["n4"])
			w.collected("n5", ids["n5"])
			w.partitioned("n1", ids["n1"], ids["n5"])
		})
	}
}

// nodePorts creates a service of type NodePort: each VPP has it at its own address only.
func (w *town) nodePorts() {
	w.Helper()
	n := w.nodes["n1"]
	n.Namespace("shop")
	ip := n.service("shop", "web")
	n.pod("shop", "web", "a", "n1", "10.1.1.3")
	port := n.change("shop", "web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }).Spec.Ports[0].NodePort
	for name, n := range w.nodes {
		n.want("shop/web", row(ip, 80, "10.1.1.3:8080"), row(address(int(name[1]-'0')), port, "10.1.1.3:8080"))
	}
}

// recreated deletes a Node and creates it again under its name, while its agent runs: it keeps its
// ID.
func (w *town) recreated(name string, id uint32) {
	w.Helper()
	w.unregister(name)
	n := w.nodes[name]
	n.register(name, address(int(name[1]-'0')), "10.1.4.0/24")
	if w.store == "kubernetes" {
		// the lease follows the new Node, also if the garbage collector has taken the one of the
		// old Node
		made, err := w.Admin.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			w.Fatal(err)
		}
		controlplane.Eventually(w, "lease of the new node", func() string {
			lease, err := w.Admin.CoordinationV1().Leases(namespace).Get(w.Context(), name, metav1.GetOptions{})
			switch {
			case err != nil:
				return err.Error()
			case len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != made.UID:
				return fmt.Sprintf("owners %v, want the node with the UID %s", lease.OwnerReferences, made.UID)
			}
			return ""
		})
	}
	if now := w.agree()[name]; now != id {
		w.Errorf("%s had ID %d and has ID %d after it was created again", name, id, now)
	}
}

// collected lets a node leave for ever: the others release its ID.
func (w *town) collected(name string, id uint32) {
	w.Helper()
	gone := w.nodes[name]
	delete(w.nodes, name)
	gone.agent.Kill()
	w.unregister(name)
	for self, n := range w.nodes {
		n.knows(name+" gone, at "+self, func(s seen) string {
			if now, _ := s.of(name); now != 0 {
				return "it has an ID"
			}
			return ""
		})
	}
	if w.store != "kubernetes" {
		return
	}
	controlplane.Eventually(w, "leases of "+name+" gone", func() string {
		leases, err := w.Admin.CoordinationV1().Leases(namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, lease := range leases.Items {
			if lease.Name == name || lease.Name == fmt.Sprintf("troupe-id-%d", id) {
				return lease.Name + " is there"
			}
		}
		return ""
	})
}

// partitioned takes the store from one agent while another node joins, which gets the free ID.
func (w *town) partitioned(name string, id, free uint32) {
	w.Helper()
	n := w.nodes[name]
	w.wires[name].sever(true)
	n.knows("partition noticed", func(s seen) string {
		if now, _ := s.of(name); s.Connected || s.Claim != "held" || now != id {
			return "not noticed, or ID lost"
		}
		return ""
	})
	late := w.join(6)
	late.knows("an ID", func(s seen) string {
		if now, _ := s.of("n6"); s.Claim != "held" || now != free {
			return fmt.Sprintf("want ID %d", free)
		}
		return ""
	})
	if s := n.knows("its own view", func(seen) string { return "" }); s.Connected {
		w.Errorf("%s has heard from the store meanwhile", name)
	}
	w.wires[name].sever(false)
	if now := w.agree()[name]; now != id {
		w.Errorf("%s had ID %d and has ID %d after the partition", name, id, now)
	}
}

// unregister deletes a Node.
func (w *town) unregister(name string) {
	w.Helper()
	if err := w.Admin.CoreV1().Nodes().Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatalf("delete node %s: %v", name, err)
	}
}
