package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Observer counts NAT sessions for metrics. Its methods are called from an actor and must not
// block.
type Observer interface {
	// Sessions is called after every look at the table: its usage, the limit of a worker (0 =
	// not known), the last survey, and whether there is an alarm.
	Sessions(u sessions.Usage, limit uint32, s sessions.Survey, alarm bool)
	// SessionsDeleted is called with the number of expired sessions that were deleted.
	SessionsDeleted(n int)
	// SessionErrors is called with the number of requests about sessions that failed.
	SessionErrors(n int)
	// CNATSessions is called after every look at CNAT: its usage, and whether there is an
	// alarm.
	CNATSessions(u sessions.CNAT, alarm bool)
	// Unanswered is called after every look at new connections: the endpoints and clients whose
	// connections get no answer, and the line for the operator.
	Unanswered(silent []sessions.Silent, alarm string)
	// Draining is called with the number of draining backends: they keep their connections and
	// get no new ones.
	Draining(n int)
}

// Config is the configuration of the actor. It is read-only.
type Config struct {
	// NAT44 says whether the table of NAT44-ED has a housekeeper, CNAT whether the sessions of
	// CNAT are counted.
	NAT44, CNAT bool
	// Settings of the housekeeping.
	Settings sessions.Config
	// Stats says how full the table is; nil = VPP is asked, at a higher cost.
	Stats stats.Source[sessions.Usage]
	// Signs has hints at lost answers; nil = there are none.
	Signs stats.Source[sessions.Signs]
	// Observer counts; nil = nothing is counted.
	Observer Observer
	// VPP is the connection.
	VPP link.Caller
}

// housekeeper keeps VPP's table of NAT sessions from filling up: it reads the usage, frees expired
// sessions and raises the limit. While VPP runs it owns the limit. vpp/sessions decides. One
// request is under way at a time, and answers of an earlier connection are ignored. Sessions of
// CNAT are only counted (cnat.go).
type housekeeper struct {
	report.Health
	config   *Config
	settings sessions.Config // config.Settings with defaults
	link     *messages.LinkState

	// Requests: changed by do, done, after and linkChanged. One is under way at a time.
	busy bool
	tick func() // cancels the next look

	// The table of NAT44-ED: changed where a result of a request is taken.
	history sessions.History
	usage   sessions.Usage
	left    []sessions.User // where the search for expired sessions goes on
	freed   int             // since the last record in the journal
	alarm   string
	broken  string // why the table cannot be read; "" = it can
	origin  origin // where the usage is read

	cnat     cnatWatch    // changed by cnat.go
	answers  answersWatch // changed by answers.go
	draining draining     // changed by draining.go
}

// origin is where the usage is read. It is recorded when it was the same twice, because a starting
// VPP opens one socket after the other.
type origin struct{ recorded, last string }

// statsTimeout is how long VPP may take to hand out its statistics. It does so at once unless it is
// stuck.
const statsTimeout = time.Second

// sessionsTick starts a look at the usage.
type sessionsTick struct{}

// Results of requests to VPP.
type (
	tableLooked struct {
		connection uint64
		usage      sessions.Usage
		survey     sessions.Survey // known if the look was a survey at the same time
		source     string
		err        error
	}
	tableSurveyed struct {
		connection uint64
		survey     sessions.Survey
		err        error
	}
	limitRaised struct {
		connection uint64
		limit      uint32
		err        error
	}
	sessionsFreed struct {
		connection uint64
		freed      sessions.Freed
	}
)

// New returns the actor.
func New(config *Config) runtime.Behaviour {
	return &housekeeper{
		Health: report.Health{Part: "sessions"}, config: config, settings: config.Settings.WithDefaults(), link: &messages.LinkState{},
		answers: answersWatch{sampler: &sessions.Sampler{}},
	}
}

func (k *housekeeper) Start(c *runtime.Context) {
	c.Ready()
	k.Report(c, true, "", 0)
	k.Health.Start(c)
	c.Send(c.PID(address.Link), &messages.Resync{Sibling: "sessions", Incarnation: c.Incarnation()})
	if k.config.NAT44 {
		// asks for the list
		c.Send(c.PID(address.Renderer(nat44Renderer)), &sessions.Counted{})
		k.after(c, k.settings.Soon)
	}
}

// Stop satisfies runtime.Behaviour: the limit stays what it is.
func (*housekeeper) Stop(*runtime.Context) {}

func (k *housekeeper) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.LinkState:
		k.linkChanged(c, m)
	case *sessionsTick:
		k.look(c)
	case *tableLooked:
		k.looked(c, m)
	case *tableSurveyed:
		if k.done(c, m.connection, m.err) {
			k.history = k.history.Surveyed(c.Now(), m.survey, m.err)
			k.decide(c)
		}
	case *limitRaised:
		k.raised(c, m)
	case *sessionsFreed:
		k.freedSome(c, m)
	case *cnatTick:
		k.lookCNAT(c)
	case *cnatLooked:
		k.cnatLooked(c, m)
	case *sessions.Wish:
		k.drains(c, m)
	case *drainingTick:
		k.lookForDraining(c)
	case *drainingLooked:
		k.lookedForDraining(c, m)
	case *answersLooked:
		k.lookedAtAnswers(c, m)
	case *report.Ask:
		k.Repeat(c)
	case *report.Beat:
		k.Beat(c)
	}
}

// after schedules the next look in about d; jitter spreads the nodes of a cluster.
func (k *housekeeper) after(c *runtime.Context, d time.Duration) {
	if k.tick != nil {
		k.tick()
	}
	const jitter = 0.2
	k.tick = c.After(time.Duration(float64(d)*(1-jitter/2+jitter*c.Rand().Float64())), &sessionsTick{})
}

// linkChanged forgets everything on another connection: the outcome of earlier requests is unknown,
// and VPP may have restarted.
func (k *housekeeper) linkChanged(c *runtime.Context, m *messages.LinkState) {
	if m.GetSession() < k.link.GetSession() {
		return
	}
	changed := m.GetSession() != k.link.GetSession() || m.GetUp() != k.link.GetUp()
	k.link = m
	if !changed {
		return
	}
	// the result of a request under way is ignored, because its connection has ended
	k.history, k.left, k.busy = sessions.History{}, nil, false
	k.settle(c)
	k.forgetAnswers(c)
	if m.GetUp() && k.config.NAT44 {
		k.after(c, k.settings.Soon)
	}
	k.restartCNAT(c)
}

// do starts a request. No other one may be under way.
func (k *housekeeper) do(c *runtime.Context, name string, fn func(ctx context.Context) any) {
	k.busy = true
	post := c.Post()
	c.Go(name, func(ctx context.Context) { post(fn(ctx)) })
}

// done ends the request under way. It reports whether the result belongs to the present connection.
// It counts errors other than the end of the connection.
func (k *housekeeper) done(c *runtime.Context, connection uint64, err error) bool {
	if connection != k.link.GetSession() {
		return false // another request may be under way
	}
	k.busy = false
	switch {
	case err == nil:
	case link.Lost(err): // the link reports the next connection
		k.after(c, k.settings.Interval)
		return false
	case k.config.Observer != nil:
		k.config.Observer.SessionErrors(1)
	}
	return true
}

// look reads the usage from the statistics, or else asks VPP.
func (k *housekeeper) look(c *runtime.Context) {
	k.after(c, k.settings.Interval)              // also if this look ends without a decision
	k.answer(c, k.draining.list.Generation, nil) // the sessions actor may have lost the latest list
	if k.busy || !k.link.GetUp() {
		return
	}
	connection, source, caller := k.link.GetSession(), k.config.Stats, k.config.VPP
	k.do(c, "session-usage", func(ctx context.Context) any {
		why := errors.New("no statistics socket is configured")
		if source != nil {
			brief, cancel := context.WithTimeout(ctx, statsTimeout)
			defer cancel()
			usage, err := source.Read(brief)
			if errors.Is(err, sessions.ErrNoLimit) {
				usage, err = sessions.WithLimit(ctx, caller, usage)
			}
			if err == nil {
				return &tableLooked{connection: connection, usage: usage, source: "from VPP's statistics"}
			}
			why = err
		}
		usage, survey, err := sessions.Ask(ctx, caller)
		return &tableLooked{connection, usage, survey, "by API, at a cost: " + why.Error(), err}
	})
}

// looked takes the usage and decides.
func (k *housekeeper) looked(c *runtime.Context, m *tableLooked) {
	if !k.done(c, m.connection, m.err) {
		return
	}
	if m.err != nil {
		k.cannotRead(c, m.err)
		return
	}
	k.readFrom(c, m.source)
	k.broken = ""
	k.usage = m.usage
	if m.survey.Known {
		k.history = k.history.Surveyed(c.Now(), m.survey, nil)
	}
	k.decide(c)
	k.lookAtAnswers(c)
}

// cannotRead reports why there is no housekeeping.
func (k *housekeeper) cannotRead(c *runtime.Context, err error) {
	if k.broken != err.Error() {
		c.Logger().Warn("cannot read NAT sessions", "err", err)
		report.Event(c, &messages.Event{Kind: "sessions", Object: "nat44", Text: "cannot read NAT sessions", Error: err.Error()})
	}
	k.broken = err.Error()
	k.warn(c)
}

// readFrom records a change of the origin of the usage.
func (k *housekeeper) readFrom(c *runtime.Context, where string) {
	if k.origin.last == where && k.origin.recorded != where {
		c.Logger().Info("NAT sessions are read " + where)
		report.Event(c, &messages.Event{Kind: "sessions", Object: "nat44", Text: "NAT sessions are read " + where})
		k.origin.recorded = where
	}
	k.origin.last = where
}

// decide asks the policy and starts the request that it decides.
func (k *housekeeper) decide(c *runtime.Context) {
	d, next := sessions.Decide(c.Now(), k.usage, k.history, k.settings)
	k.history = next
	raise(c, "nat44", "NAT sessions", newRefused, k.alarm, d.Alarm)
	k.alarm = d.Alarm
	k.warn(c)
	k.observe()
	k.after(c, d.Next)
	if d.Free == 0 { // one record for all slices of a cleaning
		k.settle(c)
	}
	connection, caller := k.link.GetSession(), k.config.VPP
	switch {
	case d.Survey:
		k.do(c, "session-survey", func(ctx context.Context) any {
			survey, err := sessions.Look(ctx, caller)
			return &tableSurveyed{connection, survey, err}
		})
	case d.Raise > 0:
		k.do(c, "session-limit", func(ctx context.Context) any {
			return &limitRaised{connection, d.Raise, sessions.Raise(ctx, caller, d.Raise)}
		})
	case d.Free > 0:
		left, slice := k.left, sessions.Slice{Deletions: d.Free, Dumps: k.settings.Dumps}
		k.do(c, "session-freeing", func(ctx context.Context) any {
			return &sessionsFreed{connection, sessions.Free(ctx, caller, left, slice)}
		})
	}
}

// raised records another limit.
func (k *housekeeper) raised(c *runtime.Context, m *limitRaised) {
	before, exact := k.history.Limit(k.usage)
	if !k.done(c, m.connection, m.err) {
		return
	}
	k.history = k.history.Raised(c.Now(), m.limit, m.err)
	e := &messages.Event{Kind: "sessions", Object: "nat44", Text: fmt.Sprintf("NAT session limit %d -> %d: %d sessions", before, m.limit, k.usage.Busiest)}
	if !exact {
		e.Text = fmt.Sprintf("NAT session limit -> %d, from a value that VPP does not report: %d sessions", m.limit, k.usage.Busiest)
	}
	if m.err != nil {
		e.Error = m.err.Error()
		c.Logger().Warn("cannot raise the NAT session limit", "limit", m.limit, "err", m.err)
	} else {
		c.Logger().Info("NAT session limit raised", "limit", m.limit, "sessions", k.usage.Busiest)
	}
	report.Event(c, e)
	k.observe()
}

// freedSome takes the result of one slice of deletions.
func (k *housekeeper) freedSome(c *runtime.Context, m *sessionsFreed) {
	f := m.freed
	k.countDeleted(&f)
	k.freed += f.Deleted
	if !k.done(c, m.connection, f.Err) {
		return
	}
	k.left = f.Left
	k.history = k.history.Freed(c.Now(), f)
	if f.Err != nil || f.Errors > 0 {
		c.Logger().Warn("cannot delete expired NAT sessions", "refused", f.Errors, "err", f.Err)
	}
}

// countDeleted updates the metrics of deletions.
func (k *housekeeper) countDeleted(f *sessions.Freed) {
	if o := k.config.Observer; o != nil {
		o.SessionsDeleted(f.Deleted)
		if f.Errors > 0 {
			o.SessionErrors(f.Errors)
		}
	}
}

// settle records the number of freed sessions when the cleaning is over.
func (k *housekeeper) settle(c *runtime.Context) {
	if k.freed > 0 {
		report.Event(c, &messages.Event{Kind: "sessions", Object: "nat44", Text: fmt.Sprintf("%d expired NAT sessions freed", k.freed)})
		c.Logger().Info("expired NAT sessions freed", "sessions", k.freed)
	}
	k.freed = 0
}

// newRefused is what is wrong while a table is nearly full.
const newRefused = "new connections are about to be refused"

// raise records the begin or the end of an alarm. subject is its subject in the log, what says what
// is wrong.
func raise(c *runtime.Context, object, subject, what, before, alarm string) {
	if (alarm == "") == (before == "") {
		return
	}
	e := &messages.Event{Kind: "sessions", Object: object, Text: "alarm: " + what, Error: alarm}
	if alarm == "" {
		e.Text = "alarm is over"
		c.Logger().Info(subject + ": " + e.Text)
	} else {
		c.Logger().Error(subject+": "+e.Text, "err", alarm)
	}
	report.Event(c, e)
}

// warn reports the health of the part. It is always good, because the node serves what it should,
// and may have a warning.
func (k *housekeeper) warn(c *runtime.Context) {
	reasons := []string{k.alarm, k.cnat.alarm, k.answers.alarm}
	if k.broken != "" {
		reasons[0] = "cannot read NAT sessions: " + k.broken
	}
	if k.cnat.broken != "" {
		reasons[1] = k.cnat.broken
	}
	reason := strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
	if k.Last.GetReason() != reason {
		k.Report(c, true, reason, 0)
	}
}

// observe updates the metrics.
func (k *housekeeper) observe() {
	if k.config.Observer != nil {
		limit, exact := k.history.Limit(k.usage)
		if !exact {
			limit = 0
		}
		k.config.Observer.Sessions(k.usage, limit, k.history.Survey, k.alarm != "")
	}
}
