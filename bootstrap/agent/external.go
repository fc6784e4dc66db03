package agent

import (
	"path/filepath"

	"github.com/troupe-vpp/troupe/bootstrap/outside"
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
