package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// natSessions holds the metrics of VPP's table of NAT sessions.
type natSessions struct {
	count   *prometheus.GaugeVec
	expired *prometheus.GaugeVec
	busiest prometheus.Gauge
	limit   prometheus.Gauge
	alarm   prometheus.Gauge
	drains  prometheus.Gauge
	lost    prometheus.Gauge
	silent  prometheus.Gauge
	answers atomic.Pointer[[]sessions.Silent]
	deleted prometheus.Counter
	errors  prometheus.Counter
	last    atomic.Pointer[SessionTable]

	cnat        prometheus.Gauge
	cnatDropped *prometheus.GaugeVec
	cnatAlarm   prometheus.Gauge
}

// newNATSessions creates the series of all protocols with 0, so that a graph has no gaps before the
// first survey.
func newNATSessions(to maker) *natSessions {
	s := &natSessions{
		count:       to.gauges("troupe_nat_sessions", "NAT sessions in VPP at the last survey, including expired sessions; a survey runs every minute, or more often while the table fills.", "protocol"),
		expired:     to.gauges("troupe_nat_sessions_expired", "Expired NAT sessions that still occupy the table, as of the last survey.", "protocol"),
		busiest:     to.gauge("troupe_nat_sessions_busiest_worker", "NAT sessions of the VPP worker with the most sessions; compare it with the limit."),
		limit:       to.gauge("troupe_nat_session_limit", "Present limit of NAT sessions of a worker; 0 = unknown."),
		alarm:       to.gauge("troupe_nat_session_alarm", "1 while the table of NAT sessions is nearly full and the agent can neither free sessions nor raise the limit."),
		drains:      to.gauge("troupe_draining_endpoints", "Endpoints that keep their connections through VPP and get no new connections."),
		silent:      to.gauge("troupe_unanswered_endpoints", "Endpoints, clients, and clients at one endpoint, whose new connections get no answer through VPP."),
		lost:        to.gauge("troupe_answers_alarm", "1 while answers of services do not come back, or NAT44 changes packets of other protocols."),
		deleted:     to.counter("troupe_nat_sessions_deleted_total", "Expired NAT sessions deleted to free the table."),
		errors:      to.counter("troupe_nat_session_errors_total", "Requests about NAT sessions that failed: usage, survey, limit, deletion."),
		cnat:        to.gauge("troupe_cnat_sessions", "Sessions of CNAT in VPP, read every minute."),
		cnatDropped: to.gauges("troupe_cnat_dropped_packets", "Packets that CNAT dropped since VPP started or its errors were cleared, because no source port was free (ports) or its table was full (sessions).", "reason"),
		cnatAlarm:   to.gauge("troupe_cnat_session_alarm", "1 while CNAT refuses connections, or has nearly as many sessions as a NAT address has source ports."),
	}
	for p := range sessions.Protocols {
		s.count.WithLabelValues(p.String())
		s.expired.WithLabelValues(p.String())
	}
	s.dropped(sessions.CNAT{})
	return s
}

// Sessions sets the fill level of VPP's table of NAT sessions. With the methods below it satisfies
// sessionsactor.Observer.
func (m *Metrics) Sessions(u sessions.Usage, limit uint32, s sessions.Survey, alarm bool) {
	m.sessions.last.Store(&SessionTable{At: m.clock(), Usage: u, Limit: limit, Survey: s, Alarm: alarm})
	for p := range sessions.Protocols {
		m.sessions.count.WithLabelValues(p.String()).Set(float64(s.By[p].Sessions))
		m.sessions.expired.WithLabelValues(p.String()).Set(float64(s.By[p].Expired))
	}
	m.sessions.busiest.Set(float64(u.Busiest))
	m.sessions.limit.Set(float64(limit))
	m.sessions.alarm.Set(one(alarm))
}

// Unanswered sets the endpoints and clients whose new connections get no answer.
func (m *Metrics) Unanswered(silent []sessions.Silent, alarm string) {
	m.sessions.answers.Store(&silent)
	m.sessions.silent.Set(float64(len(silent)))
	m.sessions.lost.Set(one(alarm != ""))
}

// Silent returns the endpoints and clients whose new connections get no answer.
func (m *Metrics) Silent() []sessions.Silent {
	if known := m.sessions.answers.Load(); known != nil {
		return *known
	}
	return nil
}

// CNATSessions sets the fill level of CNAT.
func (m *Metrics) CNATSessions(u sessions.CNAT, alarm bool) {
	m.sessions.cnat.Set(float64(u.Sessions))
	m.sessions.dropped(u)
	m.sessions.cnatAlarm.Set(one(alarm))
}

// dropped sets the number of packets that CNAT dropped.
func (s *natSessions) dropped(u sessions.CNAT) {
	s.cnatDropped.WithLabelValues("ports").Set(float64(u.NoPort))
	s.cnatDropped.WithLabelValues("sessions").Set(float64(u.NoSession))
}

// one is 1 for true, 0 for false.
func one(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// SessionTable is the last observation of VPP's table of NAT sessions.
type SessionTable struct {
	// At is the time of the observation.
	At time.Time
	// Usage, Limit, Survey and Alarm are the observed values.
	Usage  sessions.Usage
	Limit  uint32
	Survey sessions.Survey
	Alarm  bool
}

// LastSessions returns the last observation; nil = there was none.
func (m *Metrics) LastSessions() *SessionTable { return m.sessions.last.Load() }

// SessionsDeleted counts deleted expired sessions.
func (m *Metrics) SessionsDeleted(n int) { m.sessions.deleted.Add(float64(max(n, 0))) }

// SessionErrors counts failed requests about sessions.
func (m *Metrics) SessionErrors(n int) { m.sessions.errors.Add(float64(max(n, 0))) }

// Draining sets the number of endpoints that keep their connections and get no new ones.
func (m *Metrics) Draining(n int) { m.sessions.drains.Set(float64(n)) }
