package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/connector"
	"github.com/troupe-vpp/troupe/deploy/demo"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// outside starts a connector that adds the services of the catalog to the built-in cluster below
// dir, and returns the number of these services. It writes files beside the files of the cluster,
// as for a cluster without an API server.
func (o *Options) outside(dir string) (*connector.Connector, int, error) {
	files, err := fs.Sub(demo.Catalog, "catalog")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "catalog"), files)
	}
	if err != nil {
		return nil, 0, err
	}
	text, err := fs.ReadFile(files, "catalog.yaml")
	if err != nil {
		return nil, 0, err
	}
	services, errs := catalog.DecodeYAML(text)
	if len(errs) > 0 {
		return nil, 0, errors.Join(errs...)
	}
	c, err := connector.Start(&connector.Config{
		Sources: []string{"yaml=" + filepath.Join(dir, "catalog")}, Namespace: "outside", Output: connector.OutputDirect, Directory: o.Cluster,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.200.0/24")}, DeleteLimit: 30,
	}, true, o.Log.With("part", "connector"))
	if err != nil {
		return nil, 0, err
	}
	// The agent starts after all objects are written: a write during a drill would count as an
	// effect of the fault.
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		written, err := filepath.Glob(filepath.Join(o.Cluster, "endpointslice-*.yaml"))
		if err == nil && len(written) < len(services) && time.Since(began) > settleTimeout {
			err = fmt.Errorf("the connector has written %d of %d services", len(written), len(services))
		}
		if err != nil {
			return nil, 0, errors.Join(err, c.Close())
		}
		if len(written) >= len(services) {
			return c, len(services), nil
		}
	}
}
