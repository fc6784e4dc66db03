package bootstrap

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestCheck: each line is ok or says what to do.
func TestCheck(t *testing.T) {
	s, dir := newFleetOf(t), t.TempDir()
	socket := filepath.Join(dir, "vpp")
	vpp := simulator.New(simulator.Options{})
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	defer vpp.Close()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	r := troupe("", "check", "--all-nodes", "--kubeconfig", s.kubeconfig, "--vpp-api-socket", socket, "--node-name", "n3", "--data-dir", dir,
		"--cluster-cidr", "10.1.0.0/16,10.96.9.0/24", "--service-cidr", "10.96.0.0/16", "--connect", open.Addr().String()+",127.0.0.1:1")
	out := squeeze(r.out)
	for _, want := range []string{
		"configuration ok valid -", "VPP ok version 25.10-release has 10 of 12 features -", "data directory ok " + dir + " can be written -",
		"API server ok version v1.33.1 -", "right to list services ok granted -",
		"right to list endpointslices failed endpointslices is forbidden deploy/kubernetes/base/rbac.yaml has the rights of the agent",
		"node n3 failed the cluster has no such Node set nodeName to the name of the Node",
		"pod networks are inside of services.clusterCIDRs failed not n2 10.9.2.0/24 add them to services.clusterCIDRs",
		"pod networks and services.serviceCIDRs are apart failed not services.clusterCIDRs 10.96.9.0/24 correct",
		"agents ok 5 nodes have a pod of the agent -", "agent of node n4 failed pod agent-n4 is Pending",
		"agent of node n2 failed not ready: link: read from VPP: EOF", "agent of node n3 warning ready; differs: version v1.2.2",
		"agent of node n1 ok ready; 2 services are in sync -", "connection to " + open.Addr().String() + " ok connected in",
		"connection to 127.0.0.1:1 failed dial tcp 127.0.0.1:1: connect: connection refused troupe explain --packet",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no line %q", want)
		}
	}
	if r.code != exitFailed || !strings.Contains(r.errs, "checks have failed") {
		t.Errorf("exit code %d: %s", r.code, r.errs)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestCheckWithoutVPP: on a node it fails, elsewhere it is not expected.
func TestCheckWithoutVPP(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none")
	if r := troupe("", "check", "--kube-source", "files:"+t.TempDir(), "--vpp-api-socket", socket); r.code != exitFailed ||
		!strings.Contains(squeeze(r.out), "VPP failed no socket "+socket+" here run this on a node with VPP") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
}

// TestCheckOldKubernetes: an API server that cannot select services as the agent does is named
// before its rights are asked for.
func TestCheckOldKubernetes(t *testing.T) {
	s := newAPIServer(t)
	s.version = "v1.30.14"
	r := troupe("", "check", "--kubeconfig", s.kubeconfig, "--vpp-api-socket", filepath.Join(t.TempDir(), "none"))
	if out := squeeze(r.out); !strings.Contains(out, "API server failed version v1.30.14 the agent needs Kubernetes 1.31 or later") || strings.Contains(out, "right to") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
}
