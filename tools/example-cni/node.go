package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	hostDevice = "vpp-host" // the host's end of its link to VPP
	hostLink   = "vpp-peer" // the other end
	turnEvery  = 2 * time.Second
)

// nodeProcess keeps the VPP of a node as the nodes of the cluster and the pods of this node need
// it.
type nodeProcess struct {
	name, apiServer, uplink string
	table                   uint // of pods, in VPP
	gateways                []netip.Addr
	binDir, configDir       string
	store                   store

	nodes  []node // as the API server said last
	vpp    *vpp   // nil: connect in the next turn
	known  map[string]bool
	routes map[netip.Prefix]netip.Addr // of VPP by this process, to other nodes
	host   string                      // nodes for which the host was configured
	plugin string                      // configuration with which the plugin was installed
	said   string                      // last state, which is logged once
}

// runNode works until the process is killed. VPP and the pods stay as they are then.
func runNode(arguments []string) error {
	flags := flag.NewFlagSet("example-cni node", flag.ContinueOnError)
	n := &nodeProcess{store: stateDir}
	flags.StringVar(&n.name, "node-name", "", "`NAME` of this Node")
	flags.StringVar(&n.apiServer, "api-server", "", "`URL` of the API server, which must not be a ClusterIP")
	flags.StringVar(&n.uplink, "uplink", "", "network interface `NAME` that belongs to VPP alone")
	flags.UintVar(&n.table, "pod-table", 0, "`ID` of the table in VPP with the interfaces of pods and of the host")
	flags.StringVar(&n.binDir, "bin-dir", "/opt/cni/bin", "install the plugin in `DIR`")
	flags.StringVar(&n.configDir, "config-dir", "/etc/cni/net.d", "write the network configuration in `DIR`")
	flags.Func("gateways", "default gateways of VPP, `IP,...`, at most one per family", func(value string) (err error) {
		for _, word := range strings.Split(value, ",") {
			gateway, wrong := netip.ParseAddr(word)
			err = errors.Join(err, wrong)
			n.gateways = append(n.gateways, gateway)
		}
		return err
	})
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if n.name == "" || n.apiServer == "" || !isDevice(n.uplink) {
		return errors.New("--node-name, --api-server and --uplink are required, the last one as the name of an interface")
	}
	for {
		err := n.turn()
		if text := fmt.Sprint(err); text != n.said {
			n.said = text
			log.Print("example-cni: state of VPP: ", strings.Replace(text, "<nil>", "as it should be", 1))
		}
		time.Sleep(turnEvery)
	}
}

// turn reads the nodes and repairs. While the API server is away, the last known nodes count.
func (n *nodeProcess) turn() error {
	nodes, away := inCluster(n.apiServer)
	if nodes != nil { // without the nodes that cannot be read
		n.nodes = nodes
	}
	err := n.serve()
	if err != nil && n.vpp != nil {
		n.vpp.close()
		n.vpp = nil
	}
	return errors.Join(away, err)
}

// serve brings VPP and the host into the state that the nodes and pods ask for.
func (n *nodeProcess) serve() error {
	var own *node
	for i := range n.nodes {
		if n.nodes[i].name == n.name {
			own = &n.nodes[i]
		}
	}
	if own == nil || len(own.pods) == 0 || len(own.uplink) == 0 {
		return fmt.Errorf("node %s needs podCIDRs and the annotation %s", n.name, uplinkAnnotation)
	}
	unlock, err := n.store.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if n.vpp == nil {
		if n.vpp, err = connect(uint32(n.table)); err != nil {
			return err
		}
		n.known, n.routes = map[string]bool{}, map[netip.Prefix]netip.Addr{}
	} else if err := n.vpp.read(); err != nil {
		return err
	}
	for _, step := range []func(*node) error{n.makeUplink, n.makeHost, n.keepPods, n.install} {
		if err := step(own); err != nil {
			return err
		}
	}
	return nil
}

// numbered are the addresses with a number in networks.
func numbered(networks []netip.Prefix, number uint32) (addresses []netip.Addr) {
	for _, p := range networks {
		addresses = append(addresses, nth(p, number))
	}
	return addresses
}

// makeUplink joins VPP to the network, with routes to the gateways and the other nodes.
func (n *nodeProcess) makeUplink(own *node) error {
	if err := n.vpp.makeTable(own.pods); err != nil {
		return err
	}
	if err := n.vpp.makeGateway(numbered(own.pods, gatewayNumber)); err != nil {
		return err
	}
	if _, have := n.vpp.have["host-"+n.uplink]; !have {
		// Frames for VPP have another address than those for the network interface.
		if err := ip("", "link set "+n.uplink+" up promisc on"); err != nil {
			return err
		}
	}
	index, err := n.vpp.take(n.uplink, macOf(n.name+"/"+n.uplink))
	if err != nil {
		return err
	}
	if !n.known[n.uplink] {
		for _, address := range own.uplink {
			if err := n.vpp.address(index, address); err != nil {
				return err
			}
		}
		n.known[n.uplink] = true
	}
	want := n.wantedRoutes()
	for to, via := range n.routes {
		if want[to] != via {
			if err := n.vpp.route(0, to, via, index, false); err != nil {
				return err
			}
			delete(n.routes, to)
		}
	}
	for to, via := range want {
		if n.routes[to] != via {
			if err := n.vpp.route(0, to, via, index, true); err != nil {
				return err
			}
			n.routes[to] = via
		}
	}
	return nil
}

// wantedRoutes are the routes through the uplink.
func (n *nodeProcess) wantedRoutes() map[netip.Prefix]netip.Addr {
	want := map[netip.Prefix]netip.Addr{}
	for _, gateway := range n.gateways {
		want[everywhere(gateway)[0]] = gateway
	}
	for _, other := range n.nodes {
		if other.name == n.name {
			continue
		}
		to := other.pods
		for _, address := range other.internal {
			to = append(to, single(address))
		}
		for _, network := range to {
			if via := other.next(network.Addr().Is6()); via.IsValid() {
				want[network] = via
			}
		}
	}
	return want
}

// makeHost joins the host to VPP, so that the kubelet reaches pods, and pods the host.
func (n *nodeProcess) makeHost(own *node) error {
	addresses := numbered(own.pods, hostNumber)
	if state := fmt.Sprint(n.nodes); state != n.host {
		if _, err := net.InterfaceByName(hostDevice); err != nil {
			if err := makeLink(hostLink, hostDevice, ""); err != nil {
				return err
			}
		}
		err := configure(hostDevice, "", addresses, func(a netip.Addr) (pods []netip.Prefix) {
			for _, other := range n.nodes {
				for _, network := range other.pods {
					if network.Addr().Is6() == a.Is6() {
						pods = append(pods, network)
					}
				}
			}
			return pods
		})
		if err != nil {
			return err
		}
		n.host = state
	}
	if n.known[hostLink] {
		return nil
	}
	if err := n.vpp.attach(hostLink, addresses); err != nil {
		return err
	}
	for _, address := range own.internal {
		for _, via := range addresses {
			if via.Is6() == address.Is6() {
				if err := n.vpp.route(0, single(address), via, n.vpp.have["host-"+hostLink], true); err != nil {
					return err
				}
			}
		}
	}
	n.known[hostLink] = true
	return nil
}

// keepPods gives a VPP that has restarted the interfaces of pods, and takes away those that a pod
// has left behind.
func (n *nodeProcess) keepPods(*node) error {
	all, err := n.store.list()
	if err != nil {
		return err
	}
	for link, a := range all {
		if n.known[link] {
			continue
		}
		if a.damaged() { // VPP has it, or the pod needs a new one
			log.Printf("example-cni: the attachment of %s cannot be read: a new VPP does not get it; delete its pod", link)
			n.known[link] = true
			continue
		}
		if _, err := net.InterfaceByName(link); err != nil {
			continue // removed by the kernel with its pod; the runtime will call DEL
		}
		if err := n.vpp.attach(link, a.Addresses); err != nil {
			return err
		}
		n.known[link] = true
	}
	for name := range n.vpp.have {
		link, ours := strings.CutPrefix(name, "host-pod")
		if _, kept := all["pod"+link]; ours && !kept {
			if err := n.vpp.detach("pod"+link, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// install copies the plugin and writes its configuration, which makes the node Ready.
func (n *nodeProcess) install(own *node) error {
	config, err := json.MarshalIndent(map[string]any{
		"cniVersion": cniVersion, "name": "example-cni",
		"plugins": []any{map[string]any{"type": "example-cni", "podCIDRs": own.pods, "podTable": n.table}},
	}, "", "  ")
	if err != nil {
		return err
	}
	if n.plugin == string(config) {
		return nil
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path    string
		content []byte
		mode    os.FileMode
	}{
		{filepath.Join(n.binDir, "example-cni"), program, 0o755},
		{filepath.Join(n.configDir, "10-example-cni.conflist"), append(config, '\n'), 0o644},
	} {
		if err := replace(f.path, f.content, f.mode); err != nil {
			return fmt.Errorf("install %s: %w", f.path, err)
		}
	}
	n.plugin = string(config)
	return nil
}
