package sessions

import (
	"fmt"

	"go.fd.io/govpp/adapter"

	"github.com/troupe-vpp/troupe/vpp/stats"
)

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
