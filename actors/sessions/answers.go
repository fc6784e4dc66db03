package sessions

import (
	"context"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// Signs reads counters of VPP that hint at lost answers; *sessions.SignsReader satisfies it.
type Signs interface {
	// Read reads the counters at no cost for VPP. It returns when ctx ends, even if VPP hangs.
	Read(ctx context.Context) (sessions.Signs, error)
}

// answersDumps is how many dumps a look at new connections makes at most.
const answersDumps = 4

// answersWatch looks whether answers of endpoints come back. vpp/sessions decides.
type answersWatch struct {
	sampler *sessions.Sampler // belongs to the goroutine of a look while one is under way
	history sessions.AnswersHistory
	silent  []sessions.Silent
	alarm   string
	total   uint64    // sessions at the last look
	young   bool      // the last look found young connections
	rest    time.Time // no look before
}

// answersLooked is the result of a look at new connections.
type answersLooked struct {
	connection uint64
	began      time.Time
	flows      []sessions.Flow
	signs      *sessions.Signs // nil = not known
	err        error
}

// lookAtAnswers begins a look at new connections, unless nothing has changed since the last one. As
// for draining backends, VPP then gets a rest.
func (k *housekeeper) lookAtAnswers(c *runtime.Context) {
	w := &k.answers
	if k.busy || c.Now().Before(w.rest) || k.usage.Total == w.total && !w.young {
		return
	}
	w.total = k.usage.Total
	connection, caller, sampler, signs, now := k.link.GetSession(), k.config.VPP, w.sampler, k.config.Signs, c.Now()
	k.do(c, "session-answers", func(ctx context.Context) any {
		m := &answersLooked{connection: connection, began: now}
		if m.flows, m.err = sampler.Look(ctx, caller, now, answersDumps); m.err != nil || signs == nil {
			return m
		}
		brief, cancel := context.WithTimeout(ctx, statsTimeout)
		defer cancel()
		if read, err := signs.Read(brief); err == nil {
			m.signs = &read
		}
		return m
	})
}

// lookedAtAnswers takes the result of a look, and begins or ends its alarm.
func (k *housekeeper) lookedAtAnswers(c *runtime.Context, m *answersLooked) {
	if !k.done(c, m.connection, m.err) {
		return
	}
	w := &k.answers
	w.rest = c.Now().Add(min(restFactor*c.Now().Sub(m.began), longestRest))
	if m.err != nil {
		return // the next look of the table says why sessions cannot be read
	}
	w.young, w.silent = len(m.flows) > 0, sessions.Judge(m.flows)
	alarm, next := sessions.DecideAnswers(c.Now(), w.silent, m.signs, w.history)
	w.history = next
	raise(c, "nat44", "answers", "answers do not come back", w.alarm, alarm)
	w.alarm = alarm
	k.warn(c)
	if o := k.config.Observer; o != nil {
		o.Unanswered(w.silent, alarm)
	}
}

// forgetAnswers ends the verdict with the connection to VPP.
func (k *housekeeper) forgetAnswers(c *runtime.Context) {
	raise(c, "nat44", "answers", "", k.answers.alarm, "")
	k.answers = answersWatch{sampler: &sessions.Sampler{}}
	k.warn(c)
	if o := k.config.Observer; o != nil {
		o.Unanswered(nil, "")
	}
}
