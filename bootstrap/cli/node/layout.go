package node

import (
	"cmp"
	"context"
	"fmt"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// Layout is what of VPP's set-up by others decides how services are served: names of interfaces.
type Layout struct {
	// Bridged are virtual interfaces of bridge domains whose members reach each other without
	// them.
	Bridged []string
	// Enter and Leave say where access lists of other owners are (acl.Others).
	Enter, Leave string
	// Unable is why VPP does not refuse clients of services without endpoints; "" = it refuses
	// them. Unable6 is a reason of IPv6 alone.
	Unable, Unable6 string
}

// AskLayout connects to VPP, reads its layout and disconnects again.
func AskLayout(ctx context.Context, socket string) (*Layout, error) {
	out := &Layout{}
	err := withVPP(ctx, socket, func(ctx context.Context, _ *messages.LinkState, c link.Caller) error {
		var reader interfaces.Reader
		set, err := reader.Discover(ctx, c, interfaces.Input{})
		if err != nil {
			return err
		}
		out.Bridged = reader.Bridged()
		unable, err := routes.Unable(ctx, c)
		if err != nil {
			return err
		}
		out.Unable, out.Unable6 = cmp.Or(unable, set.GetUnanswered()), set.GetUnanswered6()
		out.Enter, out.Leave, err = acl.Others(ctx, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("layout of VPP at %s: %w", socket, err)
	}
	return out, nil
}
