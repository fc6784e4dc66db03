package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
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

// clusterIP returns the address of a service.
func clusterIP(at int) string {
	return fmt.Sprintf("10.%d.%d.%d", 96+at/62_500, at/250%250, 1+at%250)
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
