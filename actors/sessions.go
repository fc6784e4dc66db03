package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// SessionStats reads how full VPP's table of NAT sessions is; *sessions.Reader satisfies it.
type SessionStats interface {
	// Read looks at the table at no cost for VPP. It returns when ctx ends, whatever VPP does.
	Read(ctx context.Context) (sessions.Usage, error)
}

// SessionObserver is told what metrics count about NAT sessions. Its methods are called from an actor and must not block.
type SessionObserver interface {
	// Sessions is called after every look at the table: how full it is, the present limit of a worker (0 = not known), what was seen when it was
	// last looked at closely, and whether there is an alarm.
	Sessions(u sessions.Usage, limit uint32, s sessions.Survey, alarm bool)
	// SessionsDeleted is called with the number of expired sessions that were deleted.
	SessionsDeleted(n int)
	// SessionErrors is called with the number of requests about sessions that failed.
	SessionErrors(n int)
}

// sessionKeeper keeps VPP's table of NAT sessions from filling up: it looks at it, frees expired sessions and raises the limit, of which it is the
// owner while VPP runs. Package sessions decides what to do. There is one thing under way at a time, and what an earlier connection has answered
// is worth nothing.
//
// Nothing depends on this actor. It has a supervisor of its own, so that it can fail as often as it likes.
type sessionKeeper struct {
	reporter
	deps    *Deps
	cfg     sessions.Config
	link    *messages.LinkState
	history sessions.History
	usage   sessions.Usage
	left    []sessions.User // of the search for expired sessions
	busy    bool
	tick    func() // cancels the next one
	freed   int    // since the journal was told
	alarm   string
	origin  origin // where the usage comes from
	broken  string // why the table cannot be read; "" = it can
}

// origin is where the usage comes from, told when it has come from there twice: a VPP that starts opens one socket after the other.
type origin struct{ told, heard string }

// statsPatience is how long VPP may take to hand out its statistics, which it does at once unless it is stuck.
const statsPatience = time.Second

// sessionsTick makes the keeper look at the table.
type sessionsTick struct{}

// Results of what the keeper does.
type (
	tableLooked struct {
		session uint64
		usage   sessions.Usage
		survey  sessions.Survey // known where the look was a survey at the same time
		source  string
		err     error
	}
	tableSurveyed struct {
		session uint64
		survey  sessions.Survey
		err     error
	}
	limitRaised struct {
		session uint64
		limit   uint32
		err     error
	}
	sessionsFreed struct {
		session uint64
		freed   sessions.Freed
	}
)

func newSessionKeeper(d *Deps) runtime.Behaviour {
	cfg := d.Sessions.WithDefaults()
	cfg.Min = max(cfg.Min, d.NAT44.SessionLimit)
	return &sessionKeeper{reporter: reporter{part: "sessions"}, deps: d, cfg: cfg, link: &messages.LinkState{}}
}

// Start satisfies runtime.Behaviour.
func (k *sessionKeeper) Start(c *runtime.Context) {
	c.Ready() // nobody waits for us
	k.report(c, true, "", 0)
	k.keep(c)
	c.Send(c.PID(PathLink), &messages.Resync{Sibling: "sessions", Incarnation: c.Incarnation()})
	k.after(c, k.cfg.Soon)
}

// Stop satisfies runtime.Behaviour: the limit stays what it is.
func (*sessionKeeper) Stop(*runtime.Context) {}

// Receive satisfies runtime.Behaviour.
func (k *sessionKeeper) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.LinkState:
		k.linkChanged(c, m)
	case *sessionsTick:
		k.look(c)
	case *tableLooked:
		k.looked(c, m)
	case *tableSurveyed:
		if k.done(c, m.session, m.err) {
			k.history = k.history.Surveyed(c.Now(), m.survey, m.err)
			k.decide(c)
		}
	case *limitRaised:
		k.raised(c, m)
	case *sessionsFreed:
		k.freedSome(c, m)
	case *healthBeat:
		k.keep(c)
		k.repeat(c)
	}
}

// after has the next look come in about d. Keepers of many nodes do not look at the same time.
func (k *sessionKeeper) after(c *runtime.Context, d time.Duration) {
	if k.tick != nil {
		k.tick()
	}
	const spread = 0.2
	k.tick = c.After(time.Duration(float64(d)*(1-spread/2+spread*c.Rand().Float64())), &sessionsTick{})
}

// linkChanged forgets everything when the connection is another one: what was asked for on the one before may have happened or not, and VPP may
// be another one.
func (k *sessionKeeper) linkChanged(c *runtime.Context, m *messages.LinkState) {
	if m.GetSession() < k.link.GetSession() {
		return // overtaken
	}
	news := m.GetSession() != k.link.GetSession() || m.GetUp() != k.link.GetUp()
	k.link = m
	if !news {
		return
	}
	k.history, k.left, k.busy = sessions.History{}, nil, false
	k.settle(c)
	if m.GetUp() {
		k.after(c, k.cfg.Soon)
	}
}

// do starts the one thing that is under way.
func (k *sessionKeeper) do(c *runtime.Context, name string, fn func(ctx context.Context) any) {
	k.busy = true
	post := c.Post()
	c.Go(name, func(ctx context.Context) { post(fn(ctx)) })
}

// done ends what was under way. It reports whether the result is of the present connection; an error that does not only say that it has ended
// is counted.
func (k *sessionKeeper) done(c *runtime.Context, session uint64, err error) bool {
	if session != k.link.GetSession() {
		return false // something else may be under way already
	}
	k.busy = false
	switch {
	case err == nil:
	case lost(err): // the link will tell
		k.after(c, k.cfg.Interval)
		return false
	case k.deps.SessionObserver != nil:
		k.deps.SessionObserver.SessionErrors(1)
	}
	return true
}

// look reads the usage: from the statistics, or else by asking VPP.
func (k *sessionKeeper) look(c *runtime.Context) {
	k.after(c, k.cfg.Interval)
	if k.busy || !k.link.GetUp() {
		return
	}
	session, stats, caller := k.link.GetSession(), k.deps.SessionStats, k.deps.Link
	k.do(c, "session-usage", func(ctx context.Context) any {
		why := errors.New("no statistics socket is configured")
		if stats != nil {
			brief, cancel := context.WithTimeout(ctx, statsPatience)
			defer cancel()
			usage, err := stats.Read(brief)
			if err == nil {
				return &tableLooked{session: session, usage: usage, source: "from VPP's statistics"}
			}
			why = err
		}
		usage, survey, err := sessions.Ask(ctx, caller)
		return &tableLooked{session, usage, survey, "by API, at a cost: " + why.Error(), err}
	})
}

// looked decides what to do.
func (k *sessionKeeper) looked(c *runtime.Context, m *tableLooked) {
	if !k.done(c, m.session, m.err) {
		return
	}
	if m.err != nil {
		k.cannotRead(c, m.err)
		return
	}
	k.comesFrom(c, m.source)
	k.broken = ""
	k.usage = m.usage
	if m.survey.Known {
		k.history = k.history.Surveyed(c.Now(), m.survey, nil)
	}
	k.decide(c)
}

// cannotRead says why the table is not looked after.
func (k *sessionKeeper) cannotRead(c *runtime.Context, err error) {
	if k.broken != err.Error() {
		c.Logger().Warn("NAT sessions cannot be looked after", "err", err)
		record(c, &messages.Event{Kind: "sessions", Object: "nat44", Text: "NAT sessions cannot be looked after", Error: err.Error()})
	}
	k.broken = err.Error()
	k.warn(c)
}

// comesFrom tells once where the usage comes from.
func (k *sessionKeeper) comesFrom(c *runtime.Context, where string) {
	if k.origin.heard == where && k.origin.told != where {
		c.Logger().Info("NAT sessions are read " + where)
		record(c, &messages.Event{Kind: "sessions", Object: "nat44", Text: "NAT sessions are read " + where})
		k.origin.told = where
	}
	k.origin.heard = where
}

// decide asks the policy and begins what it says.
func (k *sessionKeeper) decide(c *runtime.Context) {
	d, next := sessions.Decide(c.Now(), k.usage, k.history, k.cfg)
	k.history = next
	k.sound(c, d.Alarm)
	k.observe()
	k.after(c, d.Next)
	if d.Free == 0 {
		k.settle(c)
	}
	session, caller := k.link.GetSession(), k.deps.Link
	switch {
	case d.Survey:
		k.do(c, "session-survey", func(ctx context.Context) any {
			survey, err := sessions.Look(ctx, caller)
			return &tableSurveyed{session, survey, err}
		})
	case d.Raise > 0:
		k.do(c, "session-limit", func(ctx context.Context) any {
			return &limitRaised{session, d.Raise, sessions.Raise(ctx, caller, d.Raise)}
		})
	case d.Free > 0:
		left, slice := k.left, sessions.Slice{Deletions: d.Free, Dumps: k.cfg.Dumps}
		k.do(c, "session-freeing", func(ctx context.Context) any {
			return &sessionsFreed{session, sessions.Free(ctx, caller, left, slice)}
		})
	}
}

// raised writes down another limit.
func (k *sessionKeeper) raised(c *runtime.Context, m *limitRaised) {
	before, exact := k.history.Limit(k.usage)
	if !k.done(c, m.session, m.err) {
		return
	}
	k.history = k.history.Raised(c.Now(), m.limit, m.err)
	e := &messages.Event{Kind: "sessions", Object: "nat44", Text: fmt.Sprintf("NAT session limit %d -> %d: %d sessions", before, m.limit, k.usage.Busiest)}
	if !exact {
		e.Text = fmt.Sprintf("NAT session limit -> %d, from a value that VPP does not tell: %d sessions", m.limit, k.usage.Busiest)
	}
	if m.err != nil {
		e.Error = m.err.Error()
		c.Logger().Warn("NAT session limit is not raised", "limit", m.limit, "err", m.err)
	} else {
		c.Logger().Info("NAT session limit is raised", "limit", m.limit, "sessions", k.usage.Busiest)
	}
	record(c, e)
	k.observe()
}

// freedSome counts the deletions of a slice.
func (k *sessionKeeper) freedSome(c *runtime.Context, m *sessionsFreed) {
	f := m.freed
	if o := k.deps.SessionObserver; o != nil {
		o.SessionsDeleted(f.Deleted)
		if f.Errors > 0 {
			o.SessionErrors(f.Errors)
		}
	}
	k.freed += f.Deleted
	if !k.done(c, m.session, f.Err) {
		return
	}
	k.left = f.Left
	k.history = k.history.Freed(c.Now(), f)
	if f.Err != nil || f.Errors > 0 {
		c.Logger().Warn("expired NAT sessions are not deleted", "refused", f.Errors, "err", f.Err)
	}
}

// settle writes down what was freed when that is over.
func (k *sessionKeeper) settle(c *runtime.Context) {
	if k.freed > 0 {
		record(c, &messages.Event{Kind: "sessions", Object: "nat44", Text: fmt.Sprintf("%d expired NAT sessions freed", k.freed)})
		c.Logger().Info("expired NAT sessions freed", "sessions", k.freed)
	}
	k.freed = 0
}

// sound begins or ends the alarm.
func (k *sessionKeeper) sound(c *runtime.Context, alarm string) {
	if (alarm == "") != (k.alarm == "") {
		e := &messages.Event{Kind: "sessions", Object: "nat44", Text: "alarm: new connections are about to be refused", Error: alarm}
		if alarm == "" {
			e.Text = "alarm is over"
			c.Logger().Info("NAT sessions: " + e.Text)
		} else {
			c.Logger().Error("NAT sessions: "+e.Text, "err", alarm)
		}
		record(c, e)
	}
	k.alarm = alarm
	k.warn(c)
}

// warn reports the health of the part, which is always good: the node serves what it should. A warning stands beside it.
func (k *sessionKeeper) warn(c *runtime.Context) {
	reason := k.alarm
	if k.broken != "" {
		reason = "NAT sessions cannot be looked after: " + k.broken
	}
	if k.last.GetReason() != reason {
		k.report(c, true, reason, 0)
	}
}

// observe tells the metrics.
func (k *sessionKeeper) observe() {
	if k.deps.SessionObserver != nil {
		limit, exact := k.history.Limit(k.usage)
		if !exact {
			limit = 0
		}
		k.deps.SessionObserver.Sessions(k.usage, limit, k.history.Survey, k.alarm != "")
	}
}
