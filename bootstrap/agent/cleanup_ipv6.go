package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/frontend"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// translated is what CNAT has of the agent: VPP does not say whose it is, so the actors are asked before they end.
type translated struct {
	rows       []frontend.Key
	interfaces []uint32
}

// noteTranslated asks the actors for it.
func (a *Agent) noteTranslated(ctx context.Context) error {
	page, err := ask[*status.ServicesPage](ctx, a, address.Introspect, &status.ServicesQuery{})
	world, failed := ask[*status.WorldPage](ctx, a, address.Introspect, &status.WorldQuery{})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	for _, s := range page.Services {
		for _, r := range s.GetRenders() {
			if r.GetRenderer() != cnat.Renderer {
				continue
			}
			for _, row := range r.GetRows() {
				if key, err := frontend.ParseKey(row.GetVip()); err == nil {
					a.translated.rows = append(a.translated.rows, key)
				}
			}
		}
	}
	for _, i := range world.Interfaces.GetInterfaces() {
		a.translated.interfaces = append(a.translated.interfaces, i.GetSwIfIndex())
	}
	return nil
}

// removeTranslations removes the agent's configuration from CNAT. Where others have translations, what they need besides stays.
func (a *Agent) removeTranslations(ctx context.Context, vpp link.Caller) (operations int, err error) {
	if len(a.translated.interfaces) == 0 {
		return 0, nil
	}
	state, err := cnat.Read(ctx, vpp, false, a.translated.interfaces)
	if err != nil {
		return 0, err
	}
	ours := func(k frontend.Key) bool { return slices.Contains(a.translated.rows, k) }
	want := &cnat.Want{SNAT: cnat.NoSNAT(), Interfaces: map[uint32]*cnat.Tables{}}
	for index := range state.Attached {
		want.Interfaces[index] = nil
	}
	for key := range state.Rows {
		if !ours(key) {
			want.SNAT = state.SNAT
			clear(want.Interfaces)
		}
	}
	ops := cnat.Diff(state, want, true, ours)
	for _, result := range cnat.Apply(ctx, vpp, ops) {
		err = errors.Join(err, result.Err)
	}
	return len(ops), err
}
