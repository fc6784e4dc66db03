package connector

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Outputs of a Config.
const (
	OutputKubernetes = "kubernetes"
	OutputDirect     = "direct"
)

// Config is the configuration from the command line. A connector only reads it.
type Config struct {
	// The catalogs.

	// Sources are "KIND=WHERE" or "NAME:KIND=WHERE". Without a name, the kind is the name.
	Sources []string
	// ConsulTokenFile and ConsulCA are files; "" = none.
	ConsulTokenFile, ConsulCA string
	// DeleteLimit is the percentage of a source's services that may vanish without
	// confirmation.
	DeleteLimit int

	// The store of the objects.

	// Namespace of the objects.
	Namespace string
	// Output is OutputKubernetes, or OutputDirect for files in Directory.
	Output, Directory string
	// Kubeconfig is a file; "" = the service account of the pod.
	Kubeconfig string

	// The allowed addresses of instances.

	// ServiceCIDRs are ranges of cluster IPs, besides the ranges of ServiceCIDR objects;
	// OutputDirect takes cluster IPs from them.
	ServiceCIDRs []netip.Prefix
	// PodCIDRs are networks of pods, besides the podCIDRs of Nodes. No instance may be in them,
	// unless AllowPods is set.
	PodCIDRs  []netip.Prefix
	AllowPods bool
	// Deny are further ranges that no instance may be in.
	Deny []netip.Prefix

	// The form of the objects.

	// ServicePrefix begins the names of Services.
	ServicePrefix string
	// ClusterID tells connectors of several clusters apart.
	ClusterID string
	// Headless makes Services without a cluster IP. Flomesh adds the labels and annotations of
	// the flomesh connector.
	Headless, Flomesh bool

	// The listeners.

	// HTTPAddress and ControlSocket are the listeners of the API; "" = none.
	HTTPAddress, ControlSocket string
	// MetricsAddress is the address of /metrics, /readyz and /livez for the network; "" = none.
	MetricsAddress string
}

var sourceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Check returns every error of the configuration, one for each flag.
func (c *Config) Check() error {
	var errs []error
	if len(c.Sources) == 0 {
		errs = append(errs, errors.New("--source is required: consul=URL, yaml=FILE or dns=NAME@SERVER"))
	}
	if _, err := c.sources(slog.New(slog.DiscardHandler)); err != nil {
		errs = append(errs, err)
	}
	if c.Namespace == "" {
		errs = append(errs, errors.New("--sync-namespace is required"))
	}
	switch {
	case c.Output != OutputKubernetes && c.Output != OutputDirect:
		errs = append(errs, fmt.Errorf("--output %q: expected kubernetes or direct", c.Output))
	case c.Output == OutputDirect && c.Directory == "":
		errs = append(errs, errors.New("--output direct needs --output-directory"))
	case c.Output == OutputDirect && len(c.ServiceCIDRs) == 0 && !c.Headless:
		errs = append(errs, errors.New("--output direct needs --service-cidr, from which it takes cluster IPs"))
	}
	if c.DeleteLimit < 0 || c.DeleteLimit > 100 {
		errs = append(errs, fmt.Errorf("--delete-limit %d: expected a percentage from 0 to 100", c.DeleteLimit))
	}
	if c.ServicePrefix != "" && catalog.Label(c.ServicePrefix, "a") != c.ServicePrefix+"a" {
		errs = append(errs, fmt.Errorf("--service-prefix %q: not the beginning of a DNS label", c.ServicePrefix))
	}
	return errors.Join(errs...)
}

// sources returns the sources by their names.
func (c *Config) sources(log *slog.Logger) ([]namedSource, error) {
	var out []namedSource
	var errs []error
	taken := map[string]bool{}
	for _, text := range c.Sources {
		kind, where, ok := strings.Cut(text, "=")
		name, rest, named := strings.Cut(kind, ":")
		if named {
			kind = rest
		}
		makes, err := c.source(kind, where, log.With("source", name))
		switch {
		case !ok || where == "":
			err = errors.New("expected consul=URL, yaml=FILE or dns=NAME@SERVER")
		case err != nil:
		case !sourceName.MatchString(name):
			err = fmt.Errorf("the name %q is not a label value", name)
		case taken[name]:
			err = fmt.Errorf("another source has the name %q: write NAME:%s", name, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--source %s: %w", text, err))
			continue
		}
		taken[name] = true
		out = append(out, namedSource{name, makes})
	}
	return out, errors.Join(errs...)
}

// source returns the constructor of a source of a kind.
func (c *Config) source(kind, where string, log *slog.Logger) (func() (catalog.Source, error), error) {
	switch kind {
	case "yaml":
		return func() (catalog.Source, error) { return catalog.NewYAML(where, catalog.DefaultLimits(), log), nil }, nil
	case "consul":
		options, err := catalog.ParseConsul(where)
		options.TokenFile, options.CAFile, options.Limits = c.ConsulTokenFile, c.ConsulCA, catalog.DefaultLimits()
		return func() (catalog.Source, error) { return catalog.NewConsul(options, log) }, err
	case "dns":
		options, err := catalog.ParseDNS(where)
		return func() (catalog.Source, error) { return catalog.NewDNS(options, log), nil }, err
	default:
		return nil, fmt.Errorf("unknown kind of source %q: expected consul, yaml or dns", kind)
	}
}
