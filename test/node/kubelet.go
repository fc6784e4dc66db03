package node

import (
	"fmt"
	"path/filepath"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// kubeletConfig has: cgroup, endpoint of containerd, authority of clients. The OOM score of the
// kubelet would need CAP_SYS_RESOURCE.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%s
enforceNodeAllocatable: [pods]
protectKernelDefaults: true
containerRuntimeEndpoint: unix://%s
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
healthzPort: 10248
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %s}}
authorization: {mode: AlwaysAllow}
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
resolvConf: ""
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
maxPods: 200
podLogsDir: /var/log/pods
evictionHard: {memory.available: 50Mi, nodefs.available: 1Mi, imagefs.available: 1Mi, nodefs.inodesFree: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 4s
serializeImagePulls: false
volumePluginDir: /var/lib/kubelet/plugins
`

// StartKubelet starts the kubelet and waits until it is healthy.
func (n *Node) StartKubelet() {
	n.t.Helper()
	kubeconfig := n.plane.Kubeconfig(n.Name, controlplane.Credentials+fmt.Sprintf(`, as: "system:node:%s", as-groups: ["system:nodes"]`, n.Name))
	n.Do("mkdir", "-p", "/var/lib/kubelet")
	n.Write("/var/lib/kubelet/config.yaml", fmt.Sprintf(kubeletConfig, n.group, socket, n.plane.Certificate()))
	addresses := n.Address.String()
	if n.Address6.IsValid() {
		addresses += "," + n.Address6.String()
	}
	n.kubelet = n.Spawn(filepath.Join(n.kubeletDir, "kubelet"), "--config=/var/lib/kubelet/config.yaml", "--kubeconfig="+kubeconfig,
		"--hostname-override="+n.Name, "--node-labels=troupe.dev/vpp=", "--node-ip="+addresses, "--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki", "-v=1")
	controlplane.Eventually(n.t, "kubelet of "+n.Name+" healthy", func() string {
		if n.kubelet.Ended() {
			n.t.Fatalf("kubelet of %s has ended:\n%s", n.Name, n.kubelet.Tail())
		}
		if problem := n.healthy("127.0.0.1:10248"); problem != nil {
			return problem.Error()
		}
		return ""
	})
}

// StopKubelet kills the kubelet; containers go on.
func (n *Node) StopKubelet() { n.kubelet.Kill() }
