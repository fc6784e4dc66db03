package helm

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

// Release is the name of the release.
const Release = "troupe"

// Client is helm for one namespace of a cluster.
type Client struct {
	namespace string
	config    *action.Configuration
}

// New returns helm for a namespace, with the rights of the configuration.
func New(t testing.TB, config *rest.Config, namespace string) *Client {
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
	return &Client{namespace: namespace, config: actions}
}

// Chart reads the chart of the repository.
func Chart(t testing.TB) *chart.Chart {
	t.Helper()
	read, err := loader.Load(filepath.Join(build.Root(), "deploy", "helm"))
	if err != nil {
		t.Fatalf("read chart: %v", err)
	}
	return read
}

// Values reads values in YAML.
func Values(t testing.TB, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatalf("read values: %v", err)
	}
	return values
}

// Install is helm install -n NAMESPACE --create-namespace.
func (c *Client) Install(t testing.TB, values string) (*release.Release, error) {
	t.Helper()
	install := action.NewInstall(c.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = Release, c.namespace, true
	return install.RunWithContext(context.Background(), Chart(t), Values(t, values))
}

// Upgrade is helm upgrade -n NAMESPACE.
func (c *Client) Upgrade(t testing.TB, values string) (*release.Release, error) {
	t.Helper()
	upgrade := action.NewUpgrade(c.config)
	upgrade.Namespace = c.namespace
	return upgrade.RunWithContext(context.Background(), Release, Chart(t), Values(t, values))
}

// Rollback is helm rollback to a revision.
func (c *Client) Rollback(revision int) error {
	rollback := action.NewRollback(c.config)
	rollback.Version = revision
	return rollback.Run(Release)
}

// Uninstall is helm uninstall.
func (c *Client) Uninstall() error {
	_, err := action.NewUninstall(c.config).Run(Release)
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	return nil
}
