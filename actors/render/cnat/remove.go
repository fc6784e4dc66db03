package cnat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Remove satisfies render.Remover. If other clients have translations or source NAT, settings and
// interfaces stay. A VPP without CNAT has nothing to remove.
func (*adapter) Remove(ctx context.Context, vpp link.Caller, r *render.Removal) error {
	indexes, err := cnat.Interfaces(ctx, vpp)
	if err != nil {
		return fmt.Errorf("clean up CNAT: %w", err)
	}
	state, err := cnat.Read(ctx, vpp, false, indexes, nil)
	if errors.Is(err, link.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean up CNAT: %w", err)
	}
	want := &cnat.Want{SNAT: cnat.NoSNAT(), Own: cnat.NoSNAT(), IPv4: true, Interfaces: map[uint32]*cnat.Tables{}}
	for index := range state.Attached {
		want.Interfaces[index] = nil
	}
	ops := cnat.Diff(state, want, true)
	if state.Shared(want) {
		ops = slices.DeleteFunc(ops, func(op cnat.Op) bool { return !op.OnRow() })
	}
	return render.CarryOut(r, ops, func() (err error) {
		for _, result := range cnat.Apply(ctx, vpp, ops) {
			err = errors.Join(err, result.Err)
		}
		return err
	})
}
