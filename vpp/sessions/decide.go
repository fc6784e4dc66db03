package sessions

import (
	"fmt"
	"time"
)

// Decision is the next action: at most one of Survey, Raise and Free. After a survey the caller
// calls Decide again at once, with the same usage; after the others when Next has passed, with a
// new one.
type Decision struct {
	// Survey requests a survey.
	Survey bool
	// Raise is the limit to set, 0 = no change. It is above the present one and not above the cap.
	Raise uint32
	// Free is the largest number of expired sessions to free, 0 = none.
	Free int
	// Alarm is one line for the operator; "" = none. It lasts until a Decision without one.
	Alarm string
	// Next is the time until the next read of the usage.
	Next time.Duration
}

// Decide is the policy. It is a function of its arguments; the History it returns is for the next
// call.
//
// Expired sessions are freed from FreeAt down to FreeTo percent. The limit is raised when the
// unexpired sessions alone need it, or when the table would be full before freeing takes effect;
// growth is extrapolated over the time until the next read. It is never lowered. Where the present
// limit cannot be read it is set to the cap, the only value that is certainly not lower than what
// was set before.
func Decide(now time.Time, u Usage, h History, cfg Config) (Decision, History) {
	cfg = cfg.WithDefaults()
	h = h.observe(now, u, cfg.Soon)
	if !u.Enabled {
		return Decision{Next: cfg.Interval}, History{}
	}
	s := situation{now: now, usage: u, cfg: cfg, h: &h, busiest: u.Busiest}
	s.measure()
	d := Decision{Next: s.next()}
	if s.wantsSurvey() {
		d.Survey = true
		if h.alarmed {
			d.Alarm = s.alarm(d)
		}
		return d, h
	}
	if d.Raise = s.raise(); d.Raise == 0 {
		d.Free = s.free()
	}
	h.freeing = d.Free > 0 || d.Raise > 0 && h.freeing
	d.Alarm = s.alarm(d)
	h.alarmed = d.Alarm != ""
	return d, h
}

// situation is the usage in relation to the limit.
type situation struct {
	now       time.Time
	usage     Usage
	cfg       Config
	h         *History
	limit     uint64
	exact     bool
	busiest   uint64
	projected uint64 // sessions of the busiest worker at the next read
	expired   uint64 // of the busiest worker, if the survey is known
}

// measure computes the numbers that the rules compare.
func (s *situation) measure() {
	limit, exact := s.h.Limit(s.usage)
	s.limit, s.exact = uint64(limit), exact
	horizon := 2*s.cfg.Interval + s.cfg.Soon
	s.projected = s.busiest + uint64(s.h.rate*horizon.Seconds())
	if survey := s.h.Survey; survey.Known && s.usage.Total > 0 {
		// The survey has only the sum of all workers: assume that the share of expired sessions is
		// the same on each.
		share := float64(s.busiest) / float64(s.usage.Total)
		s.expired = min(uint64(float64(survey.All.Expired)*share), s.busiest)
	}
}

// reached reports whether n sessions are at least the given percentage of the limit.
func (s *situation) reached(n uint64, percent int) bool { return n*100 >= s.limit*uint64(percent) }

// pressed reports whether action may be needed.
func (s *situation) pressed() bool {
	return s.h.freeing || s.h.alarmed || s.reached(s.projected, min(s.cfg.FreeAt, s.cfg.RaiseAt)) || s.limit < uint64(s.cfg.Min)
}

// next returns the time until the next read: shorter while action may be needed, longer where a
// read costs VPP a pass over its sessions.
func (s *situation) next() time.Duration {
	switch {
	case s.pressed() && s.usage.Costly:
		return s.cfg.Interval
	case s.pressed():
		return s.cfg.Soon
	case s.usage.Costly:
		return 2 * s.cfg.Interval
	}
	return s.cfg.Interval
}

// wantsSurvey reports whether the last survey is too old for the decision.
func (s *situation) wantsSurvey() bool {
	switch age := s.now.Sub(s.h.SurveyedAt); {
	case recent(s.now, s.h.surveyFailed, s.cfg.Retry):
		return false
	case !s.h.Survey.Known || age >= s.cfg.SurveyEvery:
		return true
	case s.exact && s.busiest > s.limit && age > 0:
		return true // another client has set the limit
	default:
		return s.pressed() && age >= s.cfg.SurveyFresh
	}
}

// raise returns the limit to set, or 0.
func (s *situation) raise() uint32 {
	limit, highest := s.limit, uint64(s.cfg.Cap())
	if limit >= highest || recent(s.now, s.h.raiseFailed, s.cfg.Retry) {
		return 0
	}
	live := s.busiest - s.expired
	hot := s.reached(s.projected, s.cfg.AlarmAt)
	crowded := s.reached(s.projected, s.cfg.RaiseAt) && s.reached(live, s.cfg.FreeTo)
	switch {
	case limit < uint64(s.cfg.Min):
		// also where the limit is unknown: afterwards it is at least Min, or the cap
	case !hot && !crowded:
		return 0
	}
	if !s.exact {
		return uint32(highest)
	}
	wanted := uint64(s.cfg.Min)
	if hot || crowded {
		wanted = max(wanted, limit+max(limit/2, 1), s.projected*100/uint64(s.cfg.FreeTo))
		wanted = (wanted + 1023) / 1024 * 1024
	}
	return uint32(min(wanted, highest))
}

// free returns the number of expired sessions to free.
func (s *situation) free() int {
	floor := s.limit * uint64(s.cfg.FreeTo) / 100
	switch {
	case recent(s.now, s.h.freeFailed, s.cfg.Retry), s.busiest <= floor:
		return 0
	case !s.h.freeing && !s.reached(s.busiest, s.cfg.FreeAt):
		return 0
	case s.h.Survey.Known && s.h.Survey.All.Expired == 0:
		return 0
	}
	n := min(uint64(s.cfg.Batch), s.busiest-floor)
	if s.h.Survey.Known {
		n = min(n, s.h.Survey.All.Expired)
	}
	return int(n)
}

// brim is the percentage of the limit at which there is an alarm although an action has begun,
// because its effect may come too late.
const brim = 97

// alarm returns the line for the operator, given the actions of the decision.
func (s *situation) alarm(d Decision) string {
	idle := d.Raise == 0 && d.Free == 0 && !d.Survey
	switch {
	case s.h.alarmed && s.reached(s.busiest, s.cfg.CalmAt):
	case s.reached(s.busiest, s.cfg.AlarmAt) && idle && s.limit > 0:
	case s.reached(s.busiest, brim) && d.Raise == 0 && s.limit > 0 && s.exact:
	default:
		return ""
	}
	return fmt.Sprintf("NAT session table %d%% full: %s", s.busiest*100/max(s.limit, 1), s.hindrance())
}

// hindrance returns why the limit is not raised.
func (s *situation) hindrance() string {
	switch {
	case recent(s.now, s.h.raiseFailed, s.cfg.Retry):
		return fmt.Sprintf("VPP refuses to raise the limit of %d", s.limit)
	case s.limit >= uint64(s.cfg.Cap()):
		return fmt.Sprintf("the limit of %d is the highest allowed (nat44.sessionLimitMax)", s.limit)
	default:
		return fmt.Sprintf("the limit is %d", s.limit)
	}
}
