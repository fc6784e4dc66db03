package normalize

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/messages"
)

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
