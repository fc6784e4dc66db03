package sessions

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// table is a model of VPP's session table, as far as the policy depends on it.
type table struct {
	limit      uint32
	live, dead uint64
	understood bool // the survey is
	raisable   bool
}

func (m *table) usage() Usage {
	n := m.live + m.dead
	return Usage{Enabled: true, Busiest: n, Total: n, Base: 1000}
}

// carryOut carries out a decision.
func (m *table) carryOut(t *rapid.T, now time.Time, d Decision, h History, cfg Config) History {
	switch {
	case d.Survey && !m.understood:
		return h.Surveyed(now, Survey{}, ErrNotUnderstood)
	case d.Survey:
		return h.Surveyed(now, Survey{Known: true, Limit: m.limit, LimitKnown: true, All: Count{m.live + m.dead, m.dead}}, nil)
	case d.Raise > 0 && !m.raisable:
		return h.Raised(now, d.Raise, errors.New("refused"))
	case d.Raise > 0:
		if d.Raise < m.limit || d.Raise == m.limit && m.understood {
			t.Fatalf("limit %d is set to %d", m.limit, d.Raise)
		}
		if d.Raise > cfg.Cap() {
			t.Fatalf("limit is set to %d, the cap is %d", d.Raise, cfg.Cap())
		}
		m.limit = d.Raise
		return h.Raised(now, d.Raise, nil)
	case d.Free > 0:
		n := min(uint64(d.Free), m.dead)
		m.dead -= n
		return h.Freed(now, Freed{Deleted: int(n), Complete: m.dead == 0})
	}
	return h
}

// check holds for every decision.
func (d Decision) check(t *rapid.T, cfg Config) {
	actions := 0
	for _, does := range []bool{d.Survey, d.Raise > 0, d.Free > 0} {
		if does {
			actions++
		}
	}
	if actions > 1 {
		t.Fatalf("several things at once: %+v", d)
	}
	if d.Free > cfg.WithDefaults().Batch || d.Next <= 0 {
		t.Fatalf("decided %+v", d)
	}
}

func drawTable(t *rapid.T) (*table, Config) {
	m := &table{limit: 1000, understood: rapid.Bool().Draw(t, "understood"), raisable: rapid.Bool().Draw(t, "raisable")}
	cfg := Config{
		Min:   rapid.SampledFrom([]uint32{0, 500, 3000}).Draw(t, "min"),
		Max:   rapid.SampledFrom([]uint32{0, 1500, 10000}).Draw(t, "max"),
		Batch: rapid.SampledFrom([]int{0, 50}).Draw(t, "batch"),
	}
	if rapid.Bool().Draw(t, "raised by an earlier agent") {
		m.limit = max(m.limit, cfg.Cap())
	}
	return m, cfg
}

// step lets the policy work until it wants to wait.
func step(t *rapid.T, m *table, now time.Time, h History, cfg Config) (Decision, History) {
	var d Decision
	d, h = Decide(now, m.usage(), h, cfg)
	d.check(t, cfg)
	h = m.carryOut(t, now, d, h, cfg)
	if d.Survey {
		if d, h = Decide(now, m.usage(), h, cfg); d.Survey {
			t.Fatalf("surveys twice at the same time")
		}
		d.check(t, cfg)
		h = m.carryOut(t, now, d, h, cfg)
	}
	return d, h
}

// TestPropertyPolicy: whatever happens to the table, the limit never falls and never passes the
// cap, and when the table rests the policy comes to rest: no alternation between two states, only
// surveys now and then.
func TestPropertyPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, cfg := drawTable(t)
		now, h := noon, History{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			room := uint64(m.limit) - min(uint64(m.limit), m.live+m.dead)
			m.live += min(uint64(rapid.IntRange(0, 800).Draw(t, "new")), room)
			expire := min(uint64(rapid.IntRange(0, 800).Draw(t, "expired")), m.live)
			m.live, m.dead = m.live-expire, m.dead+expire
			if rapid.IntRange(0, 20).Draw(t, "agent restarts") == 0 {
				h = History{}
			}
			var d Decision
			d, h = step(t, m, now, h, cfg)
			now = now.Add(d.Next)
		}
		for range 200 { // rest: growth is forgotten, everything that can be freed is
			var d Decision
			d, h = step(t, m, now, h, cfg)
			now = now.Add(d.Next)
		}
		limit, dead, alarm := m.limit, m.dead, ""
		for i := range 200 {
			var d Decision
			d, h = step(t, m, now, h, cfg)
			if i > 0 && (d.Alarm == "") != (alarm == "") && m.raisable {
				t.Fatalf("the alarm flaps: %q, %q", alarm, d.Alarm)
			}
			alarm = d.Alarm
			now = now.Add(d.Next)
		}
		if m.limit != limit || m.dead != dead {
			t.Fatalf("at rest the limit went from %d to %d, the expired sessions from %d to %d", limit, m.limit, dead, m.dead)
		}
	})
}

// TestPropertyNoConnectionIsRefused: as long as all sessions fit below the cap and no more than a
// tenth of the limit come between two reads, the table is never full.
func TestPropertyNoConnectionIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &table{limit: 1000, understood: rapid.Bool().Draw(t, "understood"), raisable: true}
		cfg := Config{Max: 100000}
		now, h := noon, History{}
		for range 100 {
			room := uint64(cfg.Max) - 1 - m.live - m.dead
			grow := min(uint64(rapid.IntRange(0, int(m.limit)/10-1).Draw(t, "new")), room)
			if m.live+m.dead+grow >= uint64(m.limit) {
				t.Fatalf("full: %d living, %d expired, %d new, limit %d", m.live, m.dead, grow, m.limit)
			}
			m.live += grow
			expire := m.live * uint64(rapid.IntRange(0, 100).Draw(t, "expired")) / 100
			m.live, m.dead = m.live-expire, m.dead+expire
			var d Decision
			d, h = step(t, m, now, h, cfg)
			now = now.Add(d.Next)
		}
	})
}
