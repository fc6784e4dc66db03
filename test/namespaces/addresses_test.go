package namespaces

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// announceNodes is how many nodes there are, announced how many services have an address of each
// family.
const (
	announceNodes = 3
	announced     = 10
)

// announcement is nodes on one link, each with a VPP, an agent and a pod, and a client outside.
type announcement struct {
	*stage
	nodes  []*stage
	client struct {
		in  io.Writer
		out *bufio.Reader
	}
	local int  // the node with the only endpoint of the service with the Local policy
	cut   bool // whether the objects say that the first node is cordoned
}

// newAnnouncement starts everything but the agents.
func newAnnouncement(t *testing.T) *announcement {
	t.Helper()
	a := &announcement{stage: bareStage(t), local: 1}
	link := func(ns, dev, port string) {
		t.Helper()
		a.run("ip", "link", "add", "name", dev, "netns", ns, "type", "veth", "peer", "name", port, "netns", "ta-fab")
		a.run("ip", "-n", ns, "link", "set", dev, "up")
		a.run("ip", "-n", "ta-fab", "link", "set", "dev", port, "up", "master", "fabric")
	}
	place := func(ns string) {
		t.Helper()
		_ = exec.Command("ip", "netns", "del", ns).Run() // of an earlier run that was killed
		a.run("ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		a.run("ip", "-n", ns, "link", "set", "lo", "up")
	}
	place("ta-fab")
	a.run("ip", "-n", "ta-fab", "link", "add", "name", "fabric", "type", "bridge")
	a.run("ip", "-n", "ta-fab", "link", "set", "fabric", "up")
	place("ta-out")
	link("ta-out", "e0", "out")
	a.run("ip", "-n", "ta-out", "addr", "add", "192.168.50.9/24", "dev", "e0")
	a.run("ip", "-n", "ta-out", "addr", "add", "fd00:50::9/64", "dev", "e0", "nodad")
	place("ta-srv") // the node n4, which has no VPP
	link("ta-srv", "e0", "srv")
	for i := range announced { // CNAT confuses connections from one port of a client to one endpoint
		a.run("ip", "-n", "ta-srv", "addr", "add", fmt.Sprintf("192.168.50.%d/24", 20+i), "dev", "e0")
		a.run("ip", "-n", "ta-srv", "addr", "add", fmt.Sprintf("fd00:50::%x/64", 20+i), "dev", "e0", "nodad")
	}
	a.serve("ta-srv", "srv")
	for i := 1; i <= announceNodes; i++ {
		node, pod := fmt.Sprint("ta-n", i), fmt.Sprint("ta-p", i)
		place(node)
		place(pod)
		link(node, "lan", fmt.Sprint("n", i))
		a.run("ip", "link", "add", "name", "pod", "netns", node, "type", "veth", "peer", "name", "e0", "netns", pod)
		a.run("ip", "-n", node, "link", "set", "pod", "up")
		a.run("ip", "-n", pod, "link", "set", "e0", "up")
		a.run("ip", "-n", pod, "addr", "add", fmt.Sprintf("10.1.%d.2/24", i), "dev", "e0")
		a.run("ip", "-n", pod, "route", "add", "default", "via", fmt.Sprintf("10.1.%d.1", i))
		a.run("ip", "-n", pod, "addr", "add", fmt.Sprintf("fd00:1:%d::2/64", i), "dev", "e0", "nodad")
		a.run("ip", "-n", pod, "route", "add", "default", "via", fmt.Sprintf("fd00:1:%d::1", i))
		a.run("ip", "-n", "ta-srv", "route", "add", fmt.Sprintf("10.1.%d.0/24", i), "via", fmt.Sprint("192.168.50.", i))
		a.run("ip", "-n", "ta-srv", "route", "add", fmt.Sprintf("fd00:1:%d::/64", i), "via", fmt.Sprint("fd00:50::", i))
		s := *a.stage
		s.netns, s.plugin, s.config, s.agent = node, "vrrp_plugin.so", "session { enable }", nil
		s.directories()
		a.nodes = append(a.nodes, &s)
		a.startNode(i)
		a.serve(pod, fmt.Sprint("pod", i))
	}
	a.publish()
	return a
}

// startNode starts the VPP of a node.
func (a *announcement) startNode(i int) {
	a.Helper()
	commands := []string{
		"create host-interface name lan", "set interface state host-lan up", "create host-interface name pod", "set interface state host-pod up",
		fmt.Sprintf("set interface ip address host-lan 192.168.50.%d/24", i), fmt.Sprintf("set interface ip address host-lan fd00:50::%d/64", i),
		fmt.Sprintf("set interface ip address host-pod 10.1.%d.1/24", i), fmt.Sprintf("set interface ip address host-pod fd00:1:%d::1/64", i),
		"ip route add 0.0.0.0/0 via 192.168.50.9 host-lan", "ip route add ::/0 via fd00:50::9 host-lan",
	}
	for j := 1; j <= announceNodes; j++ {
		if j != i {
			commands = append(commands, fmt.Sprintf("ip route add 10.1.%d.0/24 via 192.168.50.%d host-lan", j, j), fmt.Sprintf("ip route add fd00:1:%d::/64 via fd00:50::%d host-lan", j, j))
		}
	}
	a.nodes[i-1].bareVPP(commands)
}

// startAgents starts the agents with a configuration, and waits until they are ready.
func (a *announcement) startAgents(interval time.Duration) {
	a.Helper()
	for i, n := range a.nodes {
		file := filepath.Join(n.dir, "agent.yaml")
		text := fmt.Sprintf("apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\naddresses: {enabled: true, interval: %s}\n", interval)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			a.Fatal(err)
		}
		a.startNodeAgent(i + 1)
	}
}

func (a *announcement) startNodeAgent(i int) {
	a.Helper()
	n := a.nodes[i-1]
	n.spawnAgent("--config", filepath.Join(n.dir, "agent.yaml"), "--node-name", fmt.Sprint("n", i))
	n.ready(true)
}

// publish writes the objects for each node.
func (a *announcement) publish() {
	a.Helper()
	text := &strings.Builder{}
	fmt.Fprintf(text, "apiVersion: troupe.dev/v1alpha1\nkind: AddressPool\nmetadata: {name: edge}\nspec: {addresses: [192.168.50.96/27, 'fd00:50::60/123'], virtualRouters: 1-64}\n")
	for i := 1; i <= announceNodes; i++ {
		fmt.Fprintf(text, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%[1]d, uid: u%[1]d}\nspec: {podCIDR: 10.1.%[1]d.0/24, podCIDRs: [10.1.%[1]d.0/24, 'fd00:1:%[1]d::/64'], unschedulable: %[2]t}\n"+
			"status: {addresses: [{type: InternalIP, address: 192.168.50.%[1]d}, {type: InternalIP, address: 'fd00:50::%[1]d'}]}\n", i, a.cut && i == 1)
	}
	for i := range announced + 1 {
		policy, node, endpoint := "Cluster", 4, map[string]string{"IPv4": fmt.Sprint("192.168.50.", 20+i), "IPv6": fmt.Sprintf("fd00:50::%x", 20+i)}
		if i == announced {
			policy, node, endpoint = "Local", a.local, map[string]string{"IPv4": fmt.Sprintf("10.1.%d.2", a.local), "IPv6": fmt.Sprintf("fd00:1:%d::2", a.local)}
		}
		fmt.Fprintf(text, `---
apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: shop, uid: s%[1]d}
spec:
  type: LoadBalancer
  loadBalancerClass: troupe.dev/vpp
  clusterIPs: [10.96.0.%[2]d, 'fd00:96::%[2]d']
  clusterIP: 10.96.0.%[2]d
  ipFamilies: [IPv4, IPv6]
  ipFamilyPolicy: RequireDualStack
  externalTrafficPolicy: %[3]s
  ports: [{name: http, port: 80, targetPort: 8080}]
status: {loadBalancer: {ingress: [{ip: 192.168.50.%[2]d, ipMode: VIP}, {ip: 'fd00:50::%[4]x', ipMode: VIP}]}}
`, i, 100+i, policy, 100+i)
		for family, address := range endpoint {
			fmt.Fprintf(text, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d-%[5]s, namespace: shop, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: %[2]s
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: ['%[3]s'], nodeName: n%[4]d, conditions: {ready: true, serving: true}}]
`, i, family, address, node, strings.ToLower(family))
		}
	}
	for _, n := range a.nodes {
		n.apply(text.String())
	}
}

// watchAddresses starts the client, and waits until it reaches each address.
func (a *announcement) watchAddresses() {
	a.Helper()
	var all []string
	for i := range announced + 1 {
		all = append(all, fmt.Sprintf("192.168.50.%d:80", 100+i), fmt.Sprintf("[fd00:50::%x]:80", 100+i))
	}
	a.client.in, a.client.out = a.converse(a.in("ta-out", "watch", strings.Join(all, " ")))
	controlplane.Eventually(a, "each address answers", func() string {
		if said := a.since(); !strings.HasPrefix(said, "lost 0 ") {
			return said
		}
		return ""
	})
}

// since is what the client has seen since the last call.
func (a *announcement) since() string {
	a.Helper()
	if _, err := fmt.Fprintln(a.client.in, "since"); err != nil {
		a.Fatal(err)
	}
	said, err := a.client.out.ReadString('\n')
	if err != nil {
		a.Fatal(err)
	}
	return strings.TrimSpace(said)
}

// during does something, and prints what the client has seen meanwhile.
func (a *announcement) during(what string, d time.Duration, do func()) string {
	a.Helper()
	a.since()
	do()
	time.Sleep(d)
	said := a.since()
	a.Logf("%-40s %s", what, said)
	return said
}

// owners are how many virtual routers each node owns.
func (a *announcement) owners() (all [announceNodes]int) {
	for i, n := range a.nodes {
		if said, err := n.ctl("show vrrp vr"); err == nil { // else its VPP is dead
			all[i] = strings.Count(said, "state Master")
		}
	}
	return all
}

// owned waits until each virtual router has one owner, for longer than an election takes, and the
// node owns some, or none.
func (a *announcement) owned(what string, node int, some bool) {
	a.Helper()
	controlplane.Eventually(a, what, func() string {
		all := a.owners()
		if time.Sleep(3 * time.Second); a.owners() != all {
			return fmt.Sprint("an election goes on, owners ", all)
		}
		if sum := all[0] + all[1] + all[2]; sum != 2*(announced+1) || all[node-1] > 0 != some {
			return fmt.Sprint("owners ", all)
		}
		return ""
	})
}

// TestAddressesOnRealVPPs: three nodes, ten services of both families, a client that connects to
// each address every 20 ms; what happens => who owns the virtual routers. How long addresses did
// not answer is printed; TROUPE_ADDRESSES_INTERVAL is the interval between advertisements.
func TestAddressesOnRealVPPs(t *testing.T) {
	a := newAnnouncement(t)
	interval, err := time.ParseDuration(cmp.Or(os.Getenv("TROUPE_ADDRESSES_INTERVAL"), "500ms"))
	if err != nil {
		t.Fatal(err)
	}
	a.startAgents(interval)
	a.watchAddresses()
	a.owned("one owner each", 2, true)
	before := a.owners()
	a.during("nothing", 3*time.Second, func() {})
	a.during("an agent is killed", 3*time.Second, a.nodes[1].agent.Kill)
	a.during("it starts again", 5*time.Second, func() { a.startNodeAgent(2) })
	if now := a.owners(); now != before {
		t.Errorf("owners %v, before the death of an agent %v", now, before)
	}
	a.during("a node is asked to leave", 3*time.Second, func() { a.command(2, "leave") })
	a.owned("it has left", 2, false)
	a.during("it joins again", 3*time.Second, func() { a.command(2, "join") })
	a.owned("it has joined", 2, true)
	a.during("a VPP is killed, with its agent", 5*time.Second, func() { a.nodes[1].agent.Kill(); a.nodes[1].vpp.Kill() })
	a.owned("the others own its addresses", 2, false)
	a.during("it comes back", 5*time.Second, func() { a.startNode(2); a.startNodeAgent(2) })
	a.owned("it owns addresses again", 2, true)
	a.during("a node is cut off", 4*time.Second, func() { a.run("ip", "-n", "ta-fab", "link", "set", "n3", "down") })
	a.during("it is joined again", 4*time.Second, func() { a.run("ip", "-n", "ta-fab", "link", "set", "n3", "up") })
	a.owned("one owner each after the cut", 3, true)
	a.during("the endpoint of a Local service moves", 4*time.Second, func() { a.local = 2; a.publish() })
	a.during("a node is cordoned", 4*time.Second, func() { a.cut = true; a.publish() })
	a.owned("the cordoned node owns nothing", 1, false)
	a.during("it is not any more", 4*time.Second, func() { a.cut = false; a.publish() })
	a.owned("it owns addresses again", 1, true)
}

// command is `troupe addresses` on a node.
func (a *announcement) command(node int, word string) {
	a.Helper()
	a.run(a.troupe, "addresses", word, "--control-socket", filepath.Join(a.nodes[node-1].dir, "control.sock"))
}

// attempts are the connections to one address.
type attempts struct {
	mu   sync.Mutex
	last time.Time     // when the last connection that was made began
	gap  time.Duration // longest time between two that were made
	lost int
	err  error // of the last connection that was lost
}

// watch connects to each of the addresses in its argument every 20 or 60 ms. For each line of its
// input it prints what it has seen since the line before.
func watch(argument string) error {
	const prompt, patience = 500 * time.Millisecond, 3 * time.Second
	all := map[string]*attempts{}
	for _, address := range strings.Fields(argument) {
		at, every := &attempts{last: time.Now()}, 20*time.Millisecond
		if strings.HasPrefix(address, "[") { // CNAT has 16,383 source ports, each for half a minute
			every *= 3
		}
		all[address] = at
		go func() {
			for range time.Tick(every) {
				go func() {
					began := time.Now()
					c, err := net.DialTimeout("tcp", address, patience)
					if err == nil {
						_ = c.Close()
					}
					at.mu.Lock()
					defer at.mu.Unlock()
					if err != nil {
						at.lost++
						at.err = err
					} else if began.After(at.last) && time.Since(began) < prompt { // else the client repeated its packet
						at.gap, at.last = max(at.gap, began.Sub(at.last)), began
					}
				}()
			}
		}()
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		lost, addresses, longest, where, last := 0, 0, time.Duration(0), "", error(nil)
		for address, at := range all {
			at.mu.Lock()
			if at.lost > 0 {
				addresses++
				last = at.err
			}
			if gap := max(at.gap, time.Since(at.last)-prompt); gap > longest {
				longest, where = gap, address
			}
			lost += at.lost
			at.lost, at.gap = 0, 0
			at.mu.Unlock()
		}
		fmt.Printf("lost %d connections of %d addresses, at most %d ms (%s) %v\n", lost, addresses, longest.Milliseconds(), where, last)
	}
	return nil
}
