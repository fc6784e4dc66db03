package normalize

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/messages"
)

// ParseAddr parses an IP address as upstream's ParseIPSloppy does: leading zeros in IPv4 octets are
// tolerated and mean decimal, IPv4-mapped IPv6 addresses are IPv4 addresses, zones are refused.
func ParseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	// Objects from the time before Go 1.17 may have 010.0.0.1, which every component of Kubernetes
	// read as 10.0.0.1.
	if err != nil {
		addr, err = netip.ParseAddr(withoutLeadingZeros(text))
	}
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%s is not an IP address", show(text))
	}
	return addr.Unmap(), nil
}

// withoutLeadingZeros removes the leading zeros of the octets of an IPv4 address, also of an IPv4
// address at the end of an IPv6 address.
func withoutLeadingZeros(text string) string {
	head := text[:strings.LastIndexByte(text, ':')+1]
	octets := strings.Split(text[len(head):], ".")
	if len(octets) != 4 {
		return text
	}
	for i, octet := range octets {
		if trimmed := strings.TrimLeft(octet, "0"); trimmed != "" {
			octets[i] = trimmed
		} else if octet != "" {
			octets[i] = "0"
		}
	}
	return head + strings.Join(octets, ".")
}

// ParsePrefix parses an address range in CIDR notation. It ignores blanks around the range, reads
// the address like ParseAddr, and clears host bits. A range of IPv4-mapped addresses becomes the
// IPv4 range.
func ParsePrefix(text string) (netip.Prefix, error) {
	bad := fmt.Errorf("%s is not an address range (ip/length)", show(text))
	address, length, found := strings.Cut(strings.TrimSpace(text), "/")
	if !found {
		return netip.Prefix{}, bad
	}
	addr, err := ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, bad
	}
	bits, err := strconv.ParseUint(length, 10, 8)
	if err != nil {
		return netip.Prefix{}, bad
	}
	// The length of ::ffff:10.0.0.0/104 counts from the start of the IPv6 address; below 96 the
	// range is no IPv4 range.
	if addr.Is4() && strings.Contains(address, ":") {
		if bits < 96 {
			return netip.Prefix{}, bad
		}
		bits -= 96
	}
	prefix, err := addr.Prefix(int(bits))
	if err != nil {
		return netip.Prefix{}, bad
	}
	return prefix, nil
}

// family returns the family of an address.
func family(addr netip.Addr) messages.IPFamily {
	if addr.Is4() {
		return messages.IPFamily_IPV4
	}
	return messages.IPFamily_IPV6
}

// unusable returns the reason why no service can be reached at this address; "" if one can.
// linkLocal says whether the field allows link-local addresses: the API server refuses them for
// endpoints and external IPs, not for load balancers.
func unusable(addr netip.Addr, linkLocal bool) string {
	switch {
	case addr.IsUnspecified():
		return "is the unspecified address"
	case addr.Is4() && addr.As4()[0] == 0:
		return `is an address of 0.0.0.0/8 ("this network")`
	case addr.IsLoopback():
		return "is a loopback address"
	case addr.IsMulticast():
		return "is a multicast address"
	case addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is the broadcast address"
	case !linkLocal && addr.IsLinkLocalUnicast():
		return "is a link-local address"
	}
	return ""
}

// serviceAddr parses the address of a service or endpoint, and reports the field if the address is
// unusable.
func (r *report) serviceAddr(field, text string, linkLocal bool) (netip.Addr, bool) {
	addr, err := ParseAddr(text)
	if err != nil {
		r.add(field, "%v", err)
		return netip.Addr{}, false
	}
	if why := unusable(addr, linkLocal); why != "" {
		r.add(field, "%s %s", addr, why)
		return netip.Addr{}, false
	}
	return addr, true
}

// address returns the canonical form of any address, or reports the field.
func (r *report) address(field, text string) (string, bool) {
	addr, err := ParseAddr(text)
	if err != nil {
		r.add(field, "%v", err)
	}
	return addr.String(), err == nil
}

// protocols are the known protocols; "" is TCP, the default of the API. An unknown protocol is an
// error, never a default.
var protocols = map[corev1.Protocol]messages.Protocol{
	"": messages.Protocol_TCP, corev1.ProtocolTCP: messages.Protocol_TCP, corev1.ProtocolUDP: messages.Protocol_UDP, corev1.ProtocolSCTP: messages.Protocol_SCTP,
}

// protocol maps a protocol.
func (r *report) protocol(field string, in corev1.Protocol) (messages.Protocol, bool) {
	return choose(r, field, in, protocols, "a protocol (TCP, UDP, SCTP)")
}

// number checks a port number.
func (r *report) number(field string, in int32) (uint32, bool) {
	if in < 1 || in > 65535 {
		r.add(field, "%d is not a port number (1 to 65535)", in)
		return 0, false
	}
	return uint32(in), true
}

// optionalPort checks a port number for which 0 means none. A bad number gives 0 too.
func (r *report) optionalPort(field string, in int32) uint32 {
	if in == 0 {
		return 0
	}
	out, _ := r.number(field, in)
	return out
}

// binding is the protocol and the number of a port or node port. Only one port of a Service can
// have it.
type binding struct {
	protocol messages.Protocol
	number   uint32
}

// portName is the key that joins ports of a Service with ports of its slices. Only one port of a
// Service can have it.
type portName struct {
	name     string
	protocol messages.Protocol
}

// servicePorts returns the usable ports. If ports collide, which the API server would refuse, the
// first one counts.
func (r *report) servicePorts(in []corev1.ServicePort) []*messages.ServicePort {
	var out []*messages.ServicePort
	names, ports, nodePorts := map[portName]int{}, map[binding]int{}, map[binding]int{}
	for i := range in {
		path := at("spec.ports", i)
		protocol, ok := r.protocol(path+".protocol", in[i].Protocol)
		if !ok {
			continue
		}
		port, ok := r.number(path+".port", in[i].Port)
		if !ok {
			continue
		}
		name := portName{in[i].Name, protocol}
		// Two ports with the same name would share their endpoints.
		if first, taken := names[name]; taken {
			r.add(path+".name", "%s is also the name of the %s port spec.ports[%d]", show(name.name), protocol, first)
			continue
		}
		if first, taken := ports[binding{protocol, port}]; taken {
			r.add(path+".port", "%d/%s is also the port of spec.ports[%d]", port, protocol, first)
			continue
		}
		names[name], ports[binding{protocol, port}] = i, i
		nodePort := r.optionalPort(path+".nodePort", in[i].NodePort)
		// Only the node port is dropped: the cluster IP of this port works without it.
		if first, taken := nodePorts[binding{protocol, nodePort}]; taken && nodePort != 0 {
			r.add(path+".nodePort", "%d/%s is also the node port of spec.ports[%d]", nodePort, protocol, first)
			nodePort = 0
		}
		if nodePort != 0 {
			nodePorts[binding{protocol, nodePort}] = i
		}
		out = append(out, &messages.ServicePort{Name: in[i].Name, Protocol: protocol, Port: port, NodePort: nodePort})
	}
	return out
}

// endpointPorts returns the usable ports of a slice. A port without a number is legal and gives no
// result: its backend port is not known, for example in a headless service. A port without a name
// cannot come from the API server, which fills in "".
func (r *report) endpointPorts(in []discoveryv1.EndpointPort) []*messages.EndpointPort {
	var out []*messages.EndpointPort
	for i := range in {
		path := at("ports", i)
		if in[i].Name == nil {
			r.add(path+".name", `is missing; a port without a name has the name ""`)
			continue
		}
		if in[i].Port == nil || *in[i].Port == 0 {
			continue
		}
		protocol, ok := r.protocol(path+".protocol", deref(in[i].Protocol, ""))
		if !ok {
			continue
		}
		if number, ok := r.number(path+".port", *in[i].Port); ok {
			out = append(out, &messages.EndpointPort{Name: *in[i].Name, Protocol: protocol, Port: number})
		}
	}
	return out
}
