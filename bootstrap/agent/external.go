package agent

import (
	"context"
	"net/netip"
	"path/filepath"

	"github.com/troupe-vpp/troupe/bootstrap/outside"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// externalSources makes the sources and the store of external configuration.
func (a *Agent) externalSources() *outside.Sources {
	cfg := outside.Config{File: a.cfg.External.File, Prefix: a.cfg.Etcd.Prefix, Node: a.cfg.NodeName}
	if dir := a.cfg.DataDir; dir != "" {
		cfg.Dir = filepath.Join(dir, "external")
	}
	cfg.Connect = a.etcd
	return outside.New(cfg)
}

// natAddresses returns the NAT addresses of external configuration, which the agent may have added
// to VPP. It ignores invalid documents.
func natAddresses(ctx context.Context, sources *outside.Sources) []netip.Addr {
	documents, err := sources.Load(ctx)
	if err != nil {
		return nil
	}
	var found []*layers.Layer
	for source, document := range documents {
		if layer, err := layers.Decode(document, source); err == nil {
			found = append(found, layer)
		}
	}
	return layers.Merge(found).Addresses()
}
