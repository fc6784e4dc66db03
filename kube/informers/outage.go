package informers

import (
	"log/slog"
	"time"
)

// settle is the time after which an outage is logged: by then every resource has noticed it.
const settle = time.Second

// settleAnew is the time after which an outage with a new cause is logged again. Watches that only
// expire are logged after the same time. An API server that starts refuses many requests for a
// moment.
const settleAnew = 10 * time.Second

// outageLog logs an outage once when it begins and once when it ends, whatever the number of
// resources, requests and error texts. Only a new cause gives another line.
type outageLog struct {
	log    *slog.Logger
	timer  *time.Timer
	since  time.Time       // begin of the outage; zero = there is none
	logged map[string]bool // causes that are in the log
	armed  bool            // timer runs
	well   bool            // "watching the API server" has been logged
}

// begin starts without an outage.
func (o *outageLog) begin(log *slog.Logger) {
	o.log, o.logged, o.timer = log, map[string]bool{}, time.NewTimer(settle)
	o.timer.Stop()
}

// reported takes a verdict that differs from the last one.
func (o *outageLog) reported(v verdict) {
	switch {
	case !v.ok && o.since.IsZero():
		o.since, o.armed = time.Now(), true
		o.timer.Reset(settle)
	case !v.ok && o.news(v) && !o.armed:
		o.armed = true
		o.timer.Reset(settleAnew)
	case v.ok && len(o.logged) > 0:
		o.log.Info("watching the API server again", "outage", time.Since(o.since).Round(time.Second))
	case v.ok && !o.well:
		o.log.Info("watching the API server")
	}
	if v.ok {
		o.timer.Stop()
		o.since, o.armed, o.well = time.Time{}, false, true
		clear(o.logged)
	}
}

// lasts logs an outage that has lasted since the timer was set.
func (o *outageLog) lasts(v verdict) {
	o.armed = false
	if !v.ok && v.causes == string(expired) && time.Since(o.since) < settleAnew {
		o.armed = true
		o.timer.Reset(settle)
		return
	}
	if !v.ok && (len(o.logged) == 0 || o.news(v)) {
		o.logged[v.causes] = true
		o.log.Warn("not watching the API server", "err", v.reason)
	}
}

// news reports whether a logged outage has a cause that is not in the log.
func (o *outageLog) news(v verdict) bool {
	return len(o.logged) > 0 && v.causes != string(expired) && !o.logged[v.causes]
}
