package daemonset_test

import (
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
)

// vppConfig has: line of the plugin path.
const vppConfig = `unix { nodaemon nosyslog log /run/vpp/vpp.log cli-listen /run/vpp/cli.sock runtime-dir /run/vpp exec /run/vpp-setup poll-sleep-usec 200 }
memory { main-heap-size 512M main-heap-page-size default }
buffers { buffers-per-numa 2048 page-size default }
statseg { size 32M page-size default socket-name /run/vpp/stats.sock }
socksvr { socket-name /run/vpp/api.sock }
plugins { %s
  plugin default { disable }
  plugin nat_plugin.so { enable }
  plugin acl_plugin.so { enable }
  plugin cnat_plugin.so { enable }
  plugin af_packet_plugin.so { enable }
}
`

// vppSetup is what a CNI would make of VPP: the link to the host, behind which everything else is,
// also the pods.
const vppSetup = `create host-interface name vpp-peer
set interface ip address host-vpp-peer 172.30.0.1/24
set interface state host-vpp-peer up
ip route add 0.0.0.0/0 via 172.30.0.2 host-vpp-peer
ip route add 10.1.0.0/16 via 172.30.0.2 host-vpp-peer
`

// masquerade is the address that replaces those of clients; its packets come back through VPP.
const masquerade = "10.255.0.1"

// packets: with a real VPP and the overlay for routes of the host, processes of the node reach the
// pods of a service, also after a restart of VPP. The route is put back when it disappears and goes
// with the agent.
func packets(c *cluster) {
	binary := os.Getenv("TROUPE_VPP_BIN")
	if binary == "" {
		c.Skip("no real VPP, TROUPE_VPP_BIN is not set: not played are processes of the host that reach services through VPP, also after its restart, and their route")
	}
	vip := c.service("echo")
	pods := []string{c.runPod("echo", "here", 0), c.runPod("echo", "there", 1)}
	n, simulator := c.Nodes[0], c.vpp[0]
	simulator.Kill()
	n.Do("ip", "link", "add", "vpp-host", "type", "veth", "peer", "name", "vpp-peer")
	n.Do("ip", "address", "add", "172.30.0.2/24", "dev", "vpp-host")
	for _, end := range []string{"vpp-host", "vpp-peer"} {
		n.Do("ip", "link", "set", end, "up")
	}
	n.Do("ip", "route", "add", masquerade, "via", "172.30.0.1")
	vpp := realVPP(n, binary)

	c.Apply("overlays/host-route", "https://"+c.Address())
	c.change(func(d *appsv1.DaemonSet) {
		agentOf(d).Args = append(agentOf(d).Args, "--masquerade-all", "--nat-loopback-ip="+masquerade, "--cleanup-on-exit")
	})
	c.RolledOut()
	route := fmt.Sprint(controlplane.ServiceCIDR, " via 172.30.0.1 dev vpp-host src ", n.Address)
	c.rows("shop/echo", both, row(vip, pods...))
	c.routed(route)
	c.answered(vip+":80", "here", "there")

	n.Do("ip", "route", "del", controlplane.ServiceCIDR)
	c.routed(route)
	vpp.Kill()
	vpp = realVPP(n, binary)
	c.answered(vip+":80", "here", "there")

	c.Apply("base", "https://"+c.Address())
	c.RolledOut()
	c.routed("")
	vpp.Kill()
	n.Do("ip", "link", "del", "vpp-host")
	c.vpp[0] = simulated(c.T, n, c.Program)
}

// realVPP starts a real VPP on the node.
func realVPP(n *node.Node, binary string) *node.Process {
	plugins := os.Getenv("TROUPE_VPP_PLUGINS")
	if plugins != "" {
		plugins = "path " + plugins
	}
	// a VPP that was killed leaves its locks, for which the next one would wait
	n.Do("sh", "-c", "rm -f /dev/shm/*")
	n.Write("/run/vpp.conf", fmt.Sprintf(vppConfig, plugins))
	n.Write("/run/vpp-setup", vppSetup)
	return n.Spawn(binary, "-c", "/run/vpp.conf")
}

// routed waits until the agent of the first node has exactly this route in the kernel.
func (c *cluster) routed(want string) {
	c.Helper()
	controlplane.Eventually(c, "route of the agent", func() string {
		if have := strings.TrimSpace(c.Nodes[0].Do("ip", "route", "show", "proto", "84")); have != want {
			return fmt.Sprintf("have %q, want %q", have, want)
		}
		return ""
	})
}

// answered waits until each of the pods has answered a connection from the first node to the
// address.
func (c *cluster) answered(address string, pods ...string) {
	c.Helper()
	answers := map[string]int{}
	controlplane.Eventually(c, "answers from "+address, func() string {
		answer, err := ask(c.Nodes[0], address)
		if err != nil {
			return fmt.Sprintf("%v; before: %v", err, answers)
		}
		answers[answer]++
		for _, pod := range pods {
			if answers[pod] == 0 {
				return fmt.Sprintf("%v", answers)
			}
		}
		return ""
	})
}
