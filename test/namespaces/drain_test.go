package namespaces

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// Addresses of the two services.
const (
	drainVIP   = "10.96.0.10:80"
	drainOther = "10.96.0.11:80"
)

// grace is how long a pod terminates, and apart the time between two pods of a rolling update.
const (
	grace = 30 * time.Second
	apart = grace / 3
)

// condition is what an EndpointSlice says about a pod.
type condition string

const (
	isReady   condition = "{ready: true, serving: true, terminating: false}"
	notReady  condition = "{ready: false, serving: false, terminating: false}"
	leavesNow condition = "{ready: false, serving: true, terminating: true}"
	elsewhere condition = "hinted"
)

// drainStage is the story of a Deployment on two nodes, one with Troupe and a real VPP and one with
// kube-proxy.
type drainStage struct {
	*stage
	lanes []*lane
	pods  map[int]condition
	other map[int]condition // of the second service; nil = there is none
	gone  []int             // pods that do not exist any more
	table []string
}

// newDrainStage starts everything, with these pods ready.
func newDrainStage(t *testing.T, first int) *drainStage {
	t.Helper()
	s := &drainStage{stage: bareStage(t), pods: map[int]condition{}}
	s.lanes = []*lane{troupeLane(s.stage)}
	if l := proxyLane(s.stage); l != nil {
		s.lanes = append(s.lanes, l)
	}
	for i := range first {
		s.pods[i] = isReady
	}
	for i := range drainPods {
		s.begin(i)
	}
	s.publish()
	for _, l := range s.lanes {
		l.again()
	}
	for _, l := range s.lanes {
		controlplane.Eventually(s, l.name+": the service answers", func() string {
			if out, err := s.in(l.prefix+"client", "get", drainVIP).CombinedOutput(); err != nil {
				return string(out)
			}
			return ""
		})
	}
	return s
}

// begin starts a pod.
func (s *drainStage) begin(i int) {
	s.Helper()
	for _, l := range s.lanes {
		s.serve(l.prefix+drainPod(i), drainPod(i))
	}
}

// end ends pods.
func (s *drainStage) end(pods ...int) {
	s.Helper()
	for _, i := range pods {
		for _, l := range s.lanes {
			s.kill(l.prefix + drainPod(i))
		}
		delete(s.pods, i)
	}
	s.gone = append(s.gone, pods...)
}

// bareStage is a stage without namespaces and VPP.
func bareStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, vppBinary: os.Getenv("TROUPE_VPP_BIN"), plugins: os.Getenv("TROUPE_VPP_PLUGINS")}
	s.needs()
	s.directories()
	var err error
	if s.troupe, err = build.Agent(t.Context(), s.dir); err != nil {
		t.Fatal(err)
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
	_, addresses := s.lanes[0].hosts()
	for i, address := range addresses {
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
	for _, l := range s.lanes {
		l.publish(text)
	}
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

// hold opens connections on every node.
func (s *drainStage) hold(n int) {
	s.Helper()
	for _, l := range s.lanes {
		l.holdMany(n)
	}
	s.gone = nil
}

// ready are the names of the pods that are ready.
func (s *drainStage) ready() string {
	var names []string
	for i := range drainPods {
		if s.pods[i] == isReady {
			names = append(names, drainPod(i))
		}
	}
	if len(names) == 0 {
		return refused
	}
	return strings.Join(names, " ")
}

// wants changes what Kubernetes says, waits until new connections reach exactly the ready pods, and
// expects that no connection was cut.
func (s *drainStage) wants(what string) {
	s.Helper()
	s.publish()
	for i, l := range s.lanes {
		if i == 0 || s.ready() != refused { // Linux limits the rate of its refusals
			l.reach(what, drainVIP, s.ready())
		}
	}
	s.held(what)
}

// held expects that Troupe has cut no connection, and kube-proxy not fewer.
func (s *drainStage) held(what string) {
	s.Helper()
	line := what
	for i, l := range s.lanes {
		n := l.cut(s.gone)
		if line += fmt.Sprintf(" | %d", n); i == 0 && n > 0 {
			s.Errorf("%s: %s has cut %d connections", what, l.name, n)
		}
	}
	s.table = append(s.table, line)
}

// for a time something holds.
func (s *drainStage) during(what string, d time.Duration) {
	s.Helper()
	s.wants(what)
	time.Sleep(d)
	s.held(fmt.Sprint(what, ", after ", d))
}

// TestDrainOnRealVPP: connections of Linux through a real VPP while the pods of a Deployment
// change, and beside it through kube-proxy.
func TestDrainOnRealVPP(t *testing.T) {
	s := newDrainStage(t, 5)
	s.Cleanup(func() {
		s.Logf("connections cut, of 200 held\n| Troupe | kube-proxy\n%s", strings.Join(s.table, "\n"))
	})
	s.hold(200)
	s.wants("at the start")
	s.pods[1] = notReady
	s.during("a probe fails", 10*time.Second)
	s.pods[1] = isReady
	s.wants("it is back")
	s.pods[2] = elsewhere
	s.wants("another hint")
	s.pods[2] = isReady
	s.wants("the hint is back")
	delete(s.pods, 3)
	s.during("a label is taken off", 5*time.Second)
	controlplane.Eventually(s, "VPP was asked for the connections of the pod", func() string {
		text, _ := s.ask("/api/v1/services/shop/web")
		text = strings.ReplaceAll(text, " ", "")
		if !strings.Contains(text, `"address":"10.1.1.13:8080"`) || !strings.Contains(text, `"connections":`) {
			return text
		}
		return ""
	})
	s.held("VPP was asked for its connections")
	s.pods[3] = isReady
	s.wants("the label is back")
	s.shares()
	s.rolls()
	s.shrinks()
}

// shares has another service use the pods, and go.
func (s *drainStage) shares() {
	s.Helper()
	s.other = map[int]condition{0: isReady, 1: isReady, 2: isReady}
	s.publish()
	for _, l := range s.lanes {
		l.reach("another service has the pods", drainOther, "pod0 pod1 pod2")
	}
	delete(s.other, 1)
	s.wants("another service takes a pod away")
	s.other = nil
	s.wants("another service is deleted")
	s.lanes[0].reach("the row of the other service", drainOther, refused)
}

// rolls is a rolling update of five pods: one more, which becomes ready, then one terminates,
// serves for a while, and is gone.
func (s *drainStage) rolls() {
	s.Helper()
	const pods, terminating = drainPods / 2, int(grace / apart)
	for i := range pods + terminating {
		if i < pods {
			s.pods[pods+i] = notReady
			s.wants(fmt.Sprintf("update: pod %d begins", pods+i))
			s.pods[pods+i], s.pods[i] = isReady, leavesNow
			s.wants(fmt.Sprintf("update: pod %d terminates", i))
		}
		switch i {
		case 1:
			s.run(s.troupe, "chaos", "kill", "nat44", "--control-socket", filepath.Join(s.dir, "control.sock"))
			s.wants("update: the renderer was killed")
		case 2:
			for _, l := range s.lanes {
				l.again()
			}
			s.wants("update: the agent was killed, and kube-proxy")
		}
		if i >= terminating {
			s.end(i - terminating)
			s.wants(fmt.Sprintf("update: pod %d is gone", i-terminating))
		}
		time.Sleep(apart)
	}
	s.held("update: the end")
}

// shrinks scales down, from ten pods to two and to none that is ready.
func (s *drainStage) shrinks() {
	s.Helper()
	for i := range drainPods {
		if s.pods[i] == "" {
			s.begin(i)
		}
		s.pods[i] = isReady
	}
	s.publish()
	for _, l := range s.lanes {
		l.reach("ten pods", drainVIP, s.ready())
	}
	s.hold(200)
	var less []int
	for i := 2; i < drainPods; i++ {
		s.pods[i] = leavesNow
		less = append(less, i)
	}
	s.during("scaled down from 10 to 2", grace)
	s.end(less...)
	s.wants("eight pods are gone")
	for i := range 2 { // terminating ones would be used for want of others
		s.pods[i] = notReady
	}
	s.wants("none is ready")
}
