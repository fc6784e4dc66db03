package namespaces

import (
	"fmt"
	"strings"
)

// calicoCNAT: another owner uses CNAT, as Calico-VPP does: its nodes on every interface, an SNAT
// address, outgoing NAT for the pods of this node except to pods, nodes and services, and a
// translation of its own.
var calicoCNAT = plain.with(func(l *layout) {
	l.name, l.v6, l.hosted, l.host = "calicocnat", false, false, ""
	l.not2606 = "the Calico-VPP of this CNAT sets it up in another way"
	for _, i := range []string{"up", "pc1", "pb1", "pb2"} {
		l.last += strings.ReplaceAll(`
n1 vpp set interface feature host-% cnat-input-ip4 arc ip4-unicast
n1 vpp set interface feature host-% cnat-output-ip4 arc ip4-output`, "%", i)
	}
	l.last += "\nn1 vpp set cnat snat-policy addr $node1"
	for _, prefix := range []string{"10.1.0.0/16", "192.168.50.1/32", "192.168.50.3/32", "10.96.0.0/12"} {
		l.last += "\nn1 vpp set cnat snat-policy prefix " + prefix
	}
	for _, pod := range pods["1"] {
		l.last += strings.ReplaceAll(`
n1 vpp set cnat snat-policy if table include-v4 host-p%
n1 vpp set cnat snat-policy if table k8s host-p%`, "%", pod)
	}
	l.last += `
n1 vpp set cnat snat-policy if-pfx
n1 vpp cnat translation add proto TCP vip 10.96.0.99 80 to -> 10.1.2.2 8080`
	// 25.10 replaces the source of answers to clients outside, and that of SCTP, without an agent
	// too
	l.not = []string{"outside to pod", "foreign protocols, pod to outside"}
	l.fails("the other owner replaces the source of answers to clients outside", "outside to node port", "outside to node port, policy Local")
	l.instead = []check{
		// the outgoing NAT of the other owner
		{name: "pod to outside", from: "c1", how: "tcp", to: "$ext:8080", by: "ext", saw: "$node1", direct: true},
		{name: "pod to ClusterIP, outside endpoint", from: "c1", how: "tcp", to: "10.96.0.13:80", by: "ext", saw: "$node1 $c1"},
	}
	l.also = []check{{name: "translation of another owner", from: "c1", how: "tcp", to: "10.96.0.99:80", by: "b1", saw: "$c1", direct: true}}
	l.looks = []string{"check", `CNAT +warning +another client of VPP`}
})

// calicoAgent: calico with what Calico-VPP 3.31 itself does about services. Each start of its agent
// sets the address of the node for source NAT and deletes all translations of CNAT, also with
// servicesEnabled: false. First its services are switched off, in the end they come back.
var calicoAgent = calico.with(func(l *layout) {
	l.name, l.not2606 = "calicoagent", calicoCNAT.not2606
	l.not = refusals() // Calico-VPP refuses no packets
	starts := `
n1 vpp set cnat snat-policy addr $node1
n1 vpp set cnat snat-policy prefix $node1/32
n1 vpp set cnat snat-policy prefix 10.96.0.0/12`
	for id := range 32 {
		starts += fmt.Sprintf("\nn1 vpp cnat translation del %d", id)
	}
	var rows string
	for _, row := range []string{
		"TCP vip 10.96.0.10 80 to -> $b1 8080 to -> $b2 8080", "UDP vip 10.96.0.10 53 to -> $b1 5353 to -> $b2 5353", "TCP vip 10.96.0.12 80 to -> $b1 8080",
		"TCP vip 10.96.0.13 80 to -> $ext 8080", "TCP vip 10.96.0.14 80 to -> $node1 8080", "TCP vip 10.96.0.15 80 to -> $r1 8080", "UDP vip 10.96.0.15 53 to -> $r1 5353",
		"TCP real $node1 30080 to -> $b1 8080 to -> $b2 8080", "TCP real $node1 30081 to $node1 0 -> $r1 8080", "TCP real $node1 30082 to -> $b1 8080 to -> $b2 8080",
	} {
		rows += "\nn1 vpp cnat translation add proto " + row
	}
	l.last = "\nn1 vpp set cnat snat-policy k8s\nn1 vpp set cnat snat-policy if table host host-tap0"
	for _, i := range []string{"up", "tap0", "pc1", "pb1", "pb2"} {
		l.last += strings.ReplaceAll(`
n1 vpp set interface feature host-% cnat-input-ip4 arc ip4-unicast
n1 vpp set interface feature host-% cnat-output-ip4 arc ip4-output`, "%", i)
		if i != "up" {
			l.last += "\nn1 vpp set cnat snat-policy if table k8s host-" + i
		}
	}
	l.last += starts + rows + starts
	l.instead = []check{{name: "outside to node port, remote endpoint", from: "ext", how: "tcp", to: "$node1:30081", by: "r1", saw: "$node1"}}
	l.warns = "another client of VPP has set up source NAT of CNAT, which stays as it is: sources of clients are replaced as it wants"
	l.steps = []step{
		{name: "its agent starts again", script: starts + "\ntroupe resync --control-socket $dir/control.sock", known: l.known},
		{name: "back", script: "stop agent\ntroupe cleanup --vpp-api-socket $dir/api.sock --data-dir $dir/data" + starts + rows, known: l.known},
	}
})

// policy: access lists of another owner at a server. b1 admits only c1, by its address, and may not
// connect anywhere.
var policy = plain.with(func(l *layout) {
	l.name, l.v6, l.hosted, l.host, l.known = "policy", false, false, "", nil
	l.last = `
n1 vpp set acl-plugin acl permit+reflect proto 6 src $c1/32 dst $b1/32 dport 8080, permit+reflect proto 17 src $c1/32 dst $b1/32 dport 5353, deny src 0.0.0.0/0 tag b1-admits
n1 vpp set acl-plugin acl deny src 0.0.0.0/0 tag b1-may
n1 vpp set acl-plugin interface host-pb1 output acl 0
n1 vpp set acl-plugin interface host-pb1 input acl 1`
	l.only = []check{
		{name: "c1 to b1", from: "c1", how: "tcp", to: "$b1:8080", by: "b1", saw: "$c1", direct: true},
		{name: "b2 to b1", from: "b2", how: "tcp", to: "$b1:8080", by: "lost", direct: true},
		{name: "c1 to ClusterIP", from: "c1", how: "tcp", to: "10.96.0.10:80", by: "b1 b2", saw: "$c1"},
		{name: "c1 to ClusterIP, UDP", from: "c1", how: "udp", to: "10.96.0.10:53", by: "b1 b2", saw: "$c1"},
		{name: "b2 to ClusterIP", from: "b2", how: "tcp", to: "10.96.0.10:80", by: "b2 lost", saw: "$loop"},
		{name: "outside to node port", from: "ext", how: "tcp", to: "$node1:30080", by: "b2 lost", saw: "$loop $ext"},
		{name: "outside to node port, policy Local", from: "ext", how: "tcp", to: "$node1:30082", by: "b2 lost", saw: "$ext"},
		// NAT44 replaces the source, so that b1 refuses it
		{name: "c1 to node port", from: "c1", how: "tcp", to: "$node1:30080", by: "b2 lost", byCNAT: "b1 b2", saw: "$loop $c1"},
	}
	l.warns = `answers do not come back: .* to 10\.1\.2\.2:8080: access lists in VPP deny packets, where packets leave at host-pb1 \(b1-admits\)`
	l.looks = []string{"check", `VPP: access lists of others +warning`}
})

// policyEgress: access lists of another owner at a client. c1 may connect only to the pods, by
// their addresses.
var policyEgress = policy.with(func(l *layout) {
	l.name, l.warns = "policyegress", ""
	l.last = egress("$b1/32", "$b2/32", "$r1/32")
	l.only = []check{
		{name: "c1 to b1", from: "c1", how: "tcp", to: "$b1:8080", by: "b1", saw: "$c1", direct: true},
		{name: "c1 to outside", from: "c1", how: "tcp", to: "$ext:8080", by: "lost", direct: true},
		// NAT44 runs after the input access lists, which see the cluster IP; CNAT before them
		{name: "c1 to ClusterIP", from: "c1", how: "tcp", to: "10.96.0.10:80", by: "lost", byCNAT: "b1 b2", saw: "$c1"},
		{name: "c1 to ClusterIP, UDP", from: "c1", how: "udp", to: "10.96.0.10:53", by: "lost", byCNAT: "b1 b2", saw: "$c1"},
		{name: "c1 to ClusterIP, remote endpoint", from: "c1", how: "tcp", to: "10.96.0.15:80", by: "lost", byCNAT: "r1", saw: "$c1"},
		{name: "c1 to ClusterIP, outside endpoint", from: "c1", how: "tcp", to: "10.96.0.13:80", by: "lost"},
	}
})

// policyService: the same where the lists name the addresses of services.
var policyService = policyEgress.with(func(l *layout) {
	l.name = "policyservice"
	l.last = egress("10.96.0.0/12")
	l.only = []check{
		{name: "c1 to ClusterIP", from: "c1", how: "tcp", to: "10.96.0.10:80", by: "b1 b2", byCNAT: "lost", saw: "$c1"},
		{name: "c1 to ClusterIP, UDP", from: "c1", how: "udp", to: "10.96.0.10:53", by: "b1 b2", byCNAT: "lost", saw: "$c1"},
		{name: "c1 to ClusterIP, remote endpoint", from: "c1", how: "tcp", to: "10.96.0.15:80", by: "r1", byCNAT: "lost", saw: "$c1"},
		{name: "c1 to b1", from: "c1", how: "tcp", to: "$b1:8080", by: "lost", direct: true},
	}
})

// egress are lists that let c1 connect to networks, and nobody to it.
func egress(networks ...string) string {
	var permits []string
	for _, network := range networks {
		for _, protocol := range []string{"6", "17"} {
			permits = append(permits, "permit+reflect proto "+protocol+" src $c1/32 dst "+network)
		}
	}
	return `
n1 vpp set acl-plugin acl ` + strings.Join(permits, ", ") + `, deny src 0.0.0.0/0 tag c1-may
n1 vpp set acl-plugin acl deny src 0.0.0.0/0 tag c1-admits
n1 vpp set acl-plugin interface host-pc1 input acl 0
n1 vpp set acl-plugin interface host-pc1 output acl 1`
}

// flap: interfaces change while the agent runs.
var flap = plain.with(func(l *layout) {
	l.name, l.v6 = "flap", false
	again := func(pod, k, gateway string) string {
		return strings.NewReplacer("%p", pod, "%k", k, "%g", gateway).Replace(`
vpp create host-interface name p%p hw-addr 02:fe:00:00:04:0%k
vpp set interface state host-p%p up
vpp set interface ip address host-p%p %g/24`)
	}
	up := `
vpp create host-interface name up hw-addr 02:fe:00:00:01:01
vpp set interface state host-up up
vpp set interface ip address host-up $node/24`
	routes := `
vpp ip route add 0.0.0.0/0 via $ext host-up
vpp ip route add $theirnet via $theirnode host-up`
	l.steps = []step{
		{name: "the interface of b2 down and up", script: "vpp set interface state host-pb2 down\nvpp set interface state host-pb2 up"},
		{name: "the interface of b2 is made again", script: "vpp delete host-interface name pb2" + again("b2", "2", "10.1.3.1")},
		{name: "the interface of c1 is made again, with another index", script: "vpp delete host-interface name pc1\nvpp create loopback interface instance 77" + again("c1", "0", "10.1.1.1")},
		{name: "the uplink is made again, with another index", script: "vpp delete host-interface name up\nvpp create loopback interface instance 78" + up + routes},
		{name: "the uplink's address is set again", script: "vpp set interface ip address del host-up $node/24\nvpp set interface ip address host-up $node/24" + routes},
		{name: "the uplink moves to table 5", script: `
vpp ip table add 5
vpp ip route add table 5 $net via ip4-lookup-in-table 0
vpp ip route add table 5 172.30.0.0/24 via ip4-lookup-in-table 0
vpp ip route del 0.0.0.0/0
vpp ip route del $theirnet
vpp set interface ip address del host-up $node/24
vpp set interface ip table host-up 5
vpp set interface ip address host-up $node/24
vpp ip route add table 5 0.0.0.0/0 via $ext host-up
vpp ip route add table 5 $theirnet via $theirnode host-up
vpp ip route add 0.0.0.0/0 via ip4-lookup-in-table 5`},
	}
	l.looks = []string{"get interfaces", `$up1 +uplink`}
})

// vlan: the uplink is a sub-interface with a VLAN. Where the kernel has no VLANs, node n2 is the
// switch: it takes the tag off, and the client outside is at an untagged port of it.
var vlan = plain.with(func(l *layout) {
	l.name = "vlan"
	l.vars = []string{"up1", "host-up.100", "up2", "bvi8"}
	l.fabric = strings.ReplaceAll(l.fabric, "port ext:eth0", "link n2:pext ext:eth0")
	for _, n := range []string{"1", "2"} {
		l.fabric += strings.ReplaceAll(`
n% vpp create host-interface name up hw-addr 02:fe:00:00:01:0%
n% vpp set interface state host-up up
n% vpp create sub-interfaces host-up 100
n% vpp set interface state host-up.100 up`, "%", n)
	}
	l.fabric += `
n2 vpp create bridge-domain 8 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0
n2 vpp set interface promiscuous on host-up
n2 vpp create host-interface name pext
n2 vpp set interface state host-pext up
n2 vpp set interface l2 bridge host-pext 8
n2 vpp set interface l2 bridge host-up.100 8
n2 vpp set interface l2 tag-rewrite host-up.100 pop 1
n2 vpp bvi create instance 8
n2 vpp set interface l2 bridge bvi8 8 bvi
n2 vpp set interface state bvi8 up`
	l.node = `
vpp set interface ip address $up $node/24
vpp set interface ip address $up $node6/64`
	l.looks = []string{"get interfaces", `$up1 +uplink`}
})

// bond: the uplink is a bond of two interfaces.
var bond = plain.with(func(l *layout) {
	l.name = "bond"
	l.vars = []string{"up1", "BondEthernet0", "up2", "BondEthernet0"}
	l.fabric += "\nport n1:uq\nport n2:uq"
	l.node = bonded("active-backup")
	l.looks = []string{"get interfaces", `$up1 +uplink`}
})

// bonded makes the bond of a node.
func bonded(mode string) string {
	text := "\nvpp create bond mode " + mode + " hw-addr 02:fe:00:00:02:0$n"
	for k, name := range []string{"up", "uq"} {
		text += strings.NewReplacer("%i", name, "%k", string(rune('1'+k))).Replace(`
vpp create host-interface name %i hw-addr 02:fe:00:00:0%k:1$n
vpp bond add BondEthernet0 host-%i
vpp set interface state host-%i up`)
	}
	return text + `
vpp set interface state BondEthernet0 up
vpp set interface ip address BondEthernet0 $node/24
vpp set interface ip address BondEthernet0 $node6/64`
}

// bondXor: the bond sends over both of its interfaces, which lead to a switch of their own.
var bondXor = bond.with(func(l *layout) {
	l.name = "bondxor"
	l.node = bonded("xor load-balance l34")
	l.fabric = without(l.fabric, "port n")
	for _, n := range []string{"1", "2"} {
		l.fabric += strings.ReplaceAll(`
fab ip link add name bx% type bridge
fab ip link set bx% up
fab ip link add name j% type veth peer name k%
fab ip link set j% master bx%
fab ip link set k% master fabric
fab ip link set j% up
fab ip link set k% up
link n%:up fab:a%
link n%:uq fab:b%
fab ip link set a% master bx%
fab ip link set b% master bx%`, "%", n)
	}
})

// multus: c1 and b1 have a second interface, in table 20, with a network of its own whose router is
// ext2. There the cluster IP of a service is the address of an ordinary host.
var multus = plain.with(func(l *layout) {
	l.name = "multus"
	l.last = `
link n1:up9 ext2:eth0
ext2 ip addr add 10.77.9.2/24 dev eth0
ext2 ip addr add 10.96.0.10/32 dev lo
ext2 ip route add default via 10.77.9.1
n1 vpp ip table add 20
n1 vpp create host-interface name up9
n1 vpp set interface ip table host-up9 20
n1 vpp set interface state host-up9 up
n1 vpp set interface ip address host-up9 10.77.9.1/24
n1 vpp ip route add table 20 0.0.0.0/0 via 10.77.9.2 host-up9`
	for i, pod := range []string{"c1", "b1"} {
		l.last += strings.NewReplacer("%p", pod, "%k", string(rune('1'+i))).Replace(`
link n1:m%p %p:net1
%p ip addr add 10.77.%k.2/24 dev net1
%p ip route add 10.77.0.0/16 via 10.77.%k.1
%p ip route add 10.96.0.10/32 via 10.77.%k.1 table 77
%p ip route add 10.77.0.0/16 via 10.77.%k.1 table 77
%p ip rule add from 10.77.%k.2 table 77
n1 vpp create host-interface name m%p
n1 vpp set interface ip table host-m%p 20
n1 vpp set interface state host-m%p up
n1 vpp set interface ip address host-m%p 10.77.%k.1/24`)
	}
	l.others = []string{"ext2"}
	l.instead = unreachable()
	l.also = []check{
		{name: "second network, pod to pod", from: "c1", how: "tcp", to: "10.77.2.2:8080", by: "b1", saw: "10.77.1.2", direct: true},
		{name: "second network, pod to outside", from: "c1", how: "tcp", to: "10.77.9.2:8080", by: "ext2", saw: "10.77.1.2", direct: true},
		{name: "second network, outside to pod", from: "ext2", how: "tcp", to: "10.77.2.2:8080", by: "b1", saw: "10.77.9.2", direct: true},
		{name: "second network, address of a service", from: "c1", how: "tcp", source: "10.77.1.2", to: "10.96.0.10:8080", by: "ext2", saw: "10.77.1.2", direct: true},
	}
	l.looks = []string{"get interfaces", `host-mc1 +other +true +true`}
})
