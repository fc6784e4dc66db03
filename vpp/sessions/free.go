package sessions

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// User is an inside address with sessions: for sessions of services, the backend.
type User struct {
	// Addr is the address, VRF its table in VPP.
	Addr [4]byte
	VRF  uint32
	// Sessions is their number when the users were dumped.
	Sessions uint64
	// Shared says that the address has sessions in other tables too. A dump of its sessions has
	// those of all tables, and does not tell them apart.
	Shared bool
	// Dynamic says that some of the sessions belong to no mapping.
	Dynamic bool
}

// Slice bounds one call of Free.
type Slice struct {
	// Deletions and Dumps are the largest numbers of them.
	Deletions, Dumps int
}

// Freed is the result of one slice.
type Freed struct {
	// Deleted counts sessions that VPP deleted, Gone sessions that VPP no longer had, Errors
	// sessions that VPP refused to delete.
	Deleted, Gone, Errors int
	// Left are the users that this round has not reached; the next slice begins with them.
	Left []User
	// Complete says that the round has reached every user.
	Complete bool
	// Err is why the slice ended early. The counts are valid nevertheless.
	Err error
}

// Free finds expired sessions, user by user, and deletes them. left are the users that remain of
// the slice before; without any it begins with the users that have the most sessions. Between the
// dump and the deletion a packet may replace an expired session by a new one of the same addresses
// and ports. The deletion would end that connection, so Free deletes dumped sessions at once or
// discards them. VPP counts whole seconds here: a session that it reports as expired can have up to
// a second left.
func Free(ctx context.Context, c link.Caller, left []User, s Slice) (f Freed) {
	f.Left = left
	if len(f.Left) == 0 {
		if f.Left, f.Err = readUsers(ctx, c); f.Err != nil {
			return f
		}
		s.Dumps-- // the dump of users visits every session, like each dump of sessions
	}
	for ; len(f.Left) > 0 && s.Dumps > 0 && s.Deletions > 0 && f.Err == nil; s.Dumps-- {
		requests, more, err := expired(ctx, c, f.Left[0], s.Deletions)
		if err != nil {
			f.Err = err
			return f
		}
		s.Deletions -= len(requests)
		before := f.Deleted
		if f.delete(ctx, c, requests); !more || f.Errors > 0 || f.Deleted == before {
			// unfinished users stay in Left, unless VPP refuses deletions, or sessions of
			// another table are in front: their user comes later
			f.Left = f.Left[1:]
		}
	}
	f.Complete = len(f.Left) == 0
	return f
}

// delete deletes sessions and counts the outcomes.
func (f *Freed) delete(ctx context.Context, c link.Caller, requests []api.Message) {
	if len(requests) == 0 {
		return
	}
	results, err := c.Do(ctx, requests)
	if err != nil {
		f.Err = fmt.Errorf("delete expired NAT sessions: %w", err)
		return
	}
	for _, r := range results {
		_, answered := link.Retval(r.Err)
		switch {
		case r.Err == nil:
			f.Deleted++
		case errors.Is(r.Err, api.NO_SUCH_ENTRY):
			f.Gone++
		case answered, errors.Is(r.Err, link.ErrRefused):
			f.Errors++
		default:
			f.Err = fmt.Errorf("delete expired NAT sessions: %w", r.Err)
		}
	}
}

// readUsers dumps the users, ordered by their number of sessions, the largest first.
func readUsers(ctx context.Context, c link.Caller) ([]User, error) {
	var users []User
	err := link.Each(ctx, c, &nat44_ed.Nat44UserDump{}, func(d *nat44_ed.Nat44UserDetails) {
		users = append(users, User{
			Addr: d.IPAddress, VRF: d.VrfID, Sessions: uint64(d.Nsessions) + uint64(d.Nstaticsessions), Dynamic: d.Nsessions > 0,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("dump users of NAT sessions: %w", err)
	}
	table := make(map[[4]byte]uint32, len(users))
	shared := map[[4]byte]bool{}
	for _, u := range users {
		if vrf, seen := table[u.Addr]; seen && vrf != u.VRF {
			shared[u.Addr] = true
		}
		table[u.Addr] = u.VRF
	}
	for i := range users {
		users[i].Shared = shared[users[i].Addr]
	}
	slices.SortStableFunc(users, func(a, b User) int { return int(int64(b.Sessions) - int64(a.Sessions)) })
	return users, nil
}

// expired dumps the sessions of a user and returns the requests that delete the expired ones, at
// most the given number; more says that there are others. An expired session of one table may have
// the addresses and ports of a live one of another table. It stays, because its deletion might end
// the live one.
func expired(ctx context.Context, c link.Caller, u User, most int) (requests []api.Message, more bool, err error) {
	live := map[nat44_ed.Nat44DelSession]bool{}
	var found []*nat44_ed.Nat44DelSession
	err = link.Each(ctx, c, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: u.Addr, VrfID: u.VRF}, func(d *nat44_ed.Nat44UserSessionV3Details) {
		switch {
		case !d.IsTimedOut && !u.Shared:
		case !d.IsTimedOut:
			live[*deletion(d, u.VRF)] = true
		case len(found) == most:
			more = true
		default:
			found = append(found, deletion(d, u.VRF))
		}
	})
	if err != nil {
		return nil, false, fmt.Errorf("dump NAT sessions of %d.%d.%d.%d: %w", u.Addr[0], u.Addr[1], u.Addr[2], u.Addr[3], err)
	}
	for _, req := range found {
		if !live[*req] {
			requests = append(requests, req)
		}
	}
	return requests, more, nil
}

// IP protocols with ports.
const (
	protoICMP = 1
	protoTCP  = 6
	protoUDP  = 17
)

// deletion identifies a session by its flow from inside: VPP looks it up by exactly these values.
func deletion(d *nat44_ed.Nat44UserSessionV3Details, vrf uint32) *nat44_ed.Nat44DelSession {
	req := &nat44_ed.Nat44DelSession{
		Address: d.InsideIPAddress, Port: d.InsidePort, Protocol: uint8(d.Protocol), VrfID: vrf,
		Flags: nat_types.NAT_IS_INSIDE | nat_types.NAT_IS_EXT_HOST_VALID, ExtHostAddress: d.ExtHostAddress, ExtHostPort: d.ExtHostPort,
	}
	if d.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		req.ExtHostAddress, req.ExtHostPort = d.ExtHostNatAddress, d.ExtHostNatPort
	}
	switch {
	case req.Protocol == protoTCP || req.Protocol == protoUDP:
	case req.Protocol == protoICMP && req.ExtHostPort == 0:
		req.ExtHostPort = req.Port // both are the identifier of the echo
	case req.Protocol == 0:
		// no ports at all: VPP notes the number of the protocol in their place, and not in the
		// byte order of ports
		req.Protocol, req.Port, req.ExtHostPort = uint8(d.InsidePort>>8|d.InsidePort), 0, 0 //nolint:gosec // One of the bytes is 0.
	}
	return req
}

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
		err := link.Each(ctx, c, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: u.Addr, VrfID: u.VRF}, func(d *nat44_ed.Nat44UserSessionV3Details) {
			if d.Protocol != protoTCP && d.Protocol != protoUDP && d.Protocol != protoICMP {
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
