package connector_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestPackets goes all the way: from a real Consul over the connector, the API server and an agent
// to packets in a simulated VPP.
func TestPackets(t *testing.T) {
	c := startConsul(t, "", "")
	c.register("db 5432 192.0.2.9", "cache 6379 192.0.2.20", "queue 5672 192.0.2.30")
	o := stage(t)
	v := o.agent()
	connect(o, filepath.Join(o.dir, "connector"), serviceCIDR([]string{
		"connector", "--source", "consul=" + c.front.URL, "--sync-namespace", namespace, "--kubeconfig", o.Kubeconfig("connector", "token: "+o.token),
	})...)
	v.arrives("db", "192.0.2.9:5432")

	begun := time.Now()
	c.register("web 80 192.0.2.1")
	v.arrives("web", "192.0.2.1:80")
	t.Logf("a service was reachable %s after it was registered", time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	c.register("web 80 192.0.2.2")
	v.arrives("web", "192.0.2.1:80", "192.0.2.2:80")
	t.Logf("an instance was reachable %s after it was registered", time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	c.put("agent/check/fail/192.0.2.1", nil)
	v.arrives("web", "192.0.2.2:80")
	t.Logf("an instance was gone %s after it had turned critical", time.Since(begun).Round(time.Millisecond))

	before := o.writes()
	c.agent.Kill()
	time.Sleep(3 * time.Second)
	v.arrives("web", "192.0.2.2:80")
	c.start() // empty
	time.Sleep(8 * time.Second)
	for name, at := range map[string]string{"web": "192.0.2.2:80", "db": "192.0.2.9:5432", "cache": "192.0.2.20:6379", "queue": "192.0.2.30:5672"} {
		v.arrives(name, at)
	}
	if n := o.writes() - before; n != 0 {
		t.Errorf("%d writes although Consul was only killed and emptied", n)
	}
}

// TestA26ManyInstances: a service without instances is refused, with one, two and 300 it is served,
// and with one again.
func TestA26ManyInstances(t *testing.T) {
	o := stage(t)
	v := o.agent()
	o.catalog("web 80")
	o.connect("a")
	controlplane.Eventually(t, "refusal", func() string {
		if _, problem := v.connect("web"); !strings.Contains(problem, "rejected") {
			return "connected, or else: " + problem
		}
		return ""
	})
	for _, n := range []int{1, 2, 300, 1} {
		line, listed := "web 80", map[string]bool{}
		for i := range n {
			address := fmt.Sprintf("198.18.%d.%d", i/100, 1+i%100)
			line += " " + address
			listed[address+":80"] = true
		}
		o.catalog(line)
		controlplane.Eventually(t, fmt.Sprint(n, " instances"), func() string {
			seen, problem := v.connect("web")
			for _, at := range seen {
				if !listed[at] {
					return at + " is no instance"
				}
			}
			if problem == "" && len(seen) < min(n, 20) {
				problem = fmt.Sprintf("40 connections arrive at %d of %d instances", len(seen), n)
			}
			return problem
		})
	}
}

// view is a node with an agent and a simulated VPP, as a pod on it sees it.
type view struct {
	*town
	probes net.Conn
	lines  *bufio.Reader
	port   int
}

// agent starts a simulated VPP and an agent.
func (o *town) agent() *view {
	o.Helper()
	dir := filepath.Join(o.dir, "node")
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{dir, file("vpp")} {
		// the two processes have the same binary, so their logs need two directories
		if err := os.Mkdir(d, 0o700); err != nil {
			o.Fatal(err)
		}
	}
	o.write(file("topology.yaml"), `interfaces: [{name: uplink0, addresses: [192.168.16.1/24], gateway: 192.168.16.254}]
pods: [{name: tap-client, address: 10.1.1.2}]
`)
	node, err := o.Admin.CoreV1().Nodes().Create(o.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{PodCIDR: "10.1.1.0/24", PodCIDRs: []string{"10.1.1.0/24"}},
	}, metav1.CreateOptions{})
	if err == nil {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.16.1"}}
		_, err = o.Admin.CoreV1().Nodes().UpdateStatus(o.Context(), node, metav1.UpdateOptions{})
	}
	var client *corev1.Pod
	if err == nil {
		client, err = o.Admin.CoreV1().Pods(namespace).Create(o.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "client"},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		}, metav1.CreateOptions{})
	}
	if err == nil {
		client.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.1.2", PodIPs: []corev1.PodIP{{IP: "10.1.1.2"}}}
		_, err = o.Admin.CoreV1().Pods(namespace).UpdateStatus(o.Context(), client, metav1.UpdateOptions{})
	}
	if err != nil {
		o.Fatal(err)
	}
	const system = "troupe-system"
	o.Grant(system, filepath.Join(build.Root(), "deploy", "kubernetes", "base", "rbac.yaml"))
	controlplane.Spawn(o, file("vpp"), troupe, "simulator", "--api-socket", file("api.sock"), "--stats-socket", file("stats.sock"),
		"--probe-socket", file("probe.sock"), "--topology", file("topology.yaml"))
	controlplane.Spawn(o, dir, troupe, "agent", "--node-name", "n1", "--kubeconfig", o.Kubeconfig("agent", "token: "+o.Token(system, "troupe-agent", "first")),
		"--vpp-api-socket", file("api.sock"), "--vpp-stats-socket", file("stats.sock"), "--cluster-cidr", "10.1.0.0/16", "--data-dir", file("data"),
		"--control-socket", file("control.sock"), "--http-address", "127.0.0.1:0", "--healthz-bind-address", "")
	v := &view{town: o, port: 20000}
	controlplane.Eventually(o, "simulated VPP", func() string {
		if v.probes, err = net.Dial("unix", file("probe.sock")); err != nil {
			return err.Error()
		}
		return ""
	})
	o.Cleanup(func() { _ = v.probes.Close() })
	v.lines = bufio.NewReader(v.probes)
	return v
}

// arrives waits until connections of the pod to a service of the namespace arrive at exactly these
// endpoints.
func (v *view) arrives(service string, want ...string) {
	v.Helper()
	controlplane.Eventually(v, service, func() string {
		seen, problem := v.connect(service)
		if problem == "" && !slices.Equal(seen, want) {
			problem = fmt.Sprintf("arrives at %q, want %q", seen, want)
		}
		return problem
	})
}

// connect makes 40 connections of the pod to a service, and returns the endpoints at which they
// arrive, ordered.
func (v *view) connect(service string) (seen []string, problem string) {
	v.Helper()
	s, err := v.Admin.CoreV1().Services(namespace).Get(v.Context(), service, metav1.GetOptions{})
	if err != nil {
		return nil, err.Error()
	}
	at := fmt.Sprintf("%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)
	for range 40 {
		v.port++
		if _, err := fmt.Fprintf(v.probes, "tap-client 10.1.1.2:%d %s\n", v.port, at); err != nil {
			v.Fatal(err)
		}
		answer, err := v.lines.ReadString('\n')
		if err != nil {
			v.Fatal(err)
		}
		_, arrived, ok := strings.Cut(strings.TrimSpace(answer), " -> ")
		if !ok {
			return nil, at + ": " + answer
		}
		seen = append(seen, arrived)
	}
	slices.Sort(seen)
	return slices.Compact(seen), ""
}
