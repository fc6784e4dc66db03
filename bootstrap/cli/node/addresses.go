package node

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/addresses"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/kube/leader"
)

const addressesLong = `Addresses gives Services of type LoadBalancer addresses from AddressPools: those with the class
troupe.dev/vpp, and with --default-class those without a class. Any number of processes may run; the
holder of the Lease troupe-addresses writes. It runs until SIGINT or SIGTERM, and takes nothing
away.`

// NewAddresses returns `troupe addresses`.
func NewAddresses(std cli.Streams) *cobra.Command {
	cfg := &addresses.Config{}
	var ranges, pods []string
	var logFormat, level string
	cmd := &cobra.Command{
		Use: "addresses --namespace NAMESPACE", Short: "Give Services of type LoadBalancer addresses from pools", Long: addressesLong,
		Args: cobra.NoArgs, Example: "  troupe addresses --namespace troupe-addresses --default-class",
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Namespace, "namespace", "", "namespace of the Lease; it must exist")
	f.StringVar(&cfg.Kubeconfig, "kubeconfig", "", "file with the API server's address and credentials; default: the service account of the pod")
	f.BoolVar(&cfg.DefaultClass, "default-class", false, "give addresses also to Services without spec.loadBalancerClass")
	f.StringSliceVar(&ranges, "service-cidr", nil, "ranges of cluster IPs, besides the ServiceCIDR objects; no pool may overlap them")
	f.StringSliceVar(&pods, "cluster-cidr", nil, "networks of pods, besides the podCIDRs of Nodes; no pool may overlap them")
	f.DurationVar(&cfg.LeaseDuration, "lease-duration", leader.Duration, "time for which others wait for a leader that does not answer")
	f.StringVar(&cfg.MetricsAddress, "metrics-bind-address", "", "address of /metrics, /readyz and /livez; default: none")
	f.StringVar(&logFormat, "log-format", "text", "text or json")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		errs := append(prefixes("service-cidr", ranges, &cfg.ServiceCIDRs), prefixes("cluster-cidr", pods, &cfg.PodCIDRs)...)
		if !ValidLevel(level) || logFormat != "text" && logFormat != "json" {
			errs = append(errs, errors.New("--log-format must be text or json, --log-level debug, info, warn or error"))
		}
		if err := errors.Join(append(errs, cfg.Check())...); err != nil {
			return cli.Usagef("%s", err)
		}
		log := NewLog(std.Errs, logFormat, level)
		Quiet(log)
		defer collectEarly(collecting)()
		followContainer(log)
		log.Info("allocator started", "namespace", cfg.Namespace, "version", api.ReadBuild().Version)
		return addresses.Run(cmd.Context(), cfg, log)
	}
	return cmd
}
