package sessions

import (
	"errors"
	"time"

	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Config holds the thresholds and intervals of Decide. A field that is zero means its default.
// Percentages are of the limit of one worker and refer to the worker with the most sessions.
type Config struct {
	// The range of the limit.

	// Min is the lowest limit. The limit of a plugin that was enabled with fewer is raised. 0 =
	// none.
	Min uint32
	// Max is the highest limit that is ever set, if it is above Min; otherwise the limit is
	// never raised above Min. Every session takes about 350 bytes of VPP's main heap.
	Max uint32

	// Intervals, and sizes of slices.

	// Interval is the time between two reads of the usage. Default 5 s.
	Interval time.Duration
	// Soon is the time between two reads, and two actions, while action is needed. Default 1 s.
	Soon time.Duration
	// SurveyEvery is the longest time between two surveys, SurveyFresh the age up to which
	// Decide acts on one. Defaults 60 s and 10 s.
	SurveyEvery, SurveyFresh time.Duration
	// Retry is the pause after an action that VPP refused or that had no effect. Default 30 s.
	Retry time.Duration
	// Batch is the largest number of deletions in one slice, Dumps the largest number of dumps.
	// Defaults 1000 and 8.
	Batch, Dumps int
	// EndedAfter is that of a Wish. The default, 1 s, is less than the time between the second
	// and the third SYN of a client.
	EndedAfter time.Duration

	// Thresholds in percent.

	// Freeing of expired sessions begins at FreeAt and ends at FreeTo. Defaults 80 and 60.
	// Until the table is full VPP frees one expired session for every new one by itself, so
	// nothing needs to be freed below that.
	FreeAt, FreeTo int
	// RaiseAt is the usage at which the limit is raised if the unexpired sessions alone exceed
	// FreeTo. Default 75.
	RaiseAt int
	// AlarmAt is the usage at which the limit is raised in any case, or an alarm begins if that
	// is not possible; the alarm ends below CalmAt. Defaults 90 and 80.
	AlarmAt, CalmAt int
}

// WithDefaults returns the configuration with every zero field replaced, except Min and Max.
func (c Config) WithDefaults() Config {
	def(&c.Interval, 5*time.Second)
	def(&c.Soon, time.Second)
	def(&c.SurveyEvery, time.Minute)
	def(&c.SurveyFresh, 10*time.Second)
	def(&c.Retry, 30*time.Second)
	def(&c.Batch, 1000)
	def(&c.Dumps, 8)
	def(&c.EndedAfter, time.Second)
	def(&c.FreeAt, 80)
	def(&c.FreeTo, 60)
	def(&c.RaiseAt, 75)
	def(&c.AlarmAt, 90)
	def(&c.CalmAt, 80)
	return c
}

// Cap is the highest limit that is ever set.
func (c Config) Cap() uint32 { return max(c.Min, c.Max) }

// def sets a field that is still zero.
func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Errors of this package, for errors.Is.
var (
	// ErrNoStats means that the statistics are not available: there is no socket, no server behind
	// it, or no NAT44-ED entry in the segment.
	ErrNoStats = stats.ErrNone
	// ErrNoLimit means that the statistics have the sessions, but no readable limit of the table:
	// VPP 26.06 has it as a gauge, and GoVPP's client knows none. VPP itself has to be asked for
	// it (WithLimit).
	ErrNoLimit = errors.New("no limit of NAT44-ED that can be read in the statistics of VPP")
	// ErrSilent means that VPP accepted a client of its statistics and did not answer, as it does
	// while its main thread is busy.
	ErrSilent = stats.ErrSilent
	// ErrNotUnderstood means that this package cannot parse the answer of VPP.
	ErrNotUnderstood = errors.New("answer not understood")
)
