package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// parse runs the flags of a command line through a command that has all of them.
func parse(t *testing.T, only []string, args ...string) *Flags {
	t.Helper()
	cmd := &cobra.Command{Use: "agent"}
	flags := AddFlags(cmd, only...)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

// TestAgentFlags lists the flags that are a public interface.
func TestAgentFlags(t *testing.T) {
	cmd := &cobra.Command{Use: "agent"}
	AddFlags(cmd)
	for _, name := range strings.Fields(`node-name kube-source kubeconfig kube-api-server vpp-api-socket vpp-stats-socket vpp etcd-endpoints etcd-ca etcd-cert
		etcd-key etcd node-store data-dir renderer nat-loopback-ip service-cidr cluster-cidr node-port-addresses http-address control-socket config
		healthz-bind-address log-format enable-chaos cleanup-on-exit`) {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			t.Errorf("flag --%s is missing", name)
		} else if f.Usage == "" || strings.Contains(f.Usage, "`") {
			t.Errorf("--%s: usage %q", name, f.Usage)
		}
	}
}

func TestFlagsOverrideTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	content := head + "nodeName: from-file\nlog: {level: debug}\nservices: {clusterCIDRs: [10.0.0.0/8]}\netcd: {mode: embedded}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := parse(t, nil, "--config", file, "--node-name", "from-flag", "--cluster-cidr", "10.1.0.0/16,10.2.0.0/16", "--vpp", "simulated",
		"--cleanup-on-exit").LoadForStart()
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.NodeName, want.Log.Level = "from-flag", "debug"
	want.Services.ClusterCIDRs = []string{"10.1.0.0/16", "10.2.0.0/16"}
	want.Etcd.Mode, want.VPP.Mode, want.CleanupOnExit = EtcdEmbedded, VPPSimulated, true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestFlagErrorsNameTheFlag(t *testing.T) {
	_, err := parse(t, nil, "--node-store", "etcd", "--cluster-cidr", "10.0.0.0/8,x", "--renderer", "ipvs").LoadForStart()
	want := strings.Join([]string{
		"nodeName: is required: set it in the file or pass --node-name",
		"etcd.endpoints: is required: pass --etcd-endpoints URL,... or --etcd embedded",
		`--renderer: renderer: "ipvs" is not one of auto, nat44, cnat, dual`,
		`--cluster-cidr: services.clusterCIDRs[1]: "x" is not a network in CIDR notation, for example 10.96.0.0/12`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("errors:\n%v\nwant:\n%s", err, want)
	}
}

func TestFlagsRestricted(t *testing.T) {
	flags := parse(t, []string{"renderer", "cluster-cidr"}, "--renderer", "nat44")
	if flags.cmd.Flags().Lookup("vpp-api-socket") != nil {
		t.Error("a flag that was not asked for exists")
	}
	doc, err := flags.Load()
	if err != nil || doc.Agent.Renderer != "nat44" {
		t.Errorf("renderer = %v, error %v", doc.Agent.Renderer, err)
	}
}

func TestFileThatIsNotThere(t *testing.T) {
	_, err := parse(t, nil, "--config", "testdata/none.yaml").LoadForStart()
	if err == nil || !strings.Contains(err.Error(), "read configuration: open testdata/none.yaml") {
		t.Errorf("error = %v", err)
	}
}
