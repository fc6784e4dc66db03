package sessions

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/adapter"

	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Usage is the number of sessions in relation to the limit of the table.
type Usage struct {
	// Enabled says whether the plugin is enabled. If not, everything else is zero.
	Enabled bool
	// Busiest is the number of sessions of the worker that has the most, Total the number of
	// all workers. The limit applies to each worker. Where VPP does not report each worker,
	// both are the same.
	Busiest, Total uint64
	// Base is the limit that the plugin was enabled with. A limit that was set later is only in
	// the Survey.
	Base uint32
	// Costly says that this read has cost VPP a pass over its sessions, so that the next one
	// should not follow soon.
	Costly bool
}

// Protocol is the protocol of sessions.
type Protocol uint8

// The protocols, in the order of their names in metrics.
const (
	TCP Protocol = iota
	UDP
	ICMP
	Other
	// Protocols is the number of protocols.
	Protocols
)

// String returns the name in metrics.
func (p Protocol) String() string {
	names := [...]string{TCP: "tcp", UDP: "udp", ICMP: "icmp", Other: "other"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown"
}

// Count is a number of sessions, and how many of them have expired.
type Count struct {
	// Sessions that occupy a place.
	Sessions uint64
	// Expired are the sessions among them whose timeout has passed.
	Expired uint64
}

// Survey is the content of the table in numbers, at the cost of a pass over it.
type Survey struct {
	// Known says whether a survey was made. If not, everything else is zero.
	Known bool
	// Limit is the present limit of a worker; LimitKnown is false while the plugin is disabled.
	Limit      uint32
	LimitKnown bool
	// All are all sessions of all workers.
	All Count
	// By are the sessions by protocol.
	By [Protocols]Count
}

// Names of the entries of the statistics segment.
const (
	entryTotal = "/nat44-ed/total-sessions"   // by thread
	entryBase  = "/nat44-ed/max-cfg-sessions" // set when the plugin is enabled
	entries    = "^/nat44-ed/(total-sessions|max-cfg-sessions)$"
)

// Reader reads the usage from the statistics segment of VPP. Read returns ErrSilent when its
// context ends, even if VPP does not answer. With ErrNoLimit it returns the sessions alone. Other
// errors wrap ErrNoStats.
type Reader = stats.Reader[Usage]

// NewReader returns a reader of the statistics socket at path (statseg in VPP's startup.conf).
func NewReader(path string) *Reader { return stats.NewReader(path, entries, usageOf) }

// usageOf translates the entries.
func usageOf(found []adapter.StatEntry) (usage Usage, err error) {
	var total, base, unread bool
	for _, e := range found {
		switch data := e.Data.(type) {
		case adapter.SimpleCounterStat:
			if string(e.Name) == entryTotal {
				total = true
				usage.add(data)
			}
		case adapter.ScalarStat:
			if string(e.Name) == entryBase && data >= 0 && data < 1<<32 {
				base = true
				usage.Base = uint32(data)
			}
		case nil:
			unread = unread || string(e.Name) == entryBase
		}
	}
	if total && unread {
		return usage, ErrNoLimit
	}
	if !total || !base {
		return Usage{}, fmt.Errorf("%w: no sessions of NAT44-ED in the segment: is the NAT plugin loaded?", ErrNoStats)
	}
	if usage.Base == 0 { // never enabled
		return Usage{}, nil
	}
	usage.Enabled = true
	return usage, nil
}

// add counts the sessions of each thread; index 0 is the only one.
func (u *Usage) add(threads adapter.SimpleCounterStat) {
	for _, counters := range threads {
		if len(counters) > 0 {
			n := uint64(counters[0])
			u.Busiest, u.Total = max(u.Busiest, n), u.Total+n
		}
	}
}

// SignsReader reads hints at lost answers from the statistics segment of VPP, at no cost for VPP.
// Its errors are those of Reader.
type SignsReader = stats.Reader[Signs]

// signEntries are the entries of the statistics segment: counters of NAT44 by thread and interface,
// errors of nodes by thread.
const signEntries = "^/nat44-ed/(out2in/slowpath/tcp|in2out/slowpath/drops|in2out/(slow|fast)path/other)$|" +
	"^/err/(ipip4-input/no tunnel|acl-plugin-(in|out)-ip4-fa/ACL deny packets)$"

// NewSignsReader returns a reader of the statistics socket at path (statseg in VPP's startup.conf).
func NewSignsReader(path string) *SignsReader { return stats.NewReader(path, signEntries, signsOf) }

// signsOf translates the entries. A plugin that is not loaded has none.
func signsOf(found []adapter.StatEntry) (s Signs, err error) {
	var drops, unknown uint64 // without a session: all, and those of other protocols
	known := false
	for _, e := range found {
		n := total(e.Data)
		switch name := string(e.Name); {
		case strings.HasSuffix(name, "/tcp"):
			s.New += n
		case strings.HasSuffix(name, "/drops"):
			drops, known = drops+n, true
		case strings.HasSuffix(name, "/slowpath/other"):
			s.Foreign, unknown = s.Foreign+n, unknown+n
		case strings.HasSuffix(name, "/other"):
			s.Foreign += n
		case strings.HasSuffix(name, "/no tunnel"):
			s.NoTunnel += n
		case strings.Contains(name, "/acl-plugin-in"):
			s.DeniedIn += n
		default:
			s.DeniedOut += n
		}
	}
	if !known {
		return Signs{}, fmt.Errorf("%w: no counters of NAT44-ED in the segment: is the NAT plugin loaded?", ErrNoStats)
	}
	s.Strangers = drops - min(drops, unknown) // a packet of another protocol counts in both if it is dropped
	return s, nil
}

// total is the sum of a counter over threads and interfaces.
func total(data adapter.Stat) (sum uint64) {
	switch counters := data.(type) {
	case adapter.SimpleCounterStat:
		for _, thread := range counters {
			for _, n := range thread {
				sum += uint64(n)
			}
		}
	case adapter.ErrorStat:
		for _, n := range counters {
			sum += uint64(n)
		}
	}
	return sum
}
