package process

// configuration is that of the agent. Argument: the limits of services.
const configuration = `apiVersion: troupe.dev/v1alpha1
kind: AgentConfiguration
services:
  clusterCIDRs: [10.1.0.0/16]
  serviceCIDRs: [10.96.0.0/12]
  limits: %s
`

const nodeObject = `apiVersion: v1
kind: Node
metadata: {name: n1, uid: n1}
spec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.16.1}]}
`

// web is the service of the other tenant. Argument: its endpoint.
const web = `apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, uid: u-web, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10]
  ipFamilies: [IPv4]
  ports: [{name: http, port: 80, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [%s], conditions: {ready: true}, nodeName: n1}]
`

// greed is a service of the greedy tenant. Arguments: its number, external addresses, ports of the
// service, ports of the endpoints.
const greed = `apiVersion: v1
kind: Service
metadata: {namespace: evil, name: greedy-%[1]d, uid: u-greedy-%[1]d, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  clusterIP: 10.97.0.%[1]d
  clusterIPs: [10.97.0.%[1]d]
  ipFamilies: [IPv4]
  externalIPs: [%[2]s]
  ports: [%[3]s]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: evil, name: greedy-%[1]d-1, labels: {kubernetes.io/service-name: greedy-%[1]d}}
addressType: IPv4
ports: [%[4]s]
endpoints:
- {addresses: [10.1.1.2], conditions: {ready: true}, nodeName: n1}
- {addresses: [10.1.1.3], conditions: {ready: true}, nodeName: n1}
---
`

// tenantObjects are a service of a tenant, as JSON: the parser of YAML is no part of what is
// measured. Arguments: number of the tenant, of the service, cluster IP, family, affinity, ports of
// the service, ports of the endpoints, endpoints.
const tenantObjects = `{"apiVersion": "v1", "kind": "Service",
"metadata": {"namespace": "tenant-%[1]d", "name": "big-%[2]d", "uid": "u-%[1]d-%[2]d", "creationTimestamp": "2020-01-01T00:00:00Z"},
"spec": {"clusterIP": "%[3]s", "clusterIPs": ["%[3]s"], "ipFamilies": ["%[4]s"], "sessionAffinity": "%[5]s", "ports": [%[6]s]}}
{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
"metadata": {"namespace": "tenant-%[1]d", "name": "big-%[2]d-1", "labels": {"kubernetes.io/service-name": "big-%[2]d"}},
"addressType": "%[4]s", "ports": [%[7]s], "endpoints": [%[8]s]}
`
