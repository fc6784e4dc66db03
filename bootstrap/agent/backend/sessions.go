package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// Limits of a reading of sessions. For each backend VPP stops its workers and passes over all
// sessions of a worker.
const (
	mostDumps    = 8
	mostSessions = 100_000
)

// ServiceSessions satisfies api.Reader. It returns sessions of NAT44 only, because VPP lists the
// sessions of CNAT of all services at once.
func (b Backend) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
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
	if table := b.agent.Metrics.LastSessions(); table != nil && table.Usage.Total > mostSessions {
		return nil, fmt.Errorf("%w: VPP has %d sessions, and would stop its workers for too long to look through them", api.ErrUnavailable, table.Usage.Total)
	}
	if len(backends) > mostDumps {
		out.Incomplete = fmt.Sprintf("VPP was asked about %d of %d backends", mostDumps, len(backends))
		backends = backends[:mostDumps]
	}
	wanted := func(f *sessions.Flow) bool { return vips[f.Frontend.String()+"/"+protocolWord(f.Protocol)] }
	flows, more, err := sessions.List(ctx, b.agent.VPP(), backends, wanted, api.MaxLimit)
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
