package sessions

import (
	"context"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// cnatWatch is the state of CNAT's sessions. The housekeeper only counts them.
type cnatWatch struct {
	history sessions.CNATHistory
	alarm   string
	broken  string // why they cannot be read; "" = they can be read
	tick    func() // cancels the next look; nil = there is none
}

// cnatTick asks for a look at CNAT.
type cnatTick struct{}

// cnatLooked is the result of a look.
type cnatLooked struct {
	connection uint64
	usage      sessions.CNAT
	err        error
}

// restartCNAT begins the looks with a new connection.
func (k *housekeeper) restartCNAT(c *runtime.Context) {
	k.cnat.history = sessions.CNATHistory{}
	if k.cnat.tick != nil {
		k.cnat.tick()
	}
	if k.config.CNAT && k.link.GetUp() {
		k.cnat.tick = c.After(k.settings.Soon, &cnatTick{})
	}
}

// lookCNAT reads how full CNAT is.
func (k *housekeeper) lookCNAT(c *runtime.Context) {
	post, connection, caller := c.Post(), k.link.GetSession(), k.config.VPP
	c.Go("cnat-usage", func(ctx context.Context) {
		usage, err := sessions.LookCNAT(ctx, caller)
		post(&cnatLooked{connection, usage, err})
	})
}

// cnatLooked takes the usage of CNAT, and begins or ends its alarm.
func (k *housekeeper) cnatLooked(c *runtime.Context, m *cnatLooked) {
	if m.connection != k.link.GetSession() || link.Lost(m.err) {
		return // the link reports the next connection
	}
	k.cnat.tick = c.After(k.settings.SurveyEvery, &cnatTick{})
	if m.err != nil {
		if k.cnat.broken == "" {
			c.Logger().Warn("cannot read CNAT sessions", "err", m.err)
			report.Event(c, &messages.Event{Kind: "sessions", Object: "cnat", Text: "cannot read CNAT sessions", Error: m.err.Error()})
		}
		k.cnat.broken = m.err.Error()
		k.warn(c)
		return
	}
	k.cnat.broken = ""
	alarm, next := sessions.DecideCNAT(c.Now(), m.usage, k.cnat.history, k.settings)
	k.cnat.history = next
	raise(c, "cnat", "CNAT sessions", newRefused, k.cnat.alarm, alarm)
	k.cnat.alarm = alarm
	if k.config.Observer != nil {
		k.config.Observer.CNATSessions(m.usage, alarm != "")
	}
	k.warn(c)
}
