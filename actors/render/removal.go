package render

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// Removal is one removal of everything that the agent has put into VPP. It belongs to the goroutine
// that runs it.
type Removal struct {
	// DryRun only reads VPP.
	DryRun bool
	// Owned are the objects without a mark that the agent has made. Others stay.
	Owned *owned.Record
	// Said are the operations, in their order. Kept are the objects that stay in VPP because
	// nothing marks their owner.
	Said, Kept []string
}

// unknown is why an object stays.
const unknown = "kept, owner unknown: "

// Keep records that an object stays, because nothing says that the agent has made it.
func (r *Removal) Keep(object string) { r.Kept = append(r.Kept, unknown+object) }

// CarryOut records operations and applies them, unless the removal is a dry run.
func CarryOut[O fmt.Stringer, D interface{ Failure() error }](
	ctx context.Context, vpp link.Caller, r *Removal, ops []O, apply func(context.Context, link.Caller, []O) []D,
) (err error) {
	for _, op := range ops {
		r.Said = append(r.Said, op.String())
	}
	if r.DryRun || len(ops) == 0 {
		return nil
	}
	for _, done := range apply(ctx, vpp, ops) {
		err = errors.Join(err, done.Failure())
	}
	return err
}
