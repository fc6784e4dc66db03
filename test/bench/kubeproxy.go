package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// kubeProxyPart needs a program that takes minutes to build, and with many services minutes for a
// change. So it is measured with a feed only if it is asked for.
func kubeProxyPart() part {
	return part{
		name: "kube-proxy", sources: []string{sourceAPI}, named: []string{sourceFeed}, measure: (*node).besideKubeProxy,
	}
}

// proxyConfig is the configuration of kube-proxy. All settings that decide its speed are defaults.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
clusterCIDR: 10.0.0.0/11
detectLocalMode: ClusterCIDR
nodePortAddresses: [primary]
healthzBindAddress: ""
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
clientConnection: {kubeconfig: %s}
`

// The metrics of kube-proxy. lastSync is the time at which all IPv4 rules were in the kernel.
const (
	proxyMetrics = "http://127.0.0.1:10249/metrics"
	lastSync     = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}`
)

// besideKubeProxy measures kube-proxy in the mode nftables with the same source, after it has ended
// the agent and VPP.
func (n *node) besideKubeProxy(o options, services int, out *figures) error {
	if n.programs.kubeProxy == "" {
		return nil
	}
	kill(n.agent)
	kill(n.vpp)
	kubeconfig, err := n.source.(server).credentials("kube-proxy")
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.file("kube-proxy.yaml"), fmt.Appendf(nil, proxyConfig, nodeName, kubeconfig), 0o600); err != nil {
		return fmt.Errorf("write configuration of kube-proxy: %w", err)
	}
	for _, name := range []string{"start", "restart"} {
		kill(n.kubeProxy)
		if err := n.startKubeProxy("kube-proxy: "+name, services, out); err != nil {
			return err
		}
	}
	if err := n.rest("kube-proxy: ", n.kubeProxy.Process.Pid, o.idle, services, out); err != nil {
		return err
	}
	if err := n.changesOfRules(o, services, out); err != nil {
		return err
	}
	kill(n.kubeProxy)
	// the next repetition begins without rules; a table that is not there cannot be deleted
	const tables = "delete table ip kube-proxy; add table ip6 kube-proxy; delete table ip6 kube-proxy"
	if said, err := exec.CommandContext(n, "nft", tables).CombinedOutput(); err != nil {
		return fmt.Errorf("delete the rules of kube-proxy: %w\n%s", err, said)
	}
	return nil
}

// startKubeProxy starts kube-proxy, and enters its figures under the name of this start.
func (n *node) startKubeProxy(name string, services int, out *figures) (err error) {
	launched := time.Now()
	if n.kubeProxy, err = n.spawn("kube-proxy", n.programs.kubeProxy, "--config", n.file("kube-proxy.yaml")); err != nil {
		return err
	}
	var synced float64 // seconds since 1970
	err = n.await("kube-proxy has made its rules", func() bool {
		const interval = 50 * time.Millisecond // each answer costs kube-proxy CPU time
		time.Sleep(interval)
		body, err := get(http.DefaultClient, proxyMetrics)
		if err == nil {
			synced, err = metric(body, lastSync)
		}
		return err == nil && synced > 0
	})
	if err != nil {
		return err
	}
	used, err := cpu(n.kubeProxy.Process.Pid)
	if err != nil {
		return err
	}
	rules, err := exec.CommandContext(n, "nft", "list", "map", "ip", "kube-proxy", "service-ips").Output()
	if err != nil {
		return fmt.Errorf("list the services of the rules: %w", err)
	}
	if there := bytes.Count(rules, []byte(" : goto ")); there != services {
		return fmt.Errorf("the rules of kube-proxy have %d services, want %d", there, services)
	}
	out.add(name+" to ready", services, "s", synced-float64(launched.UnixNano())/float64(time.Second))
	out.add(name+": CPU for each service", services, "µs", float64(used.Microseconds())/float64(services))
	return nil
}

// changesOfRules replaces endpoints of services one after the other. It measures the time from the
// request to the API server until the kernel has taken the new rules. kube-proxy waits for a second
// after it has changed its rules. This wait counts only where the next change follows at once.
func (n *node) changesOfRules(o options, services int, out *figures) error {
	commits, err := newCommits()
	if err != nil {
		return err
	}
	defer commits.close()
	turn := o.changes // the addresses before it were the agent's
	for _, row := range []struct {
		name  string
		most  int
		pause time.Duration
	}{{"change", 30, 1300 * time.Millisecond}, {"change after a change", 10, 0}} {
		var taken []time.Duration
		for range min(row.most, o.changes) {
			if err := n.pause(row.pause); err != nil {
				return err
			}
			began := time.Now()
			address, err := n.replace(turn, services)
			if err != nil {
				return err
			}
			at, err := commits.with(address)
			if err != nil {
				return err
			}
			taken = append(taken, at.Sub(began))
			turn++
		}
		out.addTimes("kube-proxy: "+row.name+" to the kernel's commit", services, taken)
	}
	return nil
}
