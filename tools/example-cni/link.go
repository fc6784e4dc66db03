package main

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
)

// vppMAC is the address of VPP at the links of pods and of the host. Each link has two ends only,
// so all can have the same address.
var vppMAC = [6]byte{2, 0xca, 0, 0, 0, 1}

// gateways are the next hops of the default routes of pods. No interface has these addresses.
var gateways = []netip.Addr{netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::1")}

// gatewayFor is the next hop for packets to an address.
func gatewayFor(address netip.Addr) netip.Addr {
	if address.Is6() {
		return gateways[1]
	}
	return gateways[0]
}

// single is the network of one address.
func single(address netip.Addr) netip.Prefix { return netip.PrefixFrom(address, address.BitLen()) }

// ip carries out commands of ip(8) in a network namespace ("": the namespace of the process).
func ip(namespace string, commands ...string) error {
	line := []string{"ip", "-batch", "-"}
	if namespace != "" {
		line = append([]string{"nsenter", "--net=" + namespace, "--"}, line...)
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(commands, "; "), err, out)
	}
	return nil
}

// makeLink makes a veth, with one end in a network namespace ("": the namespace of the process).
// The kernel gives the end for VPP no address.
func makeLink(link, device, namespace string) error {
	command := fmt.Sprintf("link add %s type veth peer name %s address %s", link, device, macText(macOf(link)))
	if namespace != "" {
		command += " netns " + namespace
	}
	return ip("", command, "link set "+link+" addrgenmode none up")
}

// configure gives the end of a link that is not VPP's its addresses and its routes.
func configure(device, namespace string, addresses []netip.Addr, routes func(netip.Addr) []netip.Prefix) error {
	commands := []string{"link set " + device + " up"}
	for _, a := range addresses {
		option := ""
		if a.Is6() {
			option = " nodad"
		}
		gateway := gatewayFor(a)
		commands = append(
			commands,
			fmt.Sprintf("address replace %s dev %s%s", single(a), device, option),
			fmt.Sprintf("neighbour replace %s lladdr %s dev %s nud permanent", gateway, macText(vppMAC), device),
			fmt.Sprintf("route replace %s dev %s src %s", single(gateway), device, a),
		)
		for _, to := range routes(a) {
			commands = append(commands, fmt.Sprintf("route replace %s via %s dev %s src %s", to, gateway, device, a))
		}
	}
	return ip(namespace, commands...)
}

// everywhere is the default route of the family of an address.
func everywhere(a netip.Addr) []netip.Prefix {
	any := netip.IPv4Unspecified()
	if a.Is6() {
		any = netip.IPv6Unspecified()
	}
	return []netip.Prefix{netip.PrefixFrom(any, 0)}
}

func macText(mac [6]byte) string { return net.HardwareAddr(mac[:]).String() }
