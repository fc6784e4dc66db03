package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/bootstrap/api"
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

// errNoExternal is the answer where CNAT serves both families.
var errNoExternal = fmt.Errorf("external configuration is %w: it needs NAT44 (--renderer dual or nat44)", api.ErrUnsupported)

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

// External satisfies api.Reader.
func (b backend) External(ctx context.Context) (*api.External, error) {
	if b.outside == nil {
		return nil, errNoExternal
	}
	page, err := ask[*external.Page](ctx, b.Agent, address.External, &external.Query{})
	if err != nil {
		return nil, err
	}
	out := &api.External{Complete: page.Complete, Layers: []api.ExternalLayer{}, Entries: []api.ExternalEntry{}}
	for _, l := range page.Layers {
		out.Layers = append(out.Layers, api.ExternalLayer{
			Source: l.Source, Priority: l.Priority, Entries: l.Entries, Document: l.Document, Since: l.Since, Error: l.Problem,
		})
	}
	for _, e := range page.Entries {
		out.Entries = append(out.Entries, api.ExternalEntry(e))
	}
	return out, nil
}

// ApplyExternal satisfies api.Controller. The deadline of the command is shorter than that of the
// request, so that the client gets its error.
func (b backend) ApplyExternal(ctx context.Context, source string, document []byte) (*api.ExternalResult, error) {
	if b.outside == nil {
		return nil, errNoExternal
	}
	b.stage.countChanges(1)
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := askFor[*command.Result](ctx, b.Agent, address.External, &external.Apply{Source: source, Document: document})
	if err != nil {
		return nil, err
	}
	if result.Err == nil {
		return &api.ExternalResult{Source: source, Cause: result.Cause}, nil
	}
	if errors.Is(result.Err, layers.ErrInvalid) {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, result.Err)
	}
	return nil, commandError("external configuration "+source, result.Err)
}
