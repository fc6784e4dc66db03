package sessions

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// answersDumps is how many dumps a look at new connections makes at most.
const answersDumps = 4

// answersWatch looks whether answers of endpoints come back. vpp/sessions decides.
type answersWatch struct {
	sampler *sessions.Sampler // belongs to the goroutine of a look while one is under way
	history sessions.AnswersHistory
	silent  []sessions.Silent
	alarm   string
	total   uint64          // sessions at the last look
	signs   *sessions.Signs // at the last look; nil = not known
	young   bool            // the last look found young connections
	rest    time.Time       // no look before
}

// answersLooked is the result of a look at new connections.
type answersLooked struct {
	connection uint64
	began      time.Time
	idle       bool // there was nothing to look at
	flows      []sessions.Flow
	signs      *sessions.Signs // nil = not known
	err        error
}

// lookAtAnswers begins a look at new connections. If there are none, it only reads the counters. As
// for draining backends, VPP gets a rest after dumps.
func (k *housekeeper) lookAtAnswers(c *runtime.Context) {
	w := &k.answers
	if k.busy || c.Now().Before(w.rest) {
		return
	}
	connection, caller, now := k.link.GetSession(), k.config.VPP, c.Now()
	sampler, source, last, young, grown := w.sampler, k.config.Signs, w.signs, w.young, k.usage.Total != w.total
	w.total = k.usage.Total
	k.do(c, "session-answers", func(ctx context.Context) any {
		m := &answersLooked{connection: connection, began: now, signs: readSigns(ctx, source)}
		if m.signs != nil && last != nil {
			grown = m.signs.New != last.New
		}
		if m.idle = !young && !grown; !m.idle {
			m.flows, m.err = sampler.Look(ctx, caller, now, answersDumps)
		}
		if s := m.signs; s != nil && s.DeniedIn+s.DeniedOut > 0 && slices.ContainsFunc(m.flows, func(f sessions.Flow) bool { return f.Unanswered() }) {
			s.Lists = denying(ctx, caller, s)
		}
		return m
	})
}

// readSigns reads the counters; nil = they cannot be read.
func readSigns(ctx context.Context, source stats.Source[sessions.Signs]) *sessions.Signs {
	if source == nil {
		return nil
	}
	brief, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	signs, err := source.Read(brief)
	if err != nil {
		return nil
	}
	return &signs
}

// denying says where access lists of others are that may have denied packets; nil = not known.
func denying(ctx context.Context, caller link.Caller, s *sessions.Signs) (lists []string) {
	enter, leave, err := acl.Others(ctx, caller)
	if err == nil && s.DeniedIn > 0 && enter != "" {
		lists = append(lists, "where packets "+enter)
	}
	if err == nil && s.DeniedOut > 0 && leave != "" {
		lists = append(lists, "where packets "+leave)
	}
	return lists
}

// lookedAtAnswers takes the result of a look, and begins or ends its alarm.
func (k *housekeeper) lookedAtAnswers(c *runtime.Context, m *answersLooked) {
	if !k.done(c, m.connection, m.err) {
		return
	}
	w := &k.answers
	if !m.idle {
		w.rest = c.Now().Add(min(restFactor*c.Now().Sub(m.began), longestRest))
	}
	if m.err != nil {
		return // the next look of the table says why sessions cannot be read
	}
	w.signs = m.signs
	silent, alarm, next := sessions.DecideAnswers(c.Now(), m.flows, m.signs, w.history)
	w.young, w.silent, w.history = len(m.flows) > 0, silent, next
	what := "answers do not come back"
	if len(w.silent) == 0 {
		what = "packets of other protocols are lost"
	}
	raise(c, "nat44", "answers", what, w.alarm, alarm)
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
