package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/bootstrap/connector"
)

const connectorLong = `Connector brings the services of outside catalogs into the cluster. It writes
each as a Service without a selector into the sync namespace, and its instances as EndpointSlices.
It runs until SIGINT or SIGTERM, and leaves the objects.

A source deletes nothing before it has given a complete answer. If more than --delete-limit percent
of its services vanish at once, their deletion is held back until two further complete answers
confirm it, or until 'troupe connector confirm SOURCE'.`

// dryRunPatience is the time limit for the sources of `troupe connector --dry-run`.
const dryRunPatience = 30 * time.Second

// NewConnector returns `troupe connector` with its commands.
func NewConnector(std cli.Streams) *cobra.Command {
	cfg := &connector.Config{}
	var ranges, pods, deny []string
	var dryRun bool
	var logFormat, level string
	cmd := &cobra.Command{
		Use: "connector --source KIND=WHERE --sync-namespace NAMESPACE", Short: "Bring the services of outside catalogs into the cluster", Long: connectorLong,
		Args: cobra.NoArgs,
		Example: "  troupe connector --source yaml=/etc/catalog --sync-namespace outside --dry-run\n" +
			"  troupe connector --source consul=https://consul:8501 --consul-token-file /run/token --sync-namespace outside",
	}
	out := cli.Format(cli.Formats[0])
	f := cmd.Flags()
	f.VarP(&out, "format", "o", "format of --dry-run: "+strings.Join(cli.Formats, ", "))
	f.StringArrayVar(&cfg.Sources, "source", nil, "catalog: consul=URL, yaml=FILE or dns=NAME@SERVER; begin with NAME: if there are several of a kind; repeatable")
	f.StringVar(&cfg.Namespace, "sync-namespace", "", "namespace of the Services; it must exist")
	f.StringVar(&cfg.Output, "output", connector.OutputKubernetes, "kubernetes, or direct = files for 'troupe agent --kube-source files:DIR', without Kubernetes")
	f.StringVar(&cfg.Directory, "output-directory", "", "directory of --output direct; it must exist")
	f.StringVar(&cfg.Kubeconfig, "kubeconfig", "", "file with the API server's address and credentials; default: the service account of the pod")
	f.StringVar(&cfg.ConsulTokenFile, "consul-token-file", "", "file with the ACL token for Consul; it is read again when it changes")
	f.StringVar(&cfg.ConsulCA, "consul-ca", "", "file with the certificate authorities of Consul")
	f.StringSliceVar(&ranges, "service-cidr", nil, "ranges of cluster IPs, besides the ServiceCIDR objects; no instance may be in them")
	f.StringSliceVar(&pods, "cluster-cidr", nil, "networks of pods, besides the podCIDRs of Nodes; no instance may be in them")
	f.BoolVar(&cfg.AllowPods, "allow-pod-addresses", false, "admit instances with addresses of pods")
	f.StringSliceVar(&deny, "deny-cidr", nil, "further ranges in which no instance may be")
	f.StringVar(&cfg.ServicePrefix, "service-prefix", "", "beginning of the names of the Services")
	f.StringVar(&cfg.ClusterID, "cluster-id", "", "name that separates the objects of several connectors that write to one cluster")
	f.BoolVar(&cfg.Headless, "headless", false, "make Services without a cluster IP")
	f.BoolVar(&cfg.Flomesh, "flomesh-compatible", false, "add the label and annotations of the flomesh connector")
	f.IntVar(&cfg.DeleteLimit, "delete-limit", 30, "percentage of a source's services that may vanish without confirmation")
	f.StringVar(&cfg.HTTPAddress, "http-address", "127.0.0.1:9991", `address of /readyz, /metrics and the read-only API; "" = none`)
	f.StringVar(&cfg.MetricsAddress, "metrics-bind-address", "", "address of /metrics, /readyz and /livez for the network, without details; default: none")
	f.StringVar(&cfg.ControlSocket, "control-socket", "", "unix socket for 'troupe connector confirm' and other calls that change something")
	f.StringVar(&logFormat, "log-format", "text", "text or json")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&dryRun, "dry-run", false, "print planned writes and held-back deletions, write nothing, and exit")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		errs := slices.Concat(prefixes("service-cidr", ranges, &cfg.ServiceCIDRs), prefixes("cluster-cidr", pods, &cfg.PodCIDRs), prefixes("deny-cidr", deny, &cfg.Deny))
		if !ValidLevel(level) || logFormat != "text" && logFormat != "json" {
			errs = append(errs, errors.New("--log-format must be text or json, --log-level debug, info, warn or error"))
		}
		if err := errors.Join(append(errs, cfg.Check())...); err != nil {
			return cli.Usagef("%s", err)
		}
		log := NewLog(std.Errs, logFormat, level)
		Quiet(log)
		dropStandardLog()
		if dryRun {
			return dryRunConnector(cmd.Context(), cfg, std, &out, log)
		}
		return runConnector(cmd.Context(), cfg, log)
	}
	cmd.AddCommand(newConnectorConfirm(std))
	return cmd
}

// prefixes parses the networks of a flag.
func prefixes(flag string, texts []string, into *[]netip.Prefix) (errs []error) {
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s %q: no network in CIDR notation", flag, text))
		}
		*into = append(*into, prefix.Masked())
	}
	return errs
}

// runConnector runs a connector until ctx ends or it fails.
func runConnector(ctx context.Context, cfg *connector.Config, log *slog.Logger) error {
	defer collectEarly(collecting)()
	followContainer(log)
	c, err := connector.Start(cfg, true, log)
	if err != nil {
		return err
	}
	log.Info("connector started", "namespace", cfg.Namespace, "sources", cfg.Sources, "http", c.HTTPAddress(), "version", api.ReadBuild().Version)
	err = c.Wait(ctx)
	log.Info("connector stopping")
	return errors.Join(err, c.Close())
}

// dropStandardLog drops the standard log. There net/http quotes unsolicited bytes of a server,
// which may contain the token.
func dropStandardLog() { stdlog.SetOutput(io.Discard) }

// dryRunConnector prints the objects that a connector would write if it started now.
func dryRunConnector(ctx context.Context, cfg *connector.Config, std cli.Streams, out *cli.Format, log *slog.Logger) error {
	cfg.HTTPAddress, cfg.ControlSocket, cfg.MetricsAddress = "", "", ""
	c, err := connector.Start(cfg, false, log)
	if err != nil {
		return err
	}
	settled := c.Settle(ctx, dryRunPatience)
	state := c.State()
	missing := c.MissingNamespace(ctx)
	if err := errors.Join(missing, c.Close()); err != nil {
		return err
	}
	err = out.Print(std.Out, state, func(w *cli.Columns) {
		w.Row("VERB", "KIND", "NAME")
		for _, change := range state.Changes {
			w.Row(change.Verb, change.Kind, change.Name)
		}
		for _, s := range state.Sources {
			for _, name := range s.Held {
				w.Row("held", "Service", s.Name+": "+name)
			}
		}
		for _, problem := range state.Problems {
			w.Row("problem", "", problem)
		}
	})
	if err == nil && !settled {
		err = fmt.Errorf("the sources and the objects are not complete after %s: %s", dryRunPatience, state.Lacks())
	}
	return err
}

// newConnectorConfirm returns `troupe connector confirm`.
func newConnectorConfirm(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "confirm SOURCE", Short: "Delete the services of a source that are held back", Args: cobra.ExactArgs(1),
		Long: "Confirm deletes the services that have vanished from a source, if their deletion is held back.",
	}
	l := look.NewControl(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var answer struct {
			Released []string `json:"released"`
		}
		if err := l.Client().PostFor(cmd.Context(), "connector/sources/"+args[0]+"/confirm", nil, &answer); err != nil {
			return err
		}
		return l.Out.Print(std.Out, answer, func(w *cli.Columns) {
			w.Row("RELEASED")
			for _, name := range answer.Released {
				w.Row(name)
			}
		})
	}
	return cmd
}
