package node

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// socket of containerd, on the node.
const socket = "/run/containerd/containerd.sock"

// containerdConfig has: directory of the CNI plugins, image of sandboxes, path of runc. Without
// CAP_SYS_RESOURCE runc cannot lower oom_score_adj.
const containerdConfig = `version = 4
root = '/var/lib/containerd'
state = '/run/containerd/state'
disabled_plugins = ['io.containerd.nri.v1.nri', 'io.containerd.snapshotter.v1.erofs', 'io.containerd.differ.v1.erofs',
  'io.containerd.mount-handler.v1.erofs', 'io.containerd.snapshotter.v1.blockfile', 'io.containerd.image-verifier.v1.bindir',
  'io.containerd.internal.v1.opt', 'io.containerd.internal.v1.tracing']

[plugins.'io.containerd.server.v1.grpc']
  address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '/run/containerd/containerd.sock.ttrpc'

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '%[2]s'

[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/opt/cni/bin', '%[1]s']
    conf_dir = '/etc/cni/net.d'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '%[3]s'
      SystemdCgroup = false

[plugins.'io.containerd.metadata.v1.bolt']
  no_sync = true
`

// network has the range of the pods.
const network = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
"ipam": {"type": "host-local", "dataDir": "/run/cni/addresses", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// StartContainerd starts containerd and waits until it answers.
func (n *Node) StartContainerd() {
	n.t.Helper()
	runc, err := exec.LookPath("runc")
	if err != nil {
		n.t.Fatal(err)
	}
	n.Do("mkdir", "-p", "/etc/cni/net.d", "/run/containerd")
	n.Write("/run/containerd/config.toml", fmt.Sprintf(containerdConfig, n.containerdDir, PodImage, runc))
	if !n.bare {
		n.Write("/etc/cni/net.d/pods.conflist", fmt.Sprintf(network, n.Pods))
	}
	n.containerd = n.Spawn(filepath.Join(n.containerdDir, "containerd"), "-c", "/run/containerd/config.toml")
	controlplane.Eventually(n.t, "containerd of "+n.Name+" answers", func() string {
		if n.containerd.Ended() {
			n.t.Fatalf("containerd of %s has ended:\n%s", n.Name, n.containerd.Tail())
		}
		if out, err := n.Try(filepath.Join(n.containerdDir, "ctr"), "-a", socket, "version"); err != nil {
			return out
		}
		return ""
	})
}

// StopContainerd kills containerd; containers go on.
func (n *Node) StopContainerd() { n.containerd.Kill() }
