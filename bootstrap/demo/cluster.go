package demo

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/troupe-vpp/troupe/bootstrap/plan"
	"github.com/troupe-vpp/troupe/deploy/demo"
	"github.com/troupe-vpp/troupe/kube"
)

// cluster finds the cluster of the options, or unpacks the built-in cluster below dir. It checks
// that both the cluster and the node exist, because an agent would wait for them without limit. It
// returns the number of services that the node handles, without headless services, for example.
func (o *Options) cluster(dir string) (services int, err error) {
	if o.Cluster == "" {
		o.Cluster = filepath.Join(dir, "cluster")
		if err := unpack(o.Cluster); err != nil {
			return 0, fmt.Errorf("unpack the cluster: %w", err)
		}
	}
	objects, _, err := plan.Read([]string{o.Cluster}, nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCluster, err)
	}
	if _, _, err := plan.Build(objects, plan.Options{Node: o.NodeName}); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCluster, err)
	}
	return len(kube.Collect(o.NodeName, objects.Select(o.NodeName), nil).GetServices()), nil
}

// unpack writes the built-in cluster to a directory. The agent reads it like any source of files.
func unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := demo.Files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := fs.ReadFile(demo.Files, e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
