package namespaces

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// check is what becomes of packets of a host: by whom they are answered, and which source they
// have there.
type check struct {
	name string
	// from is the host, how its protocol: tcp, upload and download for much data by TCP, udp,
	// fragments for large datagrams of UDP, or raw for one packet of each foreign protocol, and to
	// the address, with the port. With how vpp, to is a command of VPP at node n1, and by a regular
	// expression for its answer.
	from, how, to string
	// by are the hosts that answer, any of them, and saw the sources they may see, separated by
	// blanks. "lost" and "refused" are answers of no host.
	by, saw string
	// byCNAT and sawCNAT take their places where CNAT serves IPv4; "" = they are the same.
	byCNAT, sawCNAT string
	// source is the address of the host that is used; "" = its choice.
	source string
	// direct: no service is asked; the check holds without an agent as well.
	direct bool
}

// refusals are the names of the checks that ask where nothing is served, which VPP refuses by its
// session layer.
func refusals() (names []string) {
	for _, c := range commonChecks {
		if c.by == "refused" {
			names = append(names, c.name)
		}
	}
	return names
}

// unreachable takes the place of these checks where VPP may not answer clients: its route answers
// with ICMP, whose rate VPP limits.
func unreachable() (all []check) {
	for _, name := range refusals() {
		all = append(all, check{name: name, how: "vpp", to: "show ip fib 10.96.0.17/32", by: "send-unreachable"})
	}
	return all
}

// commonChecks are the checks of every layout. The names begin with who asks.
var commonChecks = []check{
	{name: "pod to ClusterIP", from: "c1", how: "tcp", to: "10.96.0.10:80", by: "b1 b2", saw: "$c1"},
	{name: "pod to ClusterIP, UDP", from: "c1", how: "udp", to: "10.96.0.10:53", by: "b1 b2", saw: "$c1"},
	{name: "pod to ClusterIP, remote endpoint", from: "c1", how: "tcp", to: "10.96.0.15:80", by: "r1", saw: "$c1"},
	{name: "pod to ClusterIP, remote endpoint, UDP", from: "c1", how: "udp", to: "10.96.0.15:53", by: "r1", saw: "$c1"},
	{name: "pod to ClusterIP, host endpoint", from: "c1", how: "tcp", to: "10.96.0.14:80", by: "host", saw: "$c1"},
	{name: "pod to ClusterIP, outside endpoint", from: "c1", how: "tcp", to: "10.96.0.13:80", by: "ext", saw: "$c1"},
	{name: "pod to itself", from: "b1", how: "tcp", to: "10.96.0.12:80", by: "b1", saw: "$loop"},
	{name: "pod to node port", from: "c1", how: "tcp", to: "$node1:30080", by: "b1 b2", saw: "$loop $c1"},
	{name: "pod to node port, remote endpoint", from: "c1", how: "tcp", to: "$node1:30081", by: "r1", saw: "$loop $c1"},
	{name: "outside to node port", from: "ext", how: "tcp", to: "$node1:30080", by: "b1 b2", saw: "$loop $ext"},
	{name: "outside to node port, remote endpoint", from: "ext", how: "tcp", to: "$node1:30081", by: "r1", saw: "$loop"},
	{name: "outside to node port, policy Local", from: "ext", how: "tcp", to: "$node1:30082", by: "b1 b2", saw: "$ext"},
	{name: "host to ClusterIP", from: "host", how: "tcp", to: "10.96.0.10:80", by: "b1 b2", saw: "$host"},
	{name: "host to ClusterIP, remote endpoint", from: "host", how: "tcp", to: "10.96.0.15:80", by: "r1", saw: "$host"},
	{name: "pod to ClusterIP without endpoints", from: "c1", how: "tcp", to: "10.96.0.17:80", by: "refused"},
	{name: "pod to ClusterIP without endpoints, UDP", from: "c1", how: "udp", to: "10.96.0.17:53", by: "refused"},
	{name: "pod to another port of a ClusterIP, UDP", from: "c1", how: "udp", to: "10.96.0.10:81", by: "refused"},
	{name: "pod to ClusterIP without endpoints, IPv6", from: "c1", how: "tcp", to: "[fd00:96::17]:80", by: "refused"},
	{name: "pod to ClusterIP without endpoints, IPv6, UDP", from: "c1", how: "udp", to: "[fd00:96::17]:53", by: "refused"},
	{name: "pod to ClusterIP, IPv6", from: "c1", how: "tcp", to: "[fd00:96::10]:80", by: "b1 b2", saw: "$c16"},
	{name: "pod to ClusterIP, remote endpoint, IPv6", from: "c1", how: "tcp", to: "[fd00:96::15]:80", by: "r1", saw: "$c16"},

	{name: "pod to pod", from: "c1", how: "tcp", to: "$b1:8080", by: "b1", saw: "$c1", direct: true},
	{name: "pod to pod, UDP", from: "c1", how: "udp", to: "$b1:5353", by: "b1", saw: "$c1", direct: true},
	{name: "pod to pod of the other node", from: "c1", how: "tcp", to: "$r1:8080", by: "r1", saw: "$c1", direct: true},
	{name: "pod of the other node to pod", from: "r1", how: "tcp", to: "$b1:8080", by: "b1", saw: "$r1", direct: true},
	{name: "pod to outside", from: "c1", how: "tcp", to: "$ext:8080", by: "ext", saw: "$c1", direct: true},
	{name: "outside to pod", from: "ext", how: "tcp", to: "$b1:8080", by: "b1", saw: "$ext", direct: true},
	{name: "host to pod", from: "host", how: "tcp", to: "$b1:8080", by: "b1", saw: "$host", direct: true},
	{name: "pod to host", from: "b1", how: "tcp", to: "$host:8080", by: "host", saw: "$b1", direct: true},

	{name: "foreign protocols, pod to pod", from: "c1", how: "raw", to: "$b1", by: "b1", saw: "$c1", direct: true},
	{name: "foreign protocols, pod to pod of the other node", from: "c1", how: "raw", to: "$r1", by: "r1", saw: "$c1", direct: true},
	{name: "foreign protocols, pod to outside", from: "c1", how: "raw", to: "$ext", by: "ext", saw: "$c1", direct: true},
	{name: "foreign protocols, outside to pod", from: "ext", how: "raw", to: "$b1", by: "b1", saw: "$ext", direct: true},
}

// fragmented are checks with datagrams larger than the packets of the network. CNAT stands before
// VPP's reassembly.
var fragmented = []check{
	{name: "pod to ClusterIP, fragments", from: "c1", how: "fragments", to: "10.96.0.10:53", by: "b1 b2", byCNAT: "lost", saw: "$c1"},
	{name: "pod to ClusterIP, remote endpoint, fragments", from: "c1", how: "fragments", to: "10.96.0.15:53", by: "r1", byCNAT: "lost", saw: "$c1"},
	{name: "pod to pod of the other node, fragments", from: "c1", how: "fragments", to: "$r1:5353", by: "r1", saw: "$c1", direct: true},
}

// checks are those of the layout, with its addresses.
func (w *world) checks() []check {
	var made []check
	list := commonChecks
	if w.only != nil {
		list = w.only
	}
	for _, c := range slices.Concat(list, w.also) {
		if i := slices.IndexFunc(w.instead, func(o check) bool { return o.name == c.name }); i >= 0 {
			c = w.instead[i]
		}
		switch {
		case slices.Contains(w.not, c.name), !w.hosted && (c.from == "host" || c.by == "host"), !w.v6 && strings.HasPrefix(c.to, "["):
			continue
		}
		if *renderer == "cnat" {
			c.by, c.saw = cmp.Or(c.byCNAT, c.by), cmp.Or(c.sawCNAT, c.saw)
		}
		vars := w.variables("1", "2")
		c.to, c.saw = expand(c.to, vars...), expand(c.saw, vars...)
		made = append(made, c)
	}
	return made
}

// connections is how many a check makes.
const connections = 4

// packetID numbers foreign packets.
var packetID atomic.Int64

// make makes a check, and returns "" or what it got.
func (w *world) make(c check) string {
	switch c.how {
	case "raw":
		return w.makeRaw(c)
	case "vpp":
		got, err := w.ctl(c.to)
		if err != nil || !regexp.MustCompile(c.by).MatchString(got) {
			return fmt.Sprint(got, err)
		}
		return ""
	}
	got, err := w.to(c.from, c.how, c.source+" "+c.to, connections)
	if err != nil {
		return err.Error()
	}
	for _, line := range strings.Split(got, "\n") {
		by, saw, answered := strings.Cut(line, " saw ")
		if !slices.Contains(strings.Fields(c.by), by) || answered && !slices.Contains(strings.Fields(c.saw), saw) {
			return strings.ReplaceAll(got, "\n", ", ")
		}
	}
	return ""
}

// makeRaw sends a packet of each foreign protocol and looks at what has come.
func (w *world) makeRaw(c check) string {
	id := int(packetID.Add(1))
	if _, err := w.to(c.from, "raw", c.source+" "+c.to, id); err != nil {
		return err.Error()
	}
	var want []string
	for _, protocol := range foreign {
		want = append(want, fmt.Sprint(protocol, " saw ", c.saw))
	}
	slices.Sort(want)
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		got, err := w.to(c.by, "heard", "", id)
		switch {
		case err != nil:
			return err.Error()
		case got == strings.Join(want, "\n"):
			return ""
		case time.Since(begun) > attempt:
			return "of 4 packets there came: " + cmp.Or(strings.ReplaceAll(got, "\n", ", "), "none")
		}
	}
}

// objects are what Kubernetes says: two nodes, four pods, and a service for each kind of endpoint.
func (w *world) objects() string {
	vars := w.variables("1", "2")
	var b strings.Builder
	for _, n := range []string{"1", "2"} {
		cidrs, addresses := "$net"+n, "{type: InternalIP, address: $node"+n+"}"
		if w.v6 {
			cidrs, addresses = cidrs+`, "$net6`+n+`"`, addresses+`, {type: InternalIP, address: "$node6`+n+`"}`
		}
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%s}\nspec: {podCIDR: $net%s, podCIDRs: [%s]}\nstatus: {addresses: [%s]}\n", n, n, cidrs, addresses)
		for _, pod := range pods[n] {
			ips := "{ip: $" + pod + "}"
			if w.v6 {
				ips += `, {ip: "$` + pod + `6"}`
			}
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %[1]s, namespace: shop, uid: %[1]s}\nspec: {nodeName: n%[2]s, containers: [{name: c, image: x}]}\nstatus: {phase: Running, podIP: $%[1]s, podIPs: [%[3]s]}\n", pod, n, ips)
		}
	}
	w.service(&b, "web", "10", "n1", 30080, "Cluster", "b1", "b2")
	w.service(&b, "self", "12", "n1", 0, "", "b1")
	w.service(&b, "outside", "13", "", 0, "", "ext")
	if w.hosted {
		w.service(&b, "onhost", "14", "n1", 0, "", "host")
	}
	w.service(&b, "far", "15", "n2", 30081, "Cluster", "r1")
	w.service(&b, "empty", "17", "n1", 0, "")
	w.service(&b, "local", "16", "n1", 30082, "Local", "b1", "b2")
	return expand(b.String(), vars...)
}

// service writes a service, whose last byte of its addresses is given, with its slices.
func (w *world) service(b *strings.Builder, name, last, node string, nodePort int, policy string, endpoints ...string) {
	kind, families, ips, port := "ClusterIP", "IPv4", "10.96.0."+last, ""
	six := w.v6 && node != "" && !slices.Contains(endpoints, "host")
	if six {
		families, ips = "IPv4, IPv6", ips+`, "fd00:96::`+last+`"`
	}
	if nodePort > 0 {
		kind, port = "NodePort, externalTrafficPolicy: "+policy, fmt.Sprintf(", nodePort: %d", nodePort)
	}
	fmt.Fprintf(b, "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop}\nspec: {type: %s, ipFamilyPolicy: PreferDualStack, ipFamilies: [%s], clusterIP: 10.96.0.%s, clusterIPs: [%s], ports: [{name: http, port: 80, protocol: TCP%s}, {name: dns, port: 53, protocol: UDP}]}\n", name, kind, families, last, ips, port)
	slice := func(family, suffix string) {
		var list []string
		for _, e := range endpoints {
			on := ""
			if node != "" {
				on = ", nodeName: " + node
			}
			list = append(list, fmt.Sprintf(`{addresses: ["$%s%s"]%s}`, e, suffix, on))
		}
		fmt.Fprintf(b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-%s, namespace: shop, labels: {kubernetes.io/service-name: %s}}\naddressType: %s\nports: [{name: http, port: 8080, protocol: TCP}, {name: dns, port: 5353, protocol: UDP}]\nendpoints: [%s]\n", name, strings.ToLower(family), name, family, strings.Join(list, ", "))
	}
	slice("IPv4", "")
	if six {
		slice("IPv6", "6")
	}
}
