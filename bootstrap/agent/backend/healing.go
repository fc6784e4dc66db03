package backend

import (
	"cmp"
	"context"
	"slices"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// healing adds the repairs and the unhealthy parts.
func (b Backend) healing(ctx context.Context, to *api.Resync) (*api.Resync, error) {
	page, err := ask[*health.Page](ctx, b.system(), address.Healer, &health.Query{})
	if err != nil {
		return nil, err
	}
	to.Healing, to.Ill = []api.HealingCount{}, make([]api.IllPart, len(page.Cases))
	for part, counts := range page.Counts {
		for step, n := range counts {
			to.Healing = append(to.Healing, api.HealingCount{Part: part, Rung: step, Count: n})
		}
	}
	slices.SortFunc(to.Healing, func(a, b api.HealingCount) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Rung, b.Rung))
	})
	for i, c := range page.Cases {
		to.Ill[i] = api.IllPart{Part: c.Part, Reason: c.Reason, Since: c.Since, Next: c.Until, Rung: c.Step}
	}
	return to, nil
}
