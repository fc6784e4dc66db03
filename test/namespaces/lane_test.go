package namespaces

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// lane is a node with pods and a client in namespaces of its own. All lanes have the same pods and
// see the same objects, so that what becomes of connections can be compared.
type lane struct {
	*stage
	name, prefix string
	publish      func(objects string)
	again        func() // kills and starts what programs the node
	holds        int    // how often connections were opened to be held
	client       io.Writer
	out          *bufio.Reader
}

// drainPods is how many pods there are.
const drainPods = 10

func drainPod(i int) string     { return fmt.Sprintf("pod%d", i) }
func drainAddress(i int) string { return fmt.Sprintf("10.1.1.%d", 10+i) }

// refused is what new connections say where no pod is ready.
const refused = "refused"

// clientAddress is that of the client pod.
const clientAddress = "10.1.1.200"

// hosts are the namespaces of a lane, each with its address: the client first.
func (l *lane) hosts() (names, addresses []string) {
	names, addresses = []string{l.prefix + "client"}, []string{clientAddress}
	for i := range drainPods {
		names, addresses = append(names, l.prefix+drainPod(i)), append(addresses, drainAddress(i))
	}
	return names, addresses
}

// connect makes the namespaces of a lane.
func (l *lane) connect() {
	l.Helper()
	names, addresses := l.hosts()
	for i, n := range names {
		l.namespace(n)
		l.run("ip", "-n", n, "addr", "add", fmt.Sprintf("10.2.%d.2/30", i), "dev", "e0")
		l.run("ip", "-n", n, "addr", "add", addresses[i]+"/32", "dev", "e0")
		l.run("ip", "-n", n, "route", "add", "default", "via", fmt.Sprintf("10.2.%d.1", i), "src", addresses[i])
	}
}

// troupeLane is a node with VPP. Its agent starts when the first objects are there.
func troupeLane(s *stage) *lane {
	s.Helper()
	l := &lane{stage: s, name: "Troupe", prefix: "td-", publish: s.apply}
	l.again = func() {
		if s.agent != nil {
			s.agent.Kill()
		}
		s.startAgent()
	}
	l.connect()
	// the uplink, behind which nothing is
	commands := []string{
		"create loopback interface instance 0", "set interface state loop0 up", "set interface ip address loop0 192.0.2.1/24",
		"ip route add 0.0.0.0/0 via 192.0.2.254 loop0",
	}
	names, addresses := l.hosts()
	for i, n := range names {
		commands = append(commands, "create host-interface name "+n, "set interface state host-"+n+" up",
			fmt.Sprintf("set interface ip address host-%s 10.2.%d.1/30", n, i), fmt.Sprintf("ip route add %s/32 via 10.2.%d.2 host-%s", addresses[i], i, n))
	}
	s.bareVPP(commands)
	return l
}

// proxyConfig is that of kube-proxy: it changes no setting of the machine.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: n1
clusterCIDR: 10.1.0.0/16
detectLocalMode: ClusterCIDR
nodePortAddresses: [primary]
healthzBindAddress: ""
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
clientConnection: {kubeconfig: %s, qps: -1}
`

// proxyLane is a node of Linux with kube-proxy in the mode nftables; nil where it cannot be.
func proxyLane(s *stage) *lane {
	s.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		s.Log("no comparison with kube-proxy: it needs the program nft")
		return nil
	}
	plane, err := build.ControlPlane(s.Context(), s.Logf)
	if err != nil {
		s.Fatal(err)
	}
	proxy, err := build.KubeProxy(s.Context(), s.Logf)
	if err != nil {
		s.Fatal(err)
	}
	api := controlplane.Start(s, plane)
	l := &lane{stage: s, name: "kube-proxy", prefix: "tk-"}
	l.connect()
	const node = "tk-node"
	l.namespace(node)
	names, addresses := l.hosts()
	for i, n := range names {
		l.run("ip", "link", "set", n, "netns", node)
		l.run("ip", "-n", node, "addr", "add", fmt.Sprintf("10.2.%d.1/30", i), "dev", n)
		l.run("ip", "-n", node, "link", "set", n, "up")
		l.run("ip", "-n", node, "route", "add", addresses[i]+"/32", "via", fmt.Sprintf("10.2.%d.2", i), "dev", n)
	}
	l.run("ip", "netns", "exec", node, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	l.lead(node, api.Address())
	config := filepath.Join(s.dir, "proxy.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, proxyConfig, api.Kubeconfig("proxy", controlplane.Credentials)), 0o600); err != nil {
		s.Fatal(err)
	}
	var program *controlplane.Process
	l.again = func() {
		if program != nil {
			program.Kill()
		}
		program = controlplane.SpawnAs(s, filepath.Join(s.dir, "kube-proxy"), exec.Command("ip", "netns", "exec", node, filepath.Join(proxy, "kube-proxy"), "--config", config))
	}
	client, err := dynamic.NewForConfig(api.AdminConfig())
	if err != nil {
		s.Fatal(err)
	}
	l.publish = (&publisher{s, client, nil}).publish
	l.publish("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	return l
}

// lead makes an address on loopback known in a namespace.
func (l *lane) lead(namespace, address string) {
	l.Helper()
	socket := filepath.Join(l.dir, "lead.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = listener.Close() })
	go relay(listener, "tcp", address)
	controlplane.SpawnAs(l.stage, filepath.Join(l.dir, "lead"), l.in(namespace, "lead", address+" "+socket))
}

// publisher writes objects to an API server.
type publisher struct {
	testing.TB
	client dynamic.Interface
	there  []*unstructured.Unstructured
}

// publish makes the objects those that are there.
func (p *publisher) publish(objects string) {
	p.Helper()
	var now []*unstructured.Unstructured
	for _, text := range strings.Split(objects, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			p.Fatal(err)
		}
		if o.GetKind() == "Pod" {
			continue // kube-proxy reads none
		}
		now = append(now, o)
		if _, err := p.resource(o).Apply(p.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			p.Fatal(err)
		}
	}
	for _, o := range p.there {
		same := func(n *unstructured.Unstructured) bool {
			return n.GetKind() == o.GetKind() && n.GetName() == o.GetName()
		}
		if o.GetKind() != "Namespace" && !slices.ContainsFunc(now, same) {
			if err := p.resource(o).Delete(p.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				p.Fatal(err)
			}
		}
	}
	p.there = now
}

// resource is where an object is.
func (p *publisher) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	kind := schema.GroupVersionResource{Group: o.GroupVersionKind().Group, Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s"}
	if o.GetNamespace() == "" {
		return p.client.Resource(kind)
	}
	return p.client.Resource(kind).Namespace(o.GetNamespace())
}

// holdMany opens connections, and keeps them open.
func (l *lane) holdMany(n int) {
	l.Helper()
	l.holds++
	l.client, l.out = l.converse(l.in(l.prefix+"client", "many", fmt.Sprintf("%s %d %d", drainVIP, n, l.holds*20_000)))
	if got := l.line(); got != fmt.Sprintf("open %d", n) {
		l.Fatalf("%s: the client says %q", l.name, got)
	}
}

func (l *lane) line() string {
	l.Helper()
	got, err := l.out.ReadString('\n')
	if err != nil {
		l.Fatal(err)
	}
	return strings.TrimSpace(got)
}

// cut sends a request on every open connection, and returns how many were cut. Connections to these
// pods, which do not exist any more, do not count.
func (l *lane) cut(gone []int) (n int) {
	l.Helper()
	words := []string{"use"}
	for _, i := range gone {
		words = append(words, drainPod(i))
	}
	fmt.Fprintln(l.client, strings.Join(words, " "))
	if got := l.line(); got != "cut 0" {
		if _, err := fmt.Sscanf(got, "cut %d", &n); err != nil {
			l.Fatalf("%s: the client says %q", l.name, got)
		}
	}
	return n
}

// fresh opens connections, and returns the pods that they reach, in their order.
func (l *lane) fresh(vip string, n int) string {
	l.Helper()
	fmt.Fprintf(l.client, "new %s %d\n", vip, n)
	return l.line()
}

// reach waits until new connections reach exactly these pods, or are refused.
func (l *lane) reach(what, vip, want string) {
	l.Helper()
	controlplane.Eventually(l, l.name+": "+what+": new connections reach "+want, func() string {
		if got := l.fresh(vip, 60); got != want {
			return got
		}
		return ""
	})
}

// serve starts the server of a pod.
func (s *stage) serve(namespace, pod string) {
	s.Helper()
	server := s.in(namespace, "serve", pod)
	if err := server.Start(); err != nil {
		s.Fatal(err)
	}
	if s.servers == nil {
		s.servers = map[string]*exec.Cmd{}
	}
	s.servers[namespace] = server
	s.Cleanup(func() {
		if s.servers[namespace] == server {
			_ = server.Process.Kill()
			_ = server.Wait()
		}
	})
}

// kill ends the server of a pod.
func (s *stage) kill(namespace string) {
	s.Helper()
	if p := s.servers[namespace]; p != nil {
		_ = p.Process.Kill()
		_ = p.Wait()
		delete(s.servers, namespace)
	}
}
