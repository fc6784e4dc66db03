package bootstrap

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/cnat"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
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
		"configuration ok valid -", "VPP ok version 25.10-release has 13 of 14 features -", "data directory ok " + dir + " can be written -",
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

// TestCheckLayout: bridge domains and access lists of others are named, with a link to the page
// about them.
func TestCheckLayout(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "vpp")
	vpp := simulator.New(simulator.Options{})
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	defer vpp.Close()
	check := func() string {
		return squeeze(troupe("", "check", "--kube-source", "files:"+t.TempDir(), "--vpp-api-socket", socket).out)
	}
	for _, name := range []string{"pod1", "pod2", "bvi0"} {
		if _, err := vpp.AddInterface(name, nil, true); err != nil {
			t.Fatal(err)
		}
	}
	if out := check(); strings.Contains(out, "VPP: bridge") || strings.Contains(out, "VPP: access") {
		t.Errorf("a warning without a cause:\n%s", out)
	}
	if err := vpp.AddBridge(5, "bvi0", 0, "pod1", "pod2"); err != nil {
		t.Fatal(err)
	}
	for _, request := range []api.Message{
		&acl.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "policy", R: []acl_types.ACLRule{{}}, Count: 1},
		&acl.ACLInterfaceSetACLList{SwIfIndex: 1, Count: 2, NInput: 1, Acls: []uint32{0, 0}},
		&acl.ACLInterfaceSetACLList{SwIfIndex: 2, Count: 1, NInput: 0, Acls: []uint32{0}},
	} {
		if _, err := vpp.Exec(request); err != nil {
			t.Fatal(err)
		}
	}
	out := check()
	for _, want := range []string{
		"VPP: bridge domains warning members of the bridge domains of bvi0 reach each other without it, so pods there would answer each other past NAT docs/cni.md, Bridge domains",
		"VPP: access lists of others warning where packets enter at pod1 (policy), where packets leave at pod1 (policy), pod2 (policy); with NAT44",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
}

// TestCheckNeeds: a plugin that the renderers do not need is no warning.
func TestCheckNeeds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "vpp")
	vpp := simulator.New(simulator.Options{})
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	defer vpp.Close()
	for flags, want := range map[string]string{
		"":                              "VPP: CNAT of 26.06 skipped needed for IPv6 only: ",
		" --service-cidr fd00:96::/112": "VPP: CNAT of 26.06 warning CNAT is that of 24.06 to 25.10",
		" --renderer cnat":              "VPP: CNAT of 26.06 warning CNAT is that of 24.06 to 25.10",
	} {
		r := troupe("", strings.Fields("check --node-name n1 --kube-source files:"+t.TempDir()+" --vpp-api-socket "+socket+flags)...)
		if !strings.Contains(squeeze(r.out), want) {
			t.Errorf("%s: no %q in\n%s", flags, want, r.out)
		}
	}
}

// TestCheckRefusals: session layer and tables of VPP => the line about refusals.
func TestCheckRefusals(t *testing.T) {
	const otherwise = ": clients of services without endpoints get host unreachable by TCP, a time-out by UDP "
	for name, tt := range map[string]struct {
		layer         bool
		table, table6 uint32
		want          string
	}{
		"off":                      {want: "VPP: refusals warning VPP's session layer is off" + otherwise + "in startup.conf: session { enable }"},
		"on":                       {layer: true, want: "VPP: refusals ok the session layer is on: clients of services without endpoints are refused -"},
		"on, and a pod in a table": {layer: true, table: 2, want: "VPP: refusals warning interface pod1 is in table 2, and VPP may leave clients of other tables than 0 without an answer" + otherwise + "docs/semantics.md, Where nothing is served"},
		"on, and a table of IPv6":  {layer: true, table6: 2, want: "VPP: refusals warning VPP has the IPv6 table 2, and may leave IPv6 clients of other tables than 0 without an answer: IPv6" + otherwise[1:] + "docs/semantics.md, Where nothing is served"},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "vpp")
			vpp := simulator.New(simulator.Options{SessionLayer: tt.layer})
			if err := vpp.Listen(socket); err != nil {
				t.Fatal(err)
			}
			defer vpp.Close()
			if _, err := vpp.AddInterface("pod1", nil, true); err != nil {
				t.Fatal(err)
			}
			if tt.table6 > 0 {
				if _, err := vpp.Exec(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: tt.table6, IsIP6: true}}); err != nil {
					t.Fatal(err)
				}
			}
			if tt.table > 0 {
				for _, request := range []api.Message{
					&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: tt.table}}, &interfaces.SwInterfaceSetTable{SwIfIndex: 1, VrfID: tt.table},
				} {
					if _, err := vpp.Exec(request); err != nil {
						t.Fatal(err)
					}
				}
			}
			if out := squeeze(troupe("", "check", "--kube-source", "files:"+t.TempDir(), "--vpp-api-socket", socket).out); !strings.Contains(out, tt.want) {
				t.Errorf("no line %q in\n%s", tt.want, out)
			}
		})
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

// TestCheckKubeProxy: a kube-proxy in the cluster is named with its part beside the agent, and a
// process at the port of the node's health with the field that leaves the port to it.
func TestCheckKubeProxy(t *testing.T) {
	s, dir := newAPIServer(t), t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const (
		scheduled = `{"kind":"DaemonSet","apiVersion":"apps/v1","status":{"desiredNumberScheduled":5}}`
		stays     = "pods on 5 nodes; it may stay: the agent serves what enters VPP, kube-proxy serves processes of the host and pods in the kernel"
		port      = "\nport of the node's health "
	)
	for name, tt := range map[string]struct {
		kubeProxy, health string
		want              []string
		others            []string // begin no line
	}{
		"beside the agent": {scheduled, taken.Addr().String(), []string{
			"\nkube-proxy warning " + stays + ` beside it set api.healthzBindAddress: ""; without it: docs/operations.md, "Removing kube-proxy"`,
			port + "warning listen tcp " + taken.Addr().String() + ": bind: address already in use kube-proxy or an agent runs here",
		}, nil},
		"with its port":  {scheduled, "", []string{"\nkube-proxy ok " + stays + " -"}, []string{port}},
		"on no node":     {`{"status":{}}`, "127.0.0.1:0", []string{port + "ok 127.0.0.1:0 is free -"}, []string{"\nkube-proxy "}},
		"no right to it": {"", "", nil, []string{"\nkube-proxy ", port}},
	} {
		t.Run(name, func(t *testing.T) {
			s.kubeProxy = tt.kubeProxy
			file := write(t, dir, "agent.yaml", "apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\napi: {healthzBindAddress: '"+tt.health+"'}\n")
			r := troupe("", "check", "--config", file, "--kubeconfig", s.kubeconfig, "--vpp-api-socket", filepath.Join(dir, "none"))
			out := squeeze(r.out)
			if !strings.Contains(out, "\nright to list services ok granted") {
				t.Errorf("no line about rights:\n%s%s", out, r.errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no line %q in\n%s", want, out)
				}
			}
			for _, other := range tt.others {
				if strings.Contains(out, other) {
					t.Errorf("a line %q in\n%s", other, out)
				}
			}
		})
	}
}

// TestCheckStatistics: a VPP without the statistics socket of the configuration has a warning with
// the section of its startup.conf.
func TestCheckStatistics(t *testing.T) {
	dir := t.TempDir()
	socket, stats := filepath.Join(dir, "api"), filepath.Join(dir, "stats")
	vpp := simulator.New(simulator.Options{})
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	defer vpp.Close()
	check := func(statsSocket string) string {
		file := write(t, dir, "agent.yaml", "apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\nvpp: {statsSocket: '"+statsSocket+"'}\n")
		out := squeeze(troupe("", "check", "--config", file, "--kube-source", "files:"+dir, "--vpp-api-socket", socket).out)
		if !strings.Contains(out, "\nVPP ok version ") {
			t.Errorf("no VPP in\n%s", out)
		}
		return out
	}
	want := "\nVPP: statistics warning stat " + stats + ": no such file or directory: counting NAT sessions stops the workers briefly" +
		" in startup.conf: statseg { socket-name " + stats + " }, or set vpp.statsSocket"
	if out := check(stats); !strings.Contains(out, want) {
		t.Errorf("no line %q in\n%s", want, out)
	}
	if err := vpp.ListenStats(stats); err != nil {
		t.Fatal(err)
	}
	for _, statsSocket := range []string{stats, ""} {
		if out := check(statsSocket); strings.Contains(out, "VPP: statistics") {
			t.Errorf("socket %q:\n%s", statsSocket, out)
		}
	}
}

// TestCheckRenderer: the renderer that fits the VPP, and what another client of VPP has set up.
func TestCheckRenderer(t *testing.T) {
	pod := netip.MustParsePrefix("10.1.1.2/32")
	socket := filepath.Join(t.TempDir(), "vpp")
	vpp := simulator.New(simulator.Options{})
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	defer vpp.Close()
	says := func(renderer string) string {
		return squeeze(troupe("", "check", "--kube-source", "files:"+t.TempDir(), "--vpp-api-socket", socket, "--renderer", renderer).out)
	}
	if out := says("auto"); !strings.Contains(out, "renderer of IPv4 ok nat44: VPP itself has the address of no pod -") || strings.Contains(out, "\nCNAT ") {
		t.Error(out)
	}
	_, err := vpp.AddInterfaceSpec(simulator.InterfaceSpec{Name: "tap1", Addresses: []netip.Prefix{pod}, Up: true, TableID: 11})
	if err == nil {
		err = vpp.AddRoute(simulator.Route{Prefix: pod, NextHop: pod.Addr(), Interface: "tap1"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if answers, err := virtual.NewReader(vpp).Do(t.Context(), []api.Message{
		&cnat.CnatSetSnatAddresses{SnatIP4: [4]byte{192, 168, 50, 1}, SwIfIndex: ^interface_types.InterfaceIndex(0)},
	}); err != nil || answers[0].Err != nil {
		t.Fatal(err, answers)
	}
	for renderer, want := range map[string][]string{
		"auto": {
			"renderer of IPv4 ok cnat: the table of tap1 has 10.1.1.2",
			"CNAT failed another client of VPP has set up source NAT of CNAT, which stays as it is; IPv4 is not served, because its SNAT address is 192.168.50.1 see docs/globals.md",
		},
		"dual":  {"renderer of IPv4 failed nat44 cannot serve local pods: the table of tap1", "CNAT warning another client of VPP has set up source NAT of CNAT, which stays as it is see"},
		"nat44": {"renderer of IPv4 failed nat44 cannot serve local pods"},
	} {
		out := says(renderer)
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no line %q in\n%s", renderer, line, out)
			}
		}
	}
}
