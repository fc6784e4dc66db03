package sessions

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/adapter"

	"github.com/troupe-vpp/troupe/vpp/stats"
)

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
