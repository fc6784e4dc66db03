package stage

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/troupe-vpp/troupe/test/build"
)

// HelmRelease is the name of the release.
const HelmRelease = "troupe"

// Helm is helm for one namespace of a cluster.
type Helm struct {
	namespace string
	config    *action.Configuration
}

// NewHelm returns helm for a namespace, with the rights of the configuration.
func NewHelm(t testing.TB, config *rest.Config, namespace string) *Helm {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.Namespace = &namespace
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(config) }
	server := config.Host
	flags.APIServer = &server
	actions := &action.Configuration{}
	if err := actions.Init(flags, namespace, "secret", t.Logf); err != nil {
		t.Fatalf("start helm: %v", err)
	}
	return &Helm{namespace: namespace, config: actions}
}

// HelmChart reads the chart of the repository.
func HelmChart(t testing.TB) *chart.Chart {
	t.Helper()
	read, err := loader.Load(filepath.Join(build.Root(), "deploy", "helm"))
	if err != nil {
		t.Fatalf("read chart: %v", err)
	}
	return read
}

// HelmValues reads values in YAML.
func HelmValues(t testing.TB, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatalf("read values: %v", err)
	}
	return values
}

// Install is helm install -n NAMESPACE --create-namespace.
func (c *Helm) Install(t testing.TB, values string) (*release.Release, error) {
	t.Helper()
	install := action.NewInstall(c.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = HelmRelease, c.namespace, true
	return install.RunWithContext(context.Background(), HelmChart(t), HelmValues(t, values))
}

// Upgrade is helm upgrade -n NAMESPACE.
func (c *Helm) Upgrade(t testing.TB, values string) (*release.Release, error) {
	t.Helper()
	upgrade := action.NewUpgrade(c.config)
	upgrade.Namespace = c.namespace
	return upgrade.RunWithContext(context.Background(), HelmRelease, HelmChart(t), HelmValues(t, values))
}

// Rollback is helm rollback to a revision.
func (c *Helm) Rollback(revision int) error {
	rollback := action.NewRollback(c.config)
	rollback.Version = revision
	return rollback.Run(HelmRelease)
}

// Uninstall is helm uninstall.
func (c *Helm) Uninstall() error {
	_, err := action.NewUninstall(c.config).Run(HelmRelease)
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	return nil
}
