package namespaces

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Addresses of all layouts.
var (
	podAddress = map[string]string{"c1": "10.1.1.2", "b1": "10.1.2.2", "b2": "10.1.3.2", "r1": "10.1.129.2"}
	// Their last 32 bits differ, because CNAT of VPP 26.06 takes pods with the same ones for one.
	podAddress6 = map[string]string{"c1": "fd01:1::2", "b1": "fd01:2::12", "b2": "fd01:3::22", "r1": "fd01:8001::32"}
)

// podNetworkEnd is the last address of the pod network of node n1, which replaces the source of
// clients unless a setting names another one.
const podNetworkEnd = "10.1.127.254"

// defaults are the variables that a layout does not replace. net is the network of the pods of a
// node, node its address, up its uplink, bvi the gateway of its pods where they are in one subnet,
// from first to last, and loop the source of masqueraded clients.
var defaults = []string{
	"up1", "host-up", "up2", "host-up", "loop", podNetworkEnd,
	"first1", "10.1.0.2", "last1", "10.1.127.254", "first2", "10.1.128.2", "last2", "10.1.255.254",
	"node1", "192.168.50.1", "node2", "192.168.50.3", "ext", "192.168.50.2", "host", "172.30.0.2",
	"net1", "10.1.0.0/17", "net2", "10.1.128.0/17", "bvi1", "10.1.0.1", "bvi2", "10.1.128.1",
	"node61", "fd00:50::1", "node62", "fd00:50::3", "net61", "fd01::/17", "net62", "fd01:8000::/17", "bvi61", "fd01::1", "bvi62", "fd01:8000::1",
}

// plain: every interface is in table 0 with an address of its own; the uplink is a port of the
// fabric. The processes of the host are behind an interface, as docs/operations.md has it.
var plain = layout{
	name: "plain", v6: true, hosted: true,
	looks: []string{"check", `renderer of IPv4 +ok +nat44`},
	fabric: `
port n1:up
port n2:up
port ext:eth0
ext ip addr add $ext/24 dev eth0
ext ip addr add fd00:50::2/64 dev eth0 nodad
ext ip route add $net1 via $node1
ext ip route add $net2 via $node2
ext ip route add $net61 via $node61
ext ip route add $net62 via $node62`,
	node: `
vpp create host-interface name up hw-addr 02:fe:00:00:01:0$n
vpp set interface state host-up up
vpp set interface ip address host-up $node/24
vpp set interface ip address host-up $node6/64`,
	pod: `
link n$n:p$pod $pod:eth0
$pod ip addr add $a/24 dev eth0
$pod ip addr add $a6/64 dev eth0 nodad
$pod ip route add default via $gw
$pod ip -6 route add default via $gw6
vpp create host-interface name p$pod hw-addr 02:fe:00:00:04:0$k
vpp set interface state host-p$pod up
vpp set interface ip address host-p$pod $gw/24
vpp set interface ip address host-p$pod $gw6/64`,
	routes: `
vpp ip route add 0.0.0.0/0 via $ext $up
vpp ip route add $theirnet via $theirnode $up
vpp ip route add ::/0 via fd00:50::2 $up
vpp ip route add $theirnet6 via $theirnode6 $up`,
	host: `
link n1:tap0 host:eth0
host ip addr add $host/24 dev eth0
host ip route add 10.0.0.0/8 via 172.30.0.1
host ip route add 192.168.0.0/16 via 172.30.0.1
n1 vpp create host-interface name tap0
n1 vpp set interface state host-tap0 up
n1 vpp set interface ip address host-tap0 172.30.0.1/24
n2 vpp ip route add 172.30.0.0/24 via $node1`,
}

// with returns a layout that is this one, changed.
func (l layout) with(change func(*layout)) layout {
	change(&l)
	return l
}

// fails adds checks that are known to fail.
func (l *layout) fails(reason string, names ...string) {
	known := map[string][]string{reason: names}
	maps.Copy(known, l.known)
	l.known = known
}

// layouts are all of them.
var layouts = []layout{
	plain.with(func(l *layout) { l.also = fragmented }), vxlan, vxlanHost, vxlanWorkers, vxlan0, ownHost, hostUnnumbered, ipip, pathMTU, ipipRouted, gre, ipsec, wireguard,
	bridge, bridgeSplit, bridgeLoopback, bviUplink, calico, calicoClassified, calicoAgent, calicoCNAT,
	policy, policyEgress, policyService, flap, ecmp, unnumbered, uplinkTable, vlan, bond, bondXor, multus,
}

// borrowed: the pod has a /32 and an ARP entry for its gateway; its interface borrows the address
// of a loopback. CNIs of Contiv's and Calico's kind do so. A tunnel has room for its header.
const borrowed = `
link n$n:p$pod $pod:eth0
$pod ip link set eth0 mtu 1400
$pod ip link set eth0 address $mac
$pod ip addr add $a/32 dev eth0
$pod ip route add 169.254.1.1 dev eth0 scope link
$pod ip route add default via 169.254.1.1 dev eth0
$pod ip neigh add 169.254.1.1 lladdr 02:fe:00:00:03:01 dev eth0
vpp create host-interface name p$pod hw-addr 02:fe:00:00:03:01`

// vxlan is Contiv-VPP's full mesh. The pods' table 2 has the virtual interface of a bridge domain
// with a VXLAN tunnel to the other node; pods borrow a loopback in table 2. Table 0 leads to table
// 2 by the pods' networks, and table 2 leads to table 0 by its default.
var vxlan = plain.with(func(l *layout) {
	l.name, l.v6, l.also = "vxlan", false, fragmented
	l.node += `
vpp ip table add 2
vpp ip route add table 2 0.0.0.0/0 via ip4-lookup-in-table 0
vpp ip route add 10.1.0.0/16 via ip4-lookup-in-table 2
vpp create loopback interface mac 02:00:00:00:00:02 instance 0
vpp set interface ip table loop0 2
vpp set interface state loop0 up
vpp set interface ip address loop0 $bvi/32`
	l.pod = borrowed + `
vpp set interface ip table host-p$pod 2
vpp set interface state host-p$pod up
vpp set interface unnumbered host-p$pod use loop0
vpp set ip neighbor static host-p$pod $a $mac
vpp ip route add table 2 $a/32 via $a host-p$pod`
	l.routes = `
vpp create bridge-domain 9 learn 0 forward 1 uu-flood 0 flood 0 arp-term 0
vpp create loopback interface mac 02:fe:00:00:09:0$n instance 1
vpp set interface ip table loop1 2
vpp set interface l2 bridge loop1 9 bvi
vpp set interface state loop1 up
vpp set interface ip address loop1 192.168.30.$n/24
vpp create vxlan tunnel src $node dst $theirnode vni 10 decap-next l2
vpp set interface state vxlan_tunnel0 up
vpp set interface l2 bridge vxlan_tunnel0 9 1
vpp l2fib add 02:fe:00:00:09:0$o 9 vxlan_tunnel0 static
vpp set ip neighbor static loop1 192.168.30.$o 02:fe:00:00:09:0$o
vpp ip route add table 2 $theirnet via 192.168.30.$o loop1
vpp ip route add 0.0.0.0/0 via $ext host-up`
	// Contiv-VPP routes what is for the host of another node as it routes what is for its pods.
	l.host = without(l.host, "n2 vpp") + `
n2 vpp ip route add table 2 172.30.0.0/24 via 192.168.30.1 loop1`
	l.looks = []string{"get service shop/far", `10\.1\.129\.2:8080 \(table 2\)`}
	l.instead = unreachable()
})

// vxlanHost: other nodes answer the host past the mesh.
var vxlanHost = vxlan.with(func(l *layout) {
	l.name, l.host = "vxlanhost", plain.host
	l.fails("answers to the host come in at table 0, those to pods at table 2", "host to ClusterIP, remote endpoint")
	l.warns = `answers do not come back: 4 of 4 connections of 172\.30\.0\.2 to 10\.1\.129\.2:8080: other clients get answers there`
	l.looks = []string{"check", `agent of node n1 +warning +ready; .*answers do not come back`}
})

// vxlanWorkers is vxlan with a VPP that has workers.
var vxlanWorkers = vxlan.with(func(l *layout) { l.name, l.workers = "vxlanworkers", 2 })

// vxlan0 is the same mesh with everything in table 0.
var vxlan0 = vxlan.with(func(l *layout) {
	l.name, l.node, l.host, l.looks, l.instead = "vxlan0", plain.node+loopback0, plain.host, plain.looks, nil
	l.pod = borrowed + podRoute
	l.routes = strings.ReplaceAll(without(l.routes, "set interface ip table"), "table 2 ", "")
})

// loopback0 is the loopback that pods borrow, and podRoute the interface of one that does.
const loopback0 = `
vpp create loopback interface mac 02:00:00:00:00:02 instance 0
vpp set interface state loop0 up
vpp set interface ip address loop0 $bvi/32`

const podRoute = `
vpp set interface state host-p$pod up
vpp set interface unnumbered host-p$pod use loop0
vpp set ip neighbor static host-p$pod $a $mac
vpp ip route add $a/32 via $a host-p$pod`

// ipip joins the nodes by a tunnel, as Calico does; all in table 0.
var ipip = plain.with(func(l *layout) {
	l.name, l.v6, l.also = "ipip", false, fragmented
	l.node += loopback0
	l.pod = borrowed + podRoute
	l.routes = `
vpp ip route add 0.0.0.0/0 via $ext host-up
vpp create ipip tunnel src $node dst $theirnode
vpp set interface state ipip0 up
vpp set interface unnumbered ipip0 use host-up
vpp ip route add $theirnet via ipip0`
	l.looks = []string{"get interfaces", `ipip0 +other`}
})

// ipipRouted: the tunnel is between loopbacks, over the two routers of ecmp.
var ipipRouted = ecmp.with(func(l *layout) {
	l.name = "ipiprouted"
	l.node += loopback0
	l.pod = borrowed + podRoute
	l.routes += `
vpp create ipip tunnel src $node dst $theirnode
vpp set interface state ipip0 up
vpp set interface unnumbered ipip0 use loop6
vpp ip route add $theirnet via ipip0`
	l.last = "n2 vpp ip route add 172.30.0.0/24 via ipip0"
	l.host = without(l.host, "n2 vpp")
	l.looks = []string{"get interfaces", `ipip0 +other`}
})

// summed is ipip with checksums that Linux completes, as VPP does not in tunnels of GRE and
// WireGuard.
var summed = ipip.with(func(l *layout) {
	l.pod += "\n$pod ethtool -K eth0 tx off"
	l.host += "\nhost ethtool -K eth0 tx off\next ethtool -K eth0 tx off"
})

// pathMTU: the path is narrower than the interfaces of pods, at the other node on the way of
// requests, and at this one on the way of answers. VPP answers with ICMP.
var pathMTU = summed.with(func(l *layout) {
	l.name = "pathmtu"
	l.last = "n2 vpp set interface mtu ip4 1300 host-pr1\nn1 vpp set interface mtu ip4 1300 host-pc1\nn1 vpp set interface mtu ip4 1300 host-pb1"
	l.fails("VPP tells the cluster IP, not the endpoint, that an answer is too large for the interface of the client", "download from ClusterIP, remote endpoint")
	l.only = []check{
		{name: "upload to a pod of the other node", from: "c1", how: "upload", to: "$r1:8080", by: "r1", saw: "$c1", direct: true},
		{name: "download from a pod of the other node", from: "c1", how: "download", to: "$r1:8080", by: "r1", saw: "$c1", direct: true},
		{name: "upload to ClusterIP, remote endpoint", from: "c1", how: "upload", to: "10.96.0.15:80", by: "r1", saw: "$c1"},
		// another client: the endpoint remembers the path to the first one
		{name: "download from ClusterIP, remote endpoint", from: "b1", how: "download", to: "10.96.0.15:80", by: "r1", saw: "$b1"},
	}
})

// gre has a tunnel of GRE.
var gre = summed.with(func(l *layout) {
	l.name, l.plugin = "gre", "gre_plugin.so"
	l.routes = strings.NewReplacer("create ipip", "create gre", "ipip0", "gre0").Replace(l.routes)
	l.looks = []string{"get interfaces", `gre0 +other`}
})

// ipsec is ipip with ESP between the nodes: the tunnel is protected by one SA in each direction.
var ipsec = ipip.with(func(l *layout) {
	l.name = "ipsec"
	const sa = `
vpp ipsec sa add $% spi 100$% crypto-key 4a506a794f574265564551694d653768 crypto-alg aes-gcm-128`
	l.routes += strings.ReplaceAll(sa, "%", "n") + strings.ReplaceAll(sa, "%", "o") + `
vpp ipsec tunnel protect ipip0 sa-in $o sa-out $n`
	l.also = append(slices.Clone(l.also),
		check{name: "ESP, sent", how: "vpp", to: "show ipsec sa 0", by: "packets:[1-9]", direct: true},
		check{name: "ESP, received", how: "vpp", to: "show ipsec sa 1", by: "packets:[1-9]", direct: true})
})

// wireguard has WireGuard between the nodes, a tunnel of UDP. The keys are of no use elsewhere.
var wireguard = summed.with(func(l *layout) {
	l.name, l.plugin = "wireguard", "wireguard_plugin.so"
	l.vars = []string{
		"private1", "0NNah2jhuYOzBvumHfxBRE5l659fSSrlr9gkDyUpe3s=", "public1", "9hXyZwIVEY/JEnig5h4NCs7cd54Lp0+JWA5bv2vWvGY=",
		"private2", "aG5nVMhxlHNGc5nnHxtYSY5DRb8bsZVzq/5odrAIaWY=", "public2", "kdB/tAAJtkMhfG/CCB3Y5bFPsB5IsjF3tzo2zUHQzTQ=",
	}
	l.routes = `
vpp ip route add 0.0.0.0/0 via $ext host-up
vpp wireguard create listen-port 51820 private-key $private src $node
vpp set interface state wg0 up
vpp set interface unnumbered wg0 use host-up
vpp wireguard peer add wg0 public-key $theirpublic endpoint $theirnode allowed-ip 0.0.0.0/0 dst-port 51820
vpp ip route add $theirnet via $theirnode wg0`
	l.also = append(slices.Clone(l.also),
		check{name: "WireGuard, established", how: "vpp", to: "show wireguard peer", by: "flags: 2", direct: true})
	l.looks = []string{"get interfaces", `wg0 +other`}
	l.instead = unreachable() // VPP serves the UDP port of WireGuard
})

// bridge: the pods of a node are in one bridge domain and one subnet, behind its virtual interface;
// the uplink is routed.
var bridge = plain.with(func(l *layout) {
	l.name = "bridge"
	l.node += `
vpp create bridge-domain 5 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0
vpp bvi create instance 0
vpp set interface l2 bridge bvi0 5 bvi
vpp set interface state bvi0 up
vpp set interface ip address bvi0 $bvi/17
vpp set interface ip address bvi0 $bvi6/17`
	l.pod = `
link n$n:p$pod $pod:eth0
$pod ip addr add $a/17 dev eth0
$pod ip addr add $a6/17 dev eth0 nodad
$pod ip route add default via $bvi
$pod ip -6 route add default via $bvi6
vpp create host-interface name p$pod
vpp set interface state host-p$pod up
vpp set interface l2 bridge host-p$pod 5`
	l.says = "pods in bridge domain 5 answer each other past NAT"
	l.fails("pods answer each other past NAT", "pod to ClusterIP", "pod to ClusterIP, UDP", "pod to ClusterIP, IPv6")
	l.fails("nobody answers ARP for the NAT loopback", "pod to itself", "pod to node port", "outside to node port")
	l.looks = []string{"check", `VPP: bridge domains +warning`}
})

// bridgeSplit: the same with the pods in one split-horizon group and proxy ARP at the virtual
// interface, so that pods reach each other only through it. The NAT loopback is outside of the
// subnet.
var bridgeSplit = bridge.with(func(l *layout) {
	l.name, l.v6, l.known, l.says, l.looks = "bridgesplit", false, plain.known, "", plain.looks
	l.node = without(l.node, "$bvi6") + `
vpp set arp proxy table-id 0 start $first end $last
vpp set interface proxy-arp bvi0 enable`
	l.pod = strings.ReplaceAll(without(l.pod, "$a6", "$bvi6"), "host-p$pod 5", "host-p$pod 5 1")
	l.flags = []string{"--nat-loopback-ip", "10.255.255.254"}
	l.vars = []string{"loop", "10.255.255.254"}
	l.routes += "\nn2 vpp ip route add 10.255.255.254/32 via $node1"
})

// bridgeLoopback: the same with the NAT loopback inside of the subnet.
var bridgeLoopback = bridgeSplit.with(func(l *layout) {
	l.name, l.vars, l.flags, l.routes = "bridgeloopback", nil, nil, plain.routes
	l.says = "the NAT loopback 10.1.127.254 is inside of the network 10.1.0.0/17 of bvi0"
	l.fails("pods do not find the NAT loopback", "pod to itself", "pod to node port", "outside to node port")
	l.looks = []string{"check", `agent of node n1 +failed +not ready: .*NAT loopback 10\.1\.127\.254`}
})

// bviUplink: the uplink is a port of a bridge domain; the node's address is on a loopback that is
// its virtual interface.
var bviUplink = plain.with(func(l *layout) {
	l.name = "bviuplink"
	l.node = `
vpp create host-interface name up
vpp set interface state host-up up
vpp create bridge-domain 7 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0
vpp set interface l2 bridge host-up 7
vpp create loopback interface mac 02:fe:00:00:07:0$n instance 0
vpp set interface l2 bridge loop0 7 bvi
vpp set interface state loop0 up
vpp set interface ip address loop0 $node/24
vpp set interface ip address loop0 $node6/64`
	l.vars = []string{"up1", "loop0", "up2", "loop0"}
	l.looks = []string{"get interfaces", `$up1 +uplink`}
})

// ecmp: two uplinks to two routers, with a default route over both. The client outside is behind
// both and answers by the second one only. The node's address is on a loopback.
var ecmp = plain.with(func(l *layout) {
	l.name, l.v6 = "ecmp", false
	l.vars = []string{"ext", "203.0.113.2"}
	l.more = []string{"rt1", "rt2"}
	l.fabric = router("1") + router("2") + `
ext set net.ipv4.conf.all.rp_filter=0
ext set net.ipv4.conf.e1.rp_filter=0
ext set net.ipv4.conf.e2.rp_filter=0
ext ip addr add $ext/32 dev lo
ext ip route add 10.1.0.0/16 via 10.8.2.1 src $ext
ext ip route add 192.168.50.0/24 via 10.8.2.1 src $ext`
	l.node = `
vpp create loopback interface mac 02:fe:00:00:06:0$n instance 6
vpp set interface state loop6 up
vpp set interface ip address loop6 $node/32` + uplink("1") + uplink("2")
	l.routes = `
vpp ip route add 0.0.0.0/0 via 10.9.1.$n0 host-u1
vpp ip route add 0.0.0.0/0 via 10.9.2.$n0 host-u2`
	l.looks = []string{"get interfaces", `host-u1 +uplink`}
})

// router is a router of ecmp: a /31 to each node, and a network with the client outside.
func router(k string) string {
	text := `
rt%k set net.ipv4.ip_forward=1
rt%k set net.ipv4.conf.all.rp_filter=0
rt%k set net.ipv4.conf.default.rp_filter=0
rt%k set net.ipv4.fib_multipath_hash_policy=1
link ext:e%k rt%k:ext
ext ip addr add 10.8.%k.2/24 dev e%k
rt%k ip addr add 10.8.%k.1/24 dev ext
rt%k ip route add $ext/32 via 10.8.%k.2`
	for _, n := range []string{"1", "2"} {
		text += strings.ReplaceAll(`
link n%n:u%k rt%k:n%n
rt%k ip addr add 10.9.%k.%n0/31 dev n%n
rt%k ip route add $net%n via 10.9.%k.%n1
rt%k ip route add $node%n/32 via 10.9.%k.%n1`, "%n", n)
	}
	return strings.ReplaceAll(text+"\nrt%k ip route add 172.30.0.0/24 via 10.9.%k.11", "%k", k)
}

// uplink is one of the two uplinks of ecmp.
func uplink(k string) string {
	return strings.ReplaceAll(`
vpp create host-interface name u%k
vpp set interface state host-u%k up
vpp set interface ip address host-u%k 10.9.%k.$n1/31`, "%k", k)
}

// unnumbered: the node's address is a /32 on a loopback that the uplink borrows.
var unnumbered = plain.with(func(l *layout) {
	l.name, l.v6 = "unnumbered", false
	l.node = `
vpp create host-interface name up hw-addr 02:fe:00:00:01:0$n
vpp set interface state host-up up
vpp create loopback interface mac 02:fe:00:00:06:0$n instance 6
vpp set interface state loop6 up
vpp set interface ip address loop6 $node/32
vpp set interface unnumbered host-up use loop6`
	l.routes = `
vpp ip route add $ext/32 via host-up
vpp ip route add $theirnode/32 via host-up
vpp ip route add 0.0.0.0/0 via $ext host-up
vpp ip route add $theirnet via $theirnode host-up`
	l.looks = []string{"get interfaces", `$up1 +uplink`}
})

// uplinkTable: the uplink, the routes, the pods and the host are in table 7. Nothing is in table 0.
var uplinkTable = plain.with(func(l *layout) {
	l.name, l.v6 = "uplinktable", false
	up := regexp.MustCompile(`(?m)^(.*vpp )set interface state (\S+) up$`)
	for _, script := range []*string{&l.node, &l.pod, &l.routes, &l.host} {
		*script = without(*script, "$node6", "$gw6", "$theirnet6", "::")
		*script = up.ReplaceAllString(*script, "${1}set interface ip table ${2} 7\n${0}")
		*script = strings.ReplaceAll(*script, "vpp ip route add", "vpp ip route add table 7")
	}
	l.node = "\nvpp ip table add 7" + l.node
	l.host = strings.ReplaceAll(l.host, "via $node1", "via $node1 $up2")
	l.looks = []string{"get service shop/far", `10\.1\.129\.2:8080 \(table 7\)`}
	l.not = refusals() // the routes of the agent are in table 0
})

// ownHost: the host has the address of the node. Its interface is in a table of its own, VPP has
// the same address on the uplink, and punts what is for itself, as Calico-VPP does.
var ownHost = plain.with(func(l *layout) {
	l.name, l.v6 = "host", false
	l.vars = []string{"host", "192.168.50.1"}
	l.host = hostStack + `
n1 vpp ip table add 10
n1 vpp create host-interface name tap0 hw-addr 02:fe:00:00:00:20
n1 vpp ip route add table 10 0.0.0.0/0 via ip4-lookup-in-table 0
n1 vpp set interface ip table host-tap0 10
n1 vpp set interface state host-tap0 up
n1 vpp set interface ip address host-tap0 169.254.0.1/32
n1 vpp ip route add table 10 $node1/32 via $node1 host-tap0` + punt
	// The uplink then has the outside role alone, and VPP drops the answers of remote endpoints to
	// its own address, which the host has too (docs/semantics.md).
	l.not = []string{"foreign protocols, outside to pod"}
	l.looks = []string{"get service shop/onhost", `192\.168\.50\.1:8080 \(table 10\)`}
	l.instead = unreachable()
})

const hostStack = `
link n1:tap0 host:eth0
host ip link set eth0 address 02:00:00:00:00:21
host ip addr add $node1/32 dev eth0
host ip route add 169.254.0.1 dev eth0 scope link
host ip route add default via 169.254.0.1 dev eth0
host ip neigh add 169.254.0.1 lladdr 02:fe:00:00:00:20 dev eth0`

const punt = `
n1 vpp set ip neighbor static host-tap0 $node1 02:00:00:00:00:21
n1 vpp ip punt redirect add rx all via $node1 host-tap0
n1 vpp set punt tcp all
n1 vpp set punt udp all`

// hostUnnumbered: the same where the host's interface borrows the address of the uplink, as the
// pairs of linux-cp have the address of their port.
var hostUnnumbered = ownHost.with(func(l *layout) {
	l.name = "hostunnumbered"
	l.host = hostStack + `
n1 vpp create host-interface name tap0 hw-addr 02:fe:00:00:00:20
n1 vpp set interface state host-tap0 up
n1 vpp set interface unnumbered host-tap0 use host-up` + punt
	// CNAT takes the host's interface for one to the outside
	l.instead = append(unreachable(), check{name: "host to ClusterIP, remote endpoint", from: "host", how: "tcp", to: "10.96.0.15:80", by: "r1", saw: "$host", sawCNAT: "$loop"})
	l.known, l.looks = plain.known, plain.looks
})

// calico is Calico-VPP 3.32: a table for each pod, in which a loopback has the pod's own address;
// table 2 of all pods; the main table has the /32 of each pod.
var calico = ownHost.with(func(l *layout) {
	l.name = "calico"
	l.node += `
vpp ip table add 2
vpp ip route add table 2 0.0.0.0/0 via ip4-lookup-in-table 0`
	l.pod = borrowed + `
vpp ip table add $table
vpp ip route add table $table 0.0.0.0/0 via ip4-lookup-in-table 2
vpp create loopback interface mac 02:00:00:00:00:02 instance $k
vpp set interface ip table loop$k $table
vpp set interface state loop$k up
vpp set interface ip address loop$k $a/32
vpp set interface ip table host-p$pod $table
vpp set interface state host-p$pod up
vpp set interface unnumbered host-p$pod use loop$k
vpp set ip neighbor static host-p$pod $a $mac
vpp ip route add $a/32 via $a host-p$pod`
	l.fails("CNAT does not serve a pod that reaches itself", "pod to itself")
	l.warns = "connections of a pod to itself through a service are lost, unless .*: VPP itself has the addresses of 3 pods"
	l.looks = []string{"check", `renderer of IPv4 +ok +cnat`}
})

// calicoClassified: classifiers look up in the main table what goes to the pod itself.
var calicoClassified = calico.with(func(l *layout) {
	l.name, l.known, l.warns = "calicoclassified", plain.known, ""
	l.node += "\nvpp classify table mask l3 ip4 dst buckets 16 acl-miss-next permit"
	l.pod += `
vpp classify session acl-hit-next permit table-index 0 match l3 ip4 dst $a action set-ip4-fib-id 0
vpp set interface input acl intfc host-p$pod ip4-table 0`
})

// without returns the lines that have none of the words.
func without(script string, words ...string) string {
	var kept []string
	for _, line := range strings.Split(script, "\n") {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
