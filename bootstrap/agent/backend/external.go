package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// errNoExternal is the answer if CNAT serves both families.
var errNoExternal = fmt.Errorf("external configuration is %w: it needs NAT44 (--renderer dual or nat44)", api.ErrUnsupported)

// External satisfies api.Reader.
func (b Backend) External(ctx context.Context) (*api.External, error) {
	if !b.agent.External() {
		return nil, errNoExternal
	}
	page, err := ask[*external.Page](ctx, b.system(), address.External, &external.Query{})
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

// ApplyExternal satisfies api.Controller. The deadline of the command is shorter than the deadline
// of the request, so that the client gets its error.
func (b Backend) ApplyExternal(ctx context.Context, source string, document []byte) (*api.ExternalResult, error) {
	if !b.agent.External() {
		return nil, errNoExternal
	}
	b.agent.Changes()
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := Ask[*command.Result](ctx, b.system(), address.External, &external.Apply{Source: source, Document: document})
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
