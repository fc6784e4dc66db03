package namespaces

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// Namespaces of the story of a Deployment: its pods, old and new ones, and a client pod.
const (
	drainPods   = 10
	drainClient = "td-client"
	drainVIP    = "10.96.0.10:80"
	drainOther  = "10.96.0.11:80"
)

func drainPod(i int) string     { return fmt.Sprintf("td-pod%d", i) }
func drainAddress(i int) string { return fmt.Sprintf("10.1.1.%d", 10+i) }

// condition is what an EndpointSlice says about a pod.
type condition string

const (
	isReady   condition = "{ready: true, serving: true, terminating: false}"
	notReady  condition = "{ready: false, serving: false, terminating: false}"
	leavesNow condition = "{ready: false, serving: true, terminating: true}"
	elsewhere condition = "hinted"
)

// drainStage is a node with real pods behind a real VPP.
type drainStage struct {
	*stage
	client io.Writer
	out    *bufio.Reader
	pods   map[int]condition
	other  map[int]condition // of the second service; nil = there is none
}

// newDrainStage starts everything, with these pods ready.
func newDrainStage(t *testing.T, first int) *drainStage {
	t.Helper()
	s := &drainStage{stage: bareStage(t), pods: map[int]condition{}}
	all := []string{drainClient}
	for i := range drainPods {
		all = append(all, drainPod(i))
	}
	for i, n := range all {
		s.namespace(n)
		s.run("ip", "-n", n, "addr", "add", fmt.Sprintf("10.2.%d.2/30", i), "dev", "e0")
		own := "10.1.1.200"
		if i > 0 {
			own = drainAddress(i - 1)
		}
		s.run("ip", "-n", n, "addr", "add", own+"/32", "dev", "e0")
		s.run("ip", "-n", n, "route", "add", "default", "via", fmt.Sprintf("10.2.%d.1", i), "src", own)
	}
	var commands []string
	for i, n := range all {
		own := "10.1.1.200"
		if i > 0 {
			own = drainAddress(i - 1)
		}
		commands = append(commands, "create host-interface name "+n, "set interface state host-"+n+" up",
			fmt.Sprintf("set interface ip address host-%s 10.2.%d.1/30", n, i), fmt.Sprintf("ip route add %s/32 via 10.2.%d.2 host-%s", own, i, n))
	}
	s.bareVPP(commands)
	for i := range drainPods {
		s.serve(drainPod(i))
	}
	for i := range first {
		s.pods[i] = isReady
	}
	s.publish()
	s.startAgent()
	return s
}

// bareStage is a stage without namespaces and VPP.
func bareStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, vppBinary: os.Getenv("TROUPE_VPP_BIN"), plugins: os.Getenv("TROUPE_VPP_PLUGINS")}
	s.needs()
	var err error
	if s.dir, err = os.MkdirTemp("", "troupe"); err != nil { // short: paths of sockets are limited
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if s.troupe, err = build.Agent(t.Context(), s.dir); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"objects", "vpp"} {
		if err := os.Mkdir(filepath.Join(s.dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// publish writes what Kubernetes says about the pods.
func (s *drainStage) publish() {
	s.Helper()
	text := `apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: here}}
spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 172.18.0.2}]}
`
	for i := range drainPods + 1 {
		address := "10.1.1.200"
		if i < drainPods {
			address = drainAddress(i)
		}
		text += fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: p%d, namespace: shop, uid: u%d}
spec: {nodeName: n1, containers: [{name: c, image: x}]}
status: {phase: Running, podIP: %s, podIPs: [{ip: %s}]}
`, i, i, address, address)
	}
	text += serviceOf("web", drainVIP, s.pods)
	if s.other != nil {
		text += serviceOf("other", drainOther, s.other)
	}
	s.apply(text)
}

// serviceOf is a service with its slice.
func serviceOf(name, vip string, pods map[int]condition) string {
	address, _, _ := strings.Cut(vip, ":")
	var endpoints []string
	for i := range drainPods {
		of, found := pods[i]
		hint := "here"
		if of == elsewhere {
			of, hint = isReady, "there"
		}
		if found {
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], nodeName: n1, conditions: %s, hints: {forZones: [{name: %s}]}}", drainAddress(i), of, hint))
		}
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec: {clusterIP: %[2]s, clusterIPs: [%[2]s], ipFamilies: [IPv4], ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: shop, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[3]s]
`, name, address, strings.Join(endpoints, ", "))
}

// holdMany opens connections, and keeps them open.
func (s *drainStage) holdMany(n int) {
	s.Helper()
	cmd := s.in(drainClient, "many", fmt.Sprintf("%s %d", drainVIP, n))
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s.client, s.out = in, bufio.NewReader(out)
	if got := s.line(); got != fmt.Sprintf("open %d", n) {
		s.Fatalf("the client says %q", got)
	}
}

func (s *drainStage) line() string {
	s.Helper()
	got, err := s.out.ReadString('\n')
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(got)
}

// cut sends a request on every open connection, and returns how many were cut. Connections to these
// pods, which do not exist any more, do not count.
func (s *drainStage) cut(gone ...int) string {
	s.Helper()
	words := []string{"use"}
	for _, i := range gone {
		words = append(words, drainPod(i))
	}
	fmt.Fprintln(s.client, strings.Join(words, " "))
	return s.line()
}

// fresh opens connections, and returns the pods that they reach, in their order.
func (s *drainStage) fresh(vip string, n int) string {
	s.Helper()
	fmt.Fprintf(s.client, "new %s %d\n", vip, n)
	return s.line()
}

// wants changes what Kubernetes says, waits until new connections reach exactly the ready pods, and
// expects that no connection was cut.
func (s *drainStage) wants(what string, gone ...int) {
	s.Helper()
	s.publish()
	var ready []string
	for i := range drainPods {
		if s.pods[i] == isReady {
			ready = append(ready, drainPod(i))
		}
	}
	want := strings.Join(ready, " ")
	controlplane.Eventually(s, what+": new connections reach "+want, func() string {
		if got := s.fresh(drainVIP, 60); got != want {
			return got
		}
		return ""
	})
	if got := s.cut(gone...); got != "cut 0" {
		s.Errorf("%s: %s", what, got)
	}
	s.Logf("%s: new connections reach %q, cut 0", what, want)
}

// TestDrainOnRealVPP: connections of Linux through a real VPP while the pods of a Deployment
// change.
func TestDrainOnRealVPP(t *testing.T) {
	s := newDrainStage(t, 5)
	controlplane.Eventually(s, "the service answers", func() string {
		if out, err := s.in(drainClient, "get", drainVIP).CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
	s.holdMany(200)
	s.wants("at the start")

	s.pods[1] = notReady
	s.wants("a probe fails")
	s.pods[1] = isReady
	s.wants("it is back")
	s.pods[2] = elsewhere
	s.wants("another hint")
	s.pods[2] = isReady
	s.wants("the hint is back")
	delete(s.pods, 3)
	s.wants("a label is taken off")
	controlplane.Eventually(s, "VPP was asked for the connections of the pod", func() string {
		text, _ := s.ask("/api/v1/services/shop/web")
		text = strings.ReplaceAll(text, " ", "")
		if !strings.Contains(text, `"address":"10.1.1.13:8080"`) || !strings.Contains(text, `"connections":`) {
			return text
		}
		return ""
	})
	if got := s.cut(); got != "cut 0" {
		t.Errorf("a label taken off: %s", got)
	}
	s.pods[3] = isReady
	s.wants("the label is back")

	s.other = map[int]condition{0: isReady, 1: isReady, 2: isReady}
	s.publish()
	controlplane.Eventually(s, "another service has the pods", func() string { return strings.TrimPrefix(s.fresh(drainOther, 60), "td-pod0 td-pod1 td-pod2") })
	delete(s.other, 1)
	s.wants("another service takes a pod away")
	s.other = nil
	s.wants("another service is deleted")
	controlplane.Eventually(s, "its row refuses", func() string { return strings.TrimPrefix(s.fresh(drainOther, 4), "refused") })

	var gone []int
	for i := range 5 { // a rolling update: one more, one less
		s.pods[5+i], s.pods[i] = isReady, leavesNow
		s.wants(fmt.Sprintf("update: pod %d terminates", i), gone...)
		if i == 2 {
			s.agent.Kill()
			if got := s.cut(gone...); got != "cut 0" {
				t.Errorf("the agent was killed: %s", got)
			}
			s.startAgent()
			if got := s.cut(gone...); got != "cut 0" {
				t.Errorf("the agent is back: %s", got)
			}
		}
		time.Sleep(2 * time.Second)
		gone = append(gone, i)
		s.kill(drainPod(i))
		delete(s.pods, i)
		s.wants(fmt.Sprintf("update: pod %d is gone", i), gone...)
	}
	s.holdMany(100)
	for i := 6; i < 10; i++ {
		s.pods[i] = leavesNow
	}
	s.wants("scaled down from 5 to 1")
	for i := 5; i < 10; i++ { // terminating ones would be used for want of others
		s.pods[i] = notReady
	}
	s.publish()
	controlplane.Eventually(s, "none is ready: refused", func() string { return strings.TrimPrefix(s.fresh(drainVIP, 4), "refused") })
	if got := s.cut(); got != "cut 0" {
		t.Errorf("none is ready: %s", got)
	}
}

// kill ends the server of a pod.
func (s *drainStage) kill(pod string) {
	s.Helper()
	if p := s.servers[pod]; p != nil {
		_ = p.Process.Kill()
		_ = p.Wait()
		delete(s.servers, pod)
	}
}

// serve starts the server of a pod.
func (s *stage) serve(pod string) {
	s.Helper()
	server := s.in(pod, "serve", pod)
	if err := server.Start(); err != nil {
		s.Fatal(err)
	}
	if s.servers == nil {
		s.servers = map[string]*exec.Cmd{}
	}
	s.servers[pod] = server
	s.Cleanup(func() {
		if s.servers[pod] == server {
			_ = server.Process.Kill()
			_ = server.Wait()
		}
	})
}
