package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// errNoExternal is the answer if CNAT serves both families.
var errNoExternal = fmt.Errorf("external configuration is %w: it needs NAT44 (--renderer dual or nat44)", api.ErrUnsupported)

// takesExternal reports whether the agent takes external configuration.
func (a *Agent) takesExternal() bool {
	return a.outside != nil && a.rendering().Renderer != config.RendererCNAT
}

func (b backend) External(ctx context.Context) (*api.External, error) {
	if !b.agent.takesExternal() {
		return nil, errNoExternal
	}
	page, err := ask[*external.Page](ctx, b.agent.system, address.External, &external.Query{})
	if err != nil {
		return nil, err
	}
	out := &api.External{Complete: page.Complete, Layers: []api.ExternalLayer{}, Page: api.Page[api.ExternalEntry]{Items: []api.ExternalEntry{}}}
	for _, l := range page.Layers {
		out.Layers = append(out.Layers, api.ExternalLayer{
			Source: l.Source, Priority: l.Priority, Entries: l.Entries, Document: l.Document, Since: l.Since, Error: l.Problem,
		})
	}
	for _, e := range page.Entries {
		out.Items = append(out.Items, api.ExternalEntry(e))
	}
	return out, nil
}

// ApplyExternal satisfies api.Controller. The deadline of the command is shorter than the deadline
// of the request, so that the client gets its error.
func (b backend) ApplyExternal(ctx context.Context, source string, document []byte) (*api.ExternalResult, error) {
	if !b.agent.takesExternal() {
		return nil, errNoExternal
	}
	b.agent.stage.countChanges(1)
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := askUntil[*command.Result](ctx, b.agent.system, address.External, &external.Apply{Source: source, Document: document})
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

// commandTimeout limits a command if the caller has no earlier deadline. The actor answers earlier,
// unless it hangs.
const commandTimeout = 10 * time.Second

// AttachPod satisfies api.Controller. The deadline of the command is shorter than the deadline of
// the request, so that the client gets the error of the interfaces actor.
func (b backend) AttachPod(ctx context.Context, pod, name string) (*api.PodInterface, error) {
	b.agent.stage.countChanges(1)
	var question any = &interfaces.Attach{Pod: pod, Interface: name}
	if name == "" {
		question = &interfaces.Detach{Pod: pod}
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := askUntil[*command.Result](ctx, b.agent.system, address.Interfaces, question)
	if err != nil {
		return nil, err
	}
	if result.Err == nil {
		return &api.PodInterface{Pod: pod, Interface: name, Cause: result.Cause}, nil
	}
	return nil, commandError("pod "+pod, result.Err)
}

// commandError gives the error of a command its status in the API.
func commandError(object string, err error) error {
	means := map[error]error{command.ErrState: api.ErrConflict, command.ErrAway: api.ErrUnavailable, command.ErrTooLate: context.DeadlineExceeded}
	meant := means[command.Meaning(err)]
	err = fmt.Errorf("%s: %w", object, err)
	if meant != nil {
		return fmt.Errorf("%w: %w", meant, err)
	}
	return err
}

// Limits of a reading of sessions. For each backend VPP stops its workers and passes over all
// sessions of a worker.
const (
	mostDumps    = 8
	mostSessions = 100_000
)

// ServiceSessions satisfies api.Reader. It returns sessions of NAT44 only, because VPP lists the
// sessions of CNAT of all services at once.
func (b backend) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
	service, err := b.Service(ctx, key)
	if err != nil {
		return nil, err
	}
	out := &api.ServiceSessions{Time: time.Now(), Items: []api.Session{}}
	vips, backends := map[string]bool{}, []netip.Addr{}
	for _, row := range service.InVPP {
		if row.Renderer != config.RendererNAT44 {
			out.Incomplete = "VPP lists the sessions of CNAT only all at once"
			continue
		}
		vips[row.VIP] = true
		for _, l := range row.Locals {
			if a, err := netip.ParseAddrPort(l.Address); err == nil {
				backends = append(backends, a.Addr())
			}
		}
	}
	slices.SortFunc(backends, netip.Addr.Compare)
	backends = slices.Compact(backends)
	if table := b.agent.metrics.LastSessions(); table != nil && table.Usage.Total > mostSessions {
		return nil, fmt.Errorf("%w: VPP has %d sessions, and would stop its workers for too long to look through them", api.ErrUnavailable, table.Usage.Total)
	}
	if len(backends) > mostDumps {
		out.Incomplete = fmt.Sprintf("VPP was asked about %d of %d backends", mostDumps, len(backends))
		backends = backends[:mostDumps]
	}
	wanted := func(f *sessions.Flow) bool { return vips[f.Frontend.String()+"/"+protocolWord(f.Protocol)] }
	flows, more, err := sessions.List(ctx, b.agent.vpp, backends, wanted, api.MaxLimit)
	switch {
	case errors.Is(err, link.ErrDown):
		return nil, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	case err != nil:
		return nil, err
	case more:
		out.Incomplete = fmt.Sprintf("there are more than %d", api.MaxLimit)
	}
	slices.SortStableFunc(flows, func(x, y sessions.Flow) int { return cmp.Compare(x.Idle, y.Idle) })
	for _, f := range flows {
		s := api.Session{
			Protocol: protocolWord(f.Protocol), Client: f.Client.String(), Frontend: f.Frontend.String(), Backend: f.Backend.String(),
			IdleSeconds: f.Idle.Seconds(), Expired: f.Expired, Packets: f.Packets, Bytes: f.Bytes,
		}
		if f.As.IsValid() {
			s.ClientAs = f.As.String()
		}
		out.Items = append(out.Items, s)
	}
	return out, nil
}

// protocolWord is the name of a protocol.
func protocolWord(number uint8) string {
	if name, known := messages.Protocol_name[int32(number)]; known && number != 0 {
		return name
	}
	return strconv.Itoa(int(number))
}
