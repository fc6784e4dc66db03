package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
	"github.com/troupe-vpp/troupe/test/stage"
)

// proxyConfig has: name of the node, path of the kubeconfig. The limits of connections belong to
// the whole machine.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
detectLocalMode: ClusterCIDR
clusterCIDR: "10.1.0.0/16,fd00:1::/48"
healthzBindAddress: 0.0.0.0:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
clientConnection: {kubeconfig: %s}
`

// bridgeNetwork has the ranges of the pods of a node, IPv4 and IPv6.
const bridgeNetwork = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
"ipam": {"type": "host-local", "dataDir": "/run/cni/addresses", "ranges": [[{"subnet": "%s"}], [{"subnet": "%s"}]],
"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}]}
`

// withKubeProxy starts the same nodes with pods behind bridges of the kernel, and with kube-proxy.
func withKubeProxy(t *testing.T, o stage.Options) (*stage.Cluster, *node.Node) {
	t.Helper()
	proxy, err := build.KubeProxy(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	c, outside := stage.WithoutNetwork(t, o)
	outside.Do("sh", "-c", "echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy") // by connection
	pool := []string{"ip", "route", "add", "192.0.2.64/26"}                        // no node answers ARP for it
	for i, n := range c.Nodes {
		n.Do("ip", "link", "set", stage.Uplink, "up")
		n.Do("ip", "address", "add", stage.Uplinks(i)[0].String(), "dev", stage.Uplink)
		pool = append(pool, "nexthop", "via", stage.Uplinks(i)[0].Addr().String())
		n.Do("ip", "address", "add", stage.Uplinks(i)[1].String(), "dev", stage.Uplink, "nodad")
		for j, other := range c.Nodes {
			if j == i {
				continue
			}
			via := stage.Uplinks(j)
			n.Do("ip", "route", "replace", other.Pods.String(), "via", via[0].Addr().String())
			n.Do("ip", "route", "replace", other.Address.String(), "via", via[0].Addr().String(), "src", n.Address.String())
			n.Do("ip", "route", "replace", stage.Pods6(j).String(), "via", via[1].Addr().String())
			n.Do("ip", "route", "replace", other.Address6.String(), "via", via[1].Addr().String(), "src", n.Address6.String())
		}
		n.Do("ip", "route", "replace", "default", "via", stage.Outside.String())
		n.Do("ip", "route", "replace", "default", "via", stage.Outside6.String())
		// rules are for packets between pods of one bridge, too
		n.Do("sh", "-c", "for f in iptables ip6tables; do echo 1 >/proc/sys/net/bridge/bridge-nf-call-$f; done")
		n.Write("/etc/cni/net.d/pods.conflist", fmt.Sprintf(bridgeNetwork, n.Pods, stage.Pods6(i)))
		n.Write("/run/kube-proxy.yaml", fmt.Sprintf(proxyConfig, n.Name, c.Kubeconfig("proxy", controlplane.Credentials)))
		n.Spawn(filepath.Join(proxy, "kube-proxy"), "--config", "/run/kube-proxy.yaml")
	}
	outside.Do(pool...)
	for i, n := range c.Nodes {
		n.WaitReady(n.Pods, stage.Pods6(i))
	}
	return c, outside
}
