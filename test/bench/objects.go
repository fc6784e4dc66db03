package main

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	namespace = "bench"
	nodeName  = "n1"
	nodeIP    = "192.168.16.1"
	// endpoints is how many a service has.
	endpoints = 5
	// perFile is how many services a file has.
	perFile = 100
	// maxServices is how many cluster IPs there are, of those that the files use.
	maxServices = 100_000
)

const nodeObject = `apiVersion: v1
kind: Node
metadata: {name: n1, uid: n1}
spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.16.1}]}
`

// serviceObject is a Service. Arguments: number, address.
const serviceObject = `---
apiVersion: v1
kind: Service
metadata: {namespace: bench, name: s%[1]d, uid: u-%[1]d, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  clusterIP: %[2]s
  clusterIPs: [%[2]s]
  ipFamilies: [IPv4]
  ports: [{name: http, port: 80, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: bench, name: s%[1]d-1, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
`

// files is a directory of objects.
type files struct{ dir string }

func (f *files) arguments() ([]string, error) {
	return []string{"--kube-source", "files:" + f.dir}, nil
}

func (f *files) close() {}

// writeObjects writes a node and so many services into a new directory.
func writeObjects(dir string, services int) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make directory of objects: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte(nodeObject), 0o600); err != nil {
		return fmt.Errorf("write node: %w", err)
	}
	for first := 0; first < services; first += perFile {
		if err := writeServices(filepath.Join(dir, fmt.Sprintf("services-%06d.yaml", first)), first, min(first+perFile, services)); err != nil {
			return fmt.Errorf("write services: %w", err)
		}
	}
	return nil
}

// endpoint returns the address and the node of an endpoint. There are 250 nodes, the first of which
// is this one.
func endpoint(at int) (address, node string) {
	n := 1 + at/250%250
	return fmt.Sprintf("10.%d.%d.%d", 1+at/62_500, n, 1+at%250), fmt.Sprintf("n%d", n)
}

// writeServices writes one file.
func writeServices(path string, first, end int) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	out := bufio.NewWriter(file)
	for i := first; i < end; i++ {
		fmt.Fprintf(out, serviceObject, i, clusterIP(i))
		for e := range endpoints {
			address, node := endpoint(i*endpoints + e)
			fmt.Fprintf(out, "- {addresses: [%s], conditions: {ready: true}, nodeName: %s}\n", address, node)
		}
	}
	return out.Flush()
}

// clusterIP is the address of a service, where no API server allocates one.
func clusterIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", 96+i/62_500, i/250%250, 1+i%250) }

// thisNode is the node of the agent.
func thisNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: nodeName}, Spec: corev1.NodeSpec{PodCIDR: "10.1.1.0/24", PodCIDRs: []string{"10.1.1.0/24"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP}}},
	}
}

// serviceOf is a service without a selector and without an address.
func serviceOf(i int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d", i), UID: types.UID(fmt.Sprintf("u-%d", i))},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}},
	}
}

// sliceOf is the EndpointSlice of a service.
func sliceOf(i int) *discoveryv1.EndpointSlice {
	http, port, tcp, ready := "http", int32(8080), corev1.ProtocolTCP, true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d-1", i), Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", i)}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &http, Port: &port, Protocol: &tcp}},
	}
	for e := range endpoints {
		address, node := endpoint(i*endpoints + e)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: &node,
		})
	}
	return slice
}

// sixth is the IPv6 address with an IPv4 address at its end.
func sixth(prefix, four string) string { return netip.MustParseAddr(prefix + four).String() }

// sixSliceOf is the EndpointSlice of IPv6 of a service, with the same endpoints.
func sixSliceOf(i int) *discoveryv1.EndpointSlice {
	slice := sliceOf(i)
	slice.Name, slice.AddressType = fmt.Sprintf("s%d-6", i), discoveryv1.AddressTypeIPv6
	for _, e := range slice.Endpoints {
		e.Addresses[0] = sixth("fd00:1::", e.Addresses[0])
	}
	return slice
}
