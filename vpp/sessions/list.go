package sessions

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Flow is one session of a service.
type Flow struct {
	// Protocol is the number of IANA.
	Protocol uint8
	// Frontend, Backend and Client are the ends of the connection; As is the client's address
	// as the backend sees it, if it differs.
	Frontend, Backend, Client, As netip.AddrPort
	// Idle is the time since its last packet, in a dump in whole seconds. Expired sessions only
	// keep their place in the table.
	Idle    time.Duration
	Expired bool
	// Unsettled says that a TCP connection is not established: its handshake is under way, or
	// one side has closed it. Only a shower knows it.
	Unsettled bool
	// Service says that a row made the session.
	Service bool
	Packets uint64
	Bytes   uint64
}

// List dumps the sessions of backends that wanted chooses, at most so many; more says that there
// are others. Each backend costs VPP a pass over all sessions of a worker.
func List(ctx context.Context, c link.Caller, backends []netip.Addr, wanted func(*Flow) bool, most int) (flows []Flow, more bool, err error) {
	for _, backend := range backends {
		err := c.Dump(ctx, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: backend.As4()}, func(msg api.Message) {
			d, ok := msg.(*nat44_ed.Nat44UserSessionV3Details)
			if !ok {
				return
			}
			f := flowOf(d)
			switch {
			case !wanted(&f):
			case len(flows) == most:
				more = true
			default:
				flows = append(flows, f)
			}
		})
		if err != nil {
			return nil, false, fmt.Errorf("dump NAT sessions of %s: %w", backend, err)
		}
	}
	return flows, more, nil
}

func flowOf(d *nat44_ed.Nat44UserSessionV3Details) Flow {
	at := func(a [4]byte, port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4(a), port) }
	f := Flow{
		Protocol: uint8(d.Protocol), Frontend: at(d.OutsideIPAddress, d.OutsidePort), Backend: at(d.InsideIPAddress, d.InsidePort),
		Client: at(d.ExtHostAddress, d.ExtHostPort), Idle: time.Duration(d.TimeSinceLastHeard) * time.Second, Expired: d.IsTimedOut,
		Service: d.Flags&nat_types.NAT_IS_STATIC != 0,
		Packets: uint64(d.TotalPkts), Bytes: d.TotalBytes,
	}
	if d.ExtHostNatPort != 0 {
		f.As = at(d.ExtHostNatAddress, d.ExtHostNatPort)
	}
	return f
}
