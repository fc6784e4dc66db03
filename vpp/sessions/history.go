package sessions

import "time"

// History is the state that Decide keeps between calls. The zero value is for a new VPP. It is a
// value; nothing in it is shared.
type History struct {
	// Survey is the last survey, made at SurveyedAt, less the sessions freed since.
	Survey     Survey
	SurveyedAt time.Time

	limit uint32 // the present limit, as surveyed or set
	known bool   // whether it is

	seen    Usage // the last read, at seenAt
	seenAt  time.Time
	rate    float64 // growth of the busiest worker in sessions per second, decaying
	freeing bool
	alarmed bool

	surveyFailed, freeFailed, raiseFailed time.Time // zero = it did not
}

// Limit returns the present limit of a worker, and whether it is known exactly. If not, the result
// is the lowest value that it can have.
func (h History) Limit(u Usage) (limit uint32, exact bool) {
	if h.known {
		return h.limit, true
	}
	return max(u.Base, uint32(min(u.Busiest, 1<<32-1))), false
}

// Surveyed enters the result of a survey.
func (h History) Surveyed(now time.Time, s Survey, err error) History {
	if err != nil {
		h.surveyFailed = now
		return h
	}
	h.Survey, h.SurveyedAt, h.surveyFailed = s, now, time.Time{}
	h.limit, h.known = s.Limit, s.LimitKnown
	return h
}

// Freed enters the result of a slice.
func (h History) Freed(now time.Time, f Freed) History {
	h.freeFailed = time.Time{}
	if f.Err != nil || f.Complete && f.Deleted == 0 {
		h.freeFailed = now
	}
	take := func(from *uint64) { *from -= min(*from, uint64(f.Deleted+f.Gone)) }
	take(&h.Survey.All.Expired)
	take(&h.Survey.All.Sessions)
	return h
}

// Raised enters the result of a change of the limit.
func (h History) Raised(now time.Time, limit uint32, err error) History {
	if err != nil {
		h.raiseFailed = now
		return h
	}
	h.limit, h.known, h.raiseFailed = limit, true, time.Time{}
	return h
}

// observe enters a read of the usage. The same read passed twice does not count as zero growth.
func (h History) observe(now time.Time, u Usage, soon time.Duration) History {
	passed := now.Sub(h.seenAt)
	switch {
	case h.seenAt.IsZero():
	case u == h.seen && passed < soon, passed <= 0:
		return h
	default:
		growth := (float64(u.Busiest) - float64(h.seen.Busiest)) / passed.Seconds()
		h.rate = max(growth, h.rate/2, 0)
	}
	h.seen, h.seenAt = u, now
	return h
}

// recent reports whether something happened less than d ago.
func recent(now, at time.Time, d time.Duration) bool { return !at.IsZero() && now.Sub(at) < d }
