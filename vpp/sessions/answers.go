package sessions

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Sizes of the packets of a TCP handshake, in bytes, with the header of IP.
const (
	synPlain     = 52 // without timestamps, as Windows sends it
	synTimestamp = 60 // with timestamps, as Linux sends it
	synApple     = 64
	synLeast     = 40
	synMost      = 80
)

// Unanswered reports whether nothing has come back to a TCP connection of a service. VPP does not
// show the state of a session, nor the packets of each direction. But all packets of a connection
// without an answer are SYNs of one size, and each answer changes the average: a refusal has 40
// bytes (a SYN of 60 and its RST are 2 packets of 100 bytes), an ICMP error more than a SYN. Sizes
// of SYNs that are also an average of an answered handshake do not count, so a client with such
// SYNs counts by its first packet only.
func (f *Flow) Unanswered() bool {
	switch {
	case f.Protocol != protoTCP || !f.Service || f.Packets == 0:
		return false
	case f.astray():
		return true
	case f.Bytes%f.Packets != 0:
		return false
	}
	size := f.Bytes / f.Packets
	switch f.Packets {
	case 1:
		return size >= synLeast && size <= synMost && f.Idle >= 2*time.Second
	case 2: // an endpoint whose answer the client does not confirm sends it again after a second
		return size == synTimestamp && f.Idle >= 2*time.Second
	default:
		return size == synPlain || size == synTimestamp || size == synApple
	}
}

// astray reports whether the client got an answer that was not translated, and refused it: with the
// outside role only, VPP counts the packet of the refusal for this session, without its bytes.
// Other packets have synLeast bytes or more.
func (f *Flow) astray() bool { return f.Packets > 1 && f.Bytes < synLeast*f.Packets }

// Silent is an endpoint, a client, or a client at an endpoint whose connections get no answer.
type Silent struct {
	// Endpoint is the backend; not valid for a client at all endpoints.
	Endpoint netip.AddrPort
	// Client is the client; not valid for an endpoint at which all clients count.
	Client netip.Addr
	// Unanswered of so many Connections of the last half minute got no answer.
	Unanswered, Connections int
	// Astray says that answers came to the client, from an address that it does not know.
	Astray bool
}

// String describes the connections: "8 of 9 connections of 10.1.1.2 to 10.1.1.3:8080".
func (s Silent) String() string {
	text := fmt.Sprintf("%d of %d connections", s.Unanswered, s.Connections)
	if s.Client.IsValid() {
		text += " of " + s.Client.String()
	}
	if s.Endpoint.IsValid() {
		text += " to " + s.Endpoint.String()
	}
	return text
}

// paired reports whether other clients get answers from the endpoint.
func (s Silent) paired() bool { return s.Endpoint.IsValid() && s.Client.IsValid() }

// silentFrom is how many connections without an answer are needed for a verdict, and young the time
// since the last packet up to which a connection counts.
const (
	silentFrom = 3
	young      = 30 * time.Second
)

// Judge returns the endpoints of which most connections get no answer, the clients of which no
// connection gets one, and the clients that get none from an endpoint, ordered. A connection counts
// for the first kind that explains it. While access lists deny packets, the last kind is left out:
// a policy may ask for it.
func Judge(flows []Flow, denied bool) (silent []Silent) {
	explained := map[Silent]bool{}
	endpoint := func(f *Flow) Silent { return Silent{Endpoint: f.Backend} }
	client := func(f *Flow) Silent { return Silent{Client: f.Client.Addr()} }
	both := func(f *Flow) Silent { return Silent{Endpoint: f.Backend, Client: f.Client.Addr()} }
	for _, of := range []func(*Flow) Silent{endpoint, client, both} {
		counts := map[Silent]Silent{}
		for i := range flows {
			f := &flows[i]
			if explained[endpoint(f)] || explained[client(f)] {
				continue
			}
			s := counts[of(f)]
			if s.Connections++; f.Unanswered() {
				s.Unanswered++
				s.Astray = s.Astray || f.astray()
			}
			counts[of(f)] = s
		}
		for who, s := range counts {
			s.Endpoint, s.Client = who.Endpoint, who.Client
			enough := 2*s.Unanswered > s.Connections
			if s.Client.IsValid() {
				enough = s.Unanswered == s.Connections && !(s.paired() && denied)
			}
			if enough && s.Unanswered >= silentFrom {
				silent, explained[who] = append(silent, s), true
			}
		}
	}
	slices.SortFunc(silent, func(a, b Silent) int {
		return cmp.Or(a.Client.Compare(b.Client), a.Endpoint.Compare(b.Endpoint))
	})
	return silent
}

// Sampler looks at the sessions of some backends at a time. The zero value is for a VPP that was
// never read. It is a value that belongs to one goroutine at a time.
type Sampler struct {
	sessions map[netip.Addr]uint64    // of each backend at the last look
	flows    map[netip.Addr][]Flow    // young connections of backends, as last read
	read     map[netip.Addr]time.Time // when
	turn     netip.Addr               // the backend that goes first
}

// keepFlows is how long connections count that were not read again.
const keepFlows = time.Minute

// Look reads the young TCP connections to services with at most so many dumps, each of which costs
// VPP a pass over its sessions. Backends with more sessions than at the last look come first, then
// backends in turn. It returns the connections that it knows.
func (s *Sampler) Look(ctx context.Context, c link.Caller, now time.Time, dumps int) ([]Flow, error) {
	users, err := readUsers(ctx, c)
	if err != nil {
		return nil, err
	}
	before := s.sessions
	s.sessions = map[netip.Addr]uint64{}
	var addrs []netip.Addr
	for _, u := range users {
		a := netip.AddrFrom4(u.Addr)
		s.sessions[a] += u.Sessions
		addrs = append(addrs, a)
	}
	rank := func(a netip.Addr) int {
		rank := 0
		if s.sessions[a] == before[a] {
			rank += 2
		}
		if a.Less(s.turn) {
			rank++
		}
		return rank
	}
	slices.SortFunc(addrs, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Compare(b)) })
	addrs = slices.Compact(addrs)
	if s.flows == nil {
		s.flows, s.read = map[netip.Addr][]Flow{}, map[netip.Addr]time.Time{}
	}
	for _, a := range addrs[:min(len(addrs), max(dumps-1, 1))] {
		flows, err := youngConnections(ctx, c, a)
		if err != nil {
			return nil, err
		}
		s.flows[a], s.read[a], s.turn = flows, now, a.Next()
	}
	var all []Flow
	for a, at := range s.read {
		if now.Sub(at) > keepFlows {
			delete(s.flows, a)
			delete(s.read, a)
		}
		all = append(all, s.flows[a]...)
	}
	return all, nil
}

// youngConnections dumps the sessions of a backend.
func youngConnections(ctx context.Context, c link.Caller, backend netip.Addr) (flows []Flow, err error) {
	err = link.Each(ctx, c, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: backend.As4()}, func(d *nat44_ed.Nat44UserSessionV3Details) {
		if f := flowOf(d); !d.IsTimedOut && f.Service && f.Protocol == protoTCP && f.Idle <= young {
			flows = append(flows, f)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("dump NAT sessions of %s: %w", backend, err)
	}
	return flows, nil
}

// Signs are counters of VPP that hint at why answers do not come back, since VPP started.
type Signs struct {
	// New are TCP connections that got a session; they are counted at once, unlike the sessions
	// of Usage, which VPP counts every 10 s.
	New uint64
	// Strangers are packets from inside that belong to no connection, and are dropped.
	Strangers uint64
	// Foreign are packets of protocols other than TCP, UDP and ICMP that NAT44 changed or
	// dropped.
	Foreign uint64
	// NoTunnel are packets of IPIP that no tunnel took.
	NoTunnel uint64
	// DeniedIn and DeniedOut are packets that access lists have denied where packets enter and
	// where they leave.
	DeniedIn, DeniedOut uint64
	// Lists says where access lists of others are that may have denied them; it is no counter.
	Lists []string
}

// AnswersHistory is the memory of DecideAnswers. The zero value is for a VPP that was never read.
type AnswersHistory struct {
	last  Signs
	known bool
	grew  struct{ strangers, foreign, noTunnel, denied time.Time }
}

// signsCount is how long a counter that has grown is a hint.
const signsCount = time.Minute

// DecideAnswers returns who gets no answers to young connections (see Judge), and a line for the
// operator while answers do not come back, or NAT44 changes packets that are none of its business;
// "" = all is well. signs is nil without statistics.
func DecideAnswers(now time.Time, flows []Flow, signs *Signs, h AnswersHistory) (silent []Silent, alarm string, next AnswersHistory) {
	if signs != nil {
		for _, c := range []struct {
			now, before uint64
			always      bool // also what grew before the first look
			at          *time.Time
		}{
			{signs.Strangers, h.last.Strangers, false, &h.grew.strangers},
			{signs.Foreign, h.last.Foreign, false, &h.grew.foreign},
			{signs.NoTunnel, h.last.NoTunnel, true, &h.grew.noTunnel},
			{signs.DeniedIn, h.last.DeniedIn, true, &h.grew.denied},
			{signs.DeniedOut, h.last.DeniedOut, true, &h.grew.denied},
		} {
			if (h.known || c.always) && c.now > c.before {
				*c.at = now
			}
		}
		h.last, h.known = *signs, true
	}
	silent = Judge(flows, recent(now, h.grew.denied, signsCount))
	var lines []string
	if len(silent) > 0 {
		const most = 3
		var named []string
		for _, s := range silent[:min(len(silent), most)] {
			named = append(named, s.String())
		}
		if len(silent) > most {
			named = append(named, fmt.Sprintf("%d more", len(silent)-most))
		}
		lines = append(lines, "services are programmed, but answers do not come back: "+strings.Join(named, ", ")+": "+h.cause(now, silent))
	}
	if recent(now, h.grew.foreign, signsCount) {
		lines = append(lines, "NAT44 changes or drops packets of other protocols than TCP, UDP and ICMP, for example of tunnels")
	}
	return silent, strings.Join(lines, "; "), h
}

// cause is the likeliest reason, in words.
func (h *AnswersHistory) cause(now time.Time, silent []Silent) string {
	switch {
	case recent(now, h.grew.strangers, signsCount), slices.ContainsFunc(silent, func(s Silent) bool { return s.Astray }):
		return "they come in where VPP does not know their connection, for example at an interface of another table"
	case recent(now, h.grew.denied, signsCount):
		return strings.Join(append([]string{"access lists in VPP deny packets"}, h.last.Lists...), ", ")
	case recent(now, h.grew.noTunnel, signsCount):
		return "packets of a tunnel are dropped, because VPP has no such tunnel"
	case slices.ContainsFunc(silent, Silent.paired):
		return "other clients get answers there: look at the way back to this one, which has to end at an interface of the endpoint's table (VRF)"
	}
	return "VPP recognises none: look at the table (VRF) of the endpoint's interface, the endpoint, policies and the way back"
}
