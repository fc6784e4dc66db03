package sessions

import (
	"context"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// mostSources bounds the dumps of EndOthers. The sessions of further sources end when they are
// silent.
const mostSources = 64

// EndOthers ends the sessions of protocols other than TCP, UDP and ICMP. They belong to no mapping
// of a service, and translate the packets of their protocol even where an interface has no inside
// role any more. Each source of such packets costs VPP a pass over its sessions.
func EndOthers(ctx context.Context, c link.Caller) error {
	users, err := readUsers(ctx, c)
	if err != nil {
		return err
	}
	var f Freed
	dumps := 0
	for _, u := range users {
		if !u.Dynamic || dumps == mostSources {
			continue
		}
		dumps++
		var requests []api.Message
		err := c.Dump(ctx, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: u.Addr, VrfID: u.VRF}, func(msg api.Message) {
			if d, ok := msg.(*nat44_ed.Nat44UserSessionV3Details); ok && d.Protocol != protoTCP && d.Protocol != protoUDP && d.Protocol != protoICMP {
				requests = append(requests, deletion(d, u.VRF))
			}
		})
		if err != nil {
			return fmt.Errorf("dump NAT sessions of %s: %w", netip.AddrFrom4(u.Addr), err)
		}
		if f.delete(ctx, c, requests); f.Err != nil {
			return f.Err
		}
	}
	return nil
}
