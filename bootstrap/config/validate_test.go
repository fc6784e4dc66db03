package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"version", "apiVersion: troupe.dev/v1\nkind: Agent\n", `f.yaml:1: apiVersion: "troupe.dev/v1" is not supported: expected troupe.dev/v1alpha1` + "\n" +
			`f.yaml:2: kind: "Agent" is not supported: expected AgentConfiguration`},
		{"enum", head + "log: {format: xml}\n", `f.yaml:3: log.format: "xml" is not one of json, text`},
		{"CIDR", head + "services:\n  clusterCIDRs: [10.0.0.0/8]\n  serviceCIDRs:\n  - 10.96.0.0\n", `f.yaml:6: services.serviceCIDRs[0]: "10.96.0.0" is not a network in CIDR notation, for example 10.96.0.0/12`},
		{"node port words", head + "services: {nodePortAddresses: [all, 10.0.0.0/8]}\n", `f.yaml:3: services.nodePortAddresses[0]: "all" must be the only entry`},
		{"external IP words", head + "services: {allowExternalIPs: [auto, 10.0.0.0/8]}\n", `f.yaml:3: services.allowExternalIPs[0]: "auto" must be the only entry`},
		{"external IP networks", head + "services: {allowExternalIPs: [10.0.0.1]}\n", `f.yaml:3: services.allowExternalIPs[0]: "10.0.0.1" is not a network in CIDR notation, for example 10.96.0.0/12`},
		{"API server", head + "kubernetes: {apiServer: '10.0.0.1:6443'}\n", `f.yaml:3: kubernetes.apiServer[0]: "10.0.0.1:6443" is not a URL, for example https://10.0.0.1:6443`},
		{"API servers", head + "kubernetes:\n  apiServer:\n  - https://10.0.0.1:6443\n  - x\n", `f.yaml:6: kubernetes.apiServer[1]: "x" is not a URL, for example https://10.0.0.1:6443`},
		{"dynamic SNAT without NAT44", head + "renderer: cnat\nsnat: {enabled: true}\n", `f.yaml:4: snat.enabled: needs NAT44, which renderer "cnat" does not use`},
		{"external configuration without NAT44", head + "renderer: cnat\nexternal: {file: /x}\n", `f.yaml:4: external.file: needs NAT44, which renderer "cnat" does not use`},
		{"number", head + "vpp: {requestWindow: 0}\n", "f.yaml:3: vpp.requestWindow: 0 is not between 1 and 4096"},
		{"duration", head + "nat44: {timeouts: {udp: 0s}}\n", "f.yaml:3: nat44.timeouts.udp: 0s is not between 1s and 24h"},
		{"drift checks too often", head + "healing: {driftCheckInterval: 999ms}\n", "f.yaml:3: healing.driftCheckInterval: 999ms is not between 1s and 24h"},
		{"loopback of the wrong family", head + "nat44: {loopbackIP: 'fd00::1'}\n", `f.yaml:3: nat44.loopbackIP: "fd00::1" is not an IPv4 address`},
		{"loopback that is none", head + "nat44: {loopbackIP: 127.0.0.1}\n", "f.yaml:3: nat44.loopbackIP: 127.0.0.1 cannot be used as the source of a packet"},
		{"overlay port", head + "snat: {overlayPorts: [4789/UDP, x, 0/UDP]}\n", `f.yaml:3: snat.overlayPorts[1]: "x" is not a port with its protocol, for example 4789/UDP` + "\n" +
			`f.yaml:3: snat.overlayPorts[2]: "0/UDP" is not a port with its protocol, for example 4789/UDP`},
		{"SNAT address of the wrong family", head + "snat: {enabled: true, address: 'fd00::1'}\n", `f.yaml:3: snat.address: "fd00::1" is not an IPv4 address`},
		{"SNAT that is off", head + "snat: {interface: uplink0}\n", "f.yaml:3: snat.interface: has no meaning while snat.enabled is false"},
		{"SNAT address that is the loopback", head + "nat44: {loopbackIP: 10.1.1.254}\nsnat: {enabled: true, address: 10.1.1.254}\n", "f.yaml:4: snat.address: 10.1.1.254 is nat44.loopbackIP"},
		{"URL", head + "etcd: {endpoints: ['10.0.0.1:2379']}\n", `f.yaml:3: etcd.endpoints[0]: "10.0.0.1:2379" is not a URL, for example https://10.0.0.1:2379`},
		{"address", head + "api: {httpAddress: '9990'}\n", `f.yaml:3: api.httpAddress: "9990" is not an address with a port, for example 127.0.0.1:9990`},
		{
			"allowed hosts", head + "api: {httpAllowedHosts: [a.example, 'http://b.example', 'c.example:80', '*', '', -d, 127.0.0.1]}\n",
			`f.yaml:3: api.httpAllowedHosts[1]: "http://b.example" is not the name of a host without a port, for example troupe.example.com` + "\n" +
				`f.yaml:3: api.httpAllowedHosts[2]: "c.example:80" is not the name of a host without a port, for example troupe.example.com` + "\n" +
				`f.yaml:3: api.httpAllowedHosts[3]: "*" is not the name of a host without a port, for example troupe.example.com` + "\n" +
				`f.yaml:3: api.httpAllowedHosts[4]: "" is not the name of a host without a port, for example troupe.example.com` + "\n" +
				`f.yaml:3: api.httpAllowedHosts[5]: "-d" is not the name of a host without a port, for example troupe.example.com`,
		},
		{"source", head + "kubernetes: {source: consul}\n", `f.yaml:3: kubernetes.source: "consul" is neither "kubernetes" nor "files:DIR"`},
		{"source without a directory", head + "kubernetes: {source: 'files:'}\n", `f.yaml:3: kubernetes.source: names no directory: expected "files:DIR"`},
		{"kubeconfig and files", head + "kubernetes: {source: 'files:/x', kubeconfig: /k}\n", `f.yaml:3: kubernetes.kubeconfig: has no meaning with source "files:/x"`},
		{"API server and files", head + "kubernetes: {source: 'files:/x', apiServer: 'https://a:1'}\n", `f.yaml:3: kubernetes.apiServer: has no meaning with source "files:/x"`},
		{"host route without a gateway", head + "services: {serviceCIDRs: [10.96.0.0/12]}\nhostRoute: {interface: vpp0}\n", "f.yaml: hostRoute.gateway: interface and gateway need each other"},
		{"host route without networks", head + "kubernetes: {source: 'files:/c'}\nhostRoute: {interface: vpp0, gateway: 172.30.0.1}\n", `f.yaml:4: hostRoute.interface: needs services.serviceCIDRs with source "files:/c"`},
		{"two host routes of a family", head + "services: {serviceCIDRs: [10.96.0.0/12]}\nhostRoute: {interface: vpp0, gateway: '172.30.0.1,172.30.0.2'}\n", `f.yaml:4: hostRoute.gateway: "172.30.0.1,172.30.0.2" has more than one address of a family`},
		{"node ports of the host", head + "services: {serviceCIDRs: [10.96.0.0/12]}\nhostRoute: {interface: vpp0, gateway: 172.30.0.1, nodePorts: '9-8'}\n", `f.yaml:4: hostRoute.nodePorts: "9-8" is not a range of ports, for example 30000-32767`},
		{"host route to no address", head + "services: {serviceCIDRs: [10.96.0.0/12]}\nhostRoute: {interface: vpp0, gateway: vpp}\n", `f.yaml:4: hostRoute.gateway: "vpp" is not an IP address`},
		{"certificate without a key", head + "etcd: {cert: /c}\n", "f.yaml:3: etcd.cert: cert and key need each other"},
		{"embedded with endpoints", head + "etcd: {mode: embedded, endpoints: ['http://a:1']}\n", `f.yaml:3: etcd.endpoints: has no meaning with mode "embedded"`},
		{"embedded without data", head + "etcd: {mode: embedded, dataDir: ''}\n", `f.yaml:3: etcd.dataDir: is required with mode "embedded"`},
		{"prefix", head + "etcd: {prefix: troupe/}\n", `f.yaml:3: etcd.prefix: "troupe/" must begin with / and not end with it`},
		{"leases without an API server", head + "kubernetes: {source: 'files:/x'}\nnodeStore: {type: kubernetes}\n", `f.yaml:4: nodeStore.type: "kubernetes" needs the API server as kubernetes.source`},
		{"namespace", head + "nodeStore: {namespace: a.b}\n", `f.yaml:3: nodeStore.namespace: "a.b" is not the name of a namespace`},
		{"no socket", head + "vpp: {apiSocket: ''}\n", `f.yaml:3: vpp.apiSocket: is required with mode "socket"`},
		{"chaos without control", head + "api:\n  enableChaos: true\n  controlSocket: ''\n", "f.yaml:4: api.enableChaos: needs api.controlSocket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Decode([]byte(tt.in), "f.yaml")
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if err = doc.Validate(); err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestValidateAccepts holds values at the edge that must be allowed.
func TestValidateAccepts(t *testing.T) {
	for name, in := range map[string]string{
		"all node port addresses": "services: {nodePortAddresses: [all]}\n",
		"all, as kube-proxy says": "services: {nodePortAddresses: []}\n",
		"dual stack networks":     "services: {clusterCIDRs: [10.0.0.0/8, 'fd00::/48'], nodePortAddresses: [10.0.0.0/8, '::/0']}\n",
		"no HTTP at all":          "api: {httpAddress: '', controlSocket: ''}\n",
		"HTTP on every address":   "api: {httpAddress: ':9990'}\n",
		"HTTP on any free port":   "api: {httpAddress: '[::1]:0'}\n",
		"allowed hosts":           "api: {httpAllowedHosts: [localhost, Node-1.Example.com., '::1', host_2]}\n",
		"SNAT":                    "snat: {enabled: true, interface: nic1, address: 192.0.2.1, overlayPorts: []}\n",
		"files":                   "kubernetes: {source: 'files:deploy/demo'}\n",
		"simulated without paths": "vpp: {mode: simulated, apiSocket: '', statsSocket: ''}\n",
		"stand-alone":             "etcd: {mode: none}\n",
		"leases beside etcd":      "etcd: {endpoints: ['http://a:1']}\nnodeStore: {type: kubernetes, namespace: net-1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load([]byte(head+in), "f.yaml"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFilesDir(t *testing.T) {
	if dir, ok := (Kubernetes{Source: "files:/a/b"}).FilesDir(); dir != "/a/b" || !ok {
		t.Errorf("files:/a/b gives %q, %t", dir, ok)
	}
	if _, ok := (Kubernetes{Source: "kubernetes"}).FilesDir(); ok {
		t.Error("kubernetes is taken for files")
	}
}
