package sessions

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// noon is when most tests begin.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// surveyed is a history with a limit and a number of expired sessions.
func surveyed(at time.Time, limit uint32, sessions, expired uint64) History {
	return History{}.Surveyed(at, Survey{Known: true, Limit: limit, LimitKnown: true, All: Count{sessions, expired}}, nil)
}

// used is a usage of one worker.
func used(n uint64) Usage { return Usage{Enabled: true, Busiest: n, Total: n, Base: 1000} }

func TestDecide(t *testing.T) {
	refused := errors.New("refused")
	cfg := Config{Max: 4096}
	for _, tt := range []struct {
		name  string
		usage Usage
		h     History
		cfg   Config
		want  Decision
		alarm string
	}{
		{"plugin off", Usage{}, surveyed(noon, 1000, 0, 0), cfg, Decision{Next: 5 * time.Second}, ""},
		{"nothing known", used(10), History{}, cfg, Decision{Survey: true, Next: 5 * time.Second}, ""},
		{"nearly empty", used(10), surveyed(noon, 1000, 10, 10), cfg, Decision{Next: 5 * time.Second}, ""},
		{"nearly empty, a costly look", Usage{Enabled: true, Busiest: 10, Total: 10, Base: 1000, Costly: true}, surveyed(noon, 1000, 10, 10), cfg, Decision{Next: 10 * time.Second}, ""},
		{"survey is old", used(10), surveyed(noon.Add(-time.Minute), 1000, 10, 0), cfg, Decision{Survey: true, Next: 5 * time.Second}, ""},
		{"survey is too old to act on", used(750), surveyed(noon.Add(-10*time.Second), 1000, 750, 0), cfg, Decision{Survey: true, Next: time.Second}, ""},
		{"below the threshold", used(749), surveyed(noon, 1000, 749, 749), cfg, Decision{Next: 5 * time.Second}, ""},
		{"expired sessions", used(800), surveyed(noon, 1000, 800, 700), cfg, Decision{Free: 200, Next: time.Second}, ""},
		{"few expired sessions", used(800), surveyed(noon, 1000, 800, 20), Config{}, Decision{Free: 20, Next: time.Second}, ""},
		{"many expired sessions", used(800), surveyed(noon, 1000, 800, 700), Config{Max: 4096, Batch: 100}, Decision{Free: 100, Next: time.Second}, ""},
		{"nothing to free", used(800), surveyed(noon, 1000, 800, 0), Config{}, Decision{Next: time.Second}, ""},
		{"living sessions need room", used(750), surveyed(noon, 1000, 750, 50), cfg, Decision{Raise: 2048, Next: time.Second}, ""},
		{"dead sessions need none", used(850), surveyed(noon, 1000, 850, 600), cfg, Decision{Free: 250, Next: time.Second}, ""},
		{"nearly full of dead sessions", used(900), surveyed(noon, 1000, 900, 900), cfg, Decision{Raise: 2048, Next: time.Second}, ""},
		{"full", used(1000), surveyed(noon, 1000, 1000, 1000), cfg, Decision{Raise: 2048, Next: time.Second}, ""},
		{"full, up to the cap", used(3000), surveyed(noon, 3000, 3000, 0), cfg, Decision{Raise: 4096, Next: time.Second}, ""},
		{"at the cap, something to free", used(3900), surveyed(noon, 4096, 3900, 2000), cfg, Decision{Free: 1000, Next: time.Second}, ""},
		{"at the cap, nothing to free", used(3900), surveyed(noon, 4096, 3900, 0), cfg, Decision{Next: time.Second}, "95% full: the limit of 4096 is the highest allowed"},
		{"at the cap, on the brim", used(4090), surveyed(noon, 4096, 4090, 2000), cfg, Decision{Free: 1000, Next: time.Second}, "99% full"},
		{"raising is not allowed", used(1000), surveyed(noon, 1000, 1000, 0), Config{}, Decision{Next: time.Second}, "100% full: the limit of 1000 is the highest"},
		{"below what is wanted", used(0), surveyed(noon, 1000, 0, 0), Config{Min: 2000}, Decision{Raise: 2000, Next: time.Second}, ""},
		{"limit of zero", used(0), surveyed(noon, 0, 0, 0), cfg, Decision{Raise: 1024, Next: time.Second}, ""},
		{
			"above what was known of the limit", used(1200), surveyed(noon.Add(-time.Second), 1000, 1200, 0), cfg,
			Decision{Survey: true, Next: time.Second},
			"",
		},
		{
			"raising was refused", used(1000), surveyed(noon, 1000, 1000, 0).Raised(noon, 2000, refused), cfg,
			Decision{Next: time.Second},
			"VPP refuses to raise the limit of 1000",
		},
		{
			"raising was refused long ago", used(1000), surveyed(noon, 1000, 1000, 0).Raised(noon.Add(-30*time.Second), 2000, refused), cfg,
			Decision{Raise: 2048, Next: time.Second},
			"",
		},
		{
			"freeing has failed", used(800), surveyed(noon, 1000, 800, 800).Freed(noon, Freed{Err: refused}), cfg,
			Decision{Next: time.Second},
			"",
		},
		{
			"freeing found nothing", used(800), surveyed(noon, 1000, 800, 800).Freed(noon, Freed{Complete: true}), cfg,
			Decision{Next: time.Second},
			"",
		},
		{
			"limit cannot be read", used(900), History{}.Surveyed(noon, Survey{}, refused), cfg,
			Decision{Raise: 4096, Next: time.Second},
			"",
		},
		{
			"limit cannot be read and must not be raised", used(800), History{}.Surveyed(noon, Survey{}, refused),
			Config{},
			Decision{Free: 200, Next: time.Second},
			"",
		},
		{
			"limit was set and cannot be read", used(2000), History{}.Surveyed(noon, Survey{}, refused).Raised(noon, 4096, nil), cfg,
			Decision{Next: 5 * time.Second},
			"",
		},
		{
			"one of four workers",
			Usage{Enabled: true, Busiest: 850, Total: 1700, Base: 1000},
			surveyed(noon, 1000, 1700, 1200), cfg,
			Decision{Free: 250, Next: time.Second},
			"", // half of the expired ones are taken for its own
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := Decide(noon, tt.usage, tt.h, tt.cfg)
			alarm := got.Alarm
			if got.Alarm = ""; got != tt.want {
				t.Errorf("decided %+v, want %+v", got, tt.want)
			}
			if (alarm == "") != (tt.alarm == "") || !strings.Contains(alarm, tt.alarm) {
				t.Errorf("alarm %q, want %q", alarm, tt.alarm)
			}
		})
	}
}

// TestDecideForeseesABurst: the limit of a table that grows fast is raised before it is full, even
// at a third of the limit.
func TestDecideForeseesABurst(t *testing.T) {
	h, cfg := surveyed(noon, 10000, 100, 0), Config{Max: 100000}
	_, h = Decide(noon, used(100), h, cfg)
	d, h := Decide(noon.Add(5*time.Second), used(4000), h, cfg)
	if d.Raise < 12000 {
		t.Fatalf("decided %+v at 780 sessions a second", d)
	}
	limit := d.Raise
	h = h.Raised(noon, limit, nil)
	// The burst is over: nothing more happens.
	for i := range 20 {
		if d, h = Decide(noon.Add(time.Duration(6+i)*time.Second), used(4000), h, cfg); d.Raise != 0 || d.Free != 0 {
			t.Errorf("decided %+v although nothing grows", d)
		}
		h = h.Surveyed(noon.Add(time.Duration(6+i)*time.Second), Survey{Known: true, Limit: limit, LimitKnown: true, All: Count{4000, 0}}, nil)
	}
}

// TestDecideFreesDownToTheLowerThreshold and begins again at the upper one only.
func TestDecideFreesDownToTheLowerThreshold(t *testing.T) {
	h, cfg := surveyed(noon, 1000, 850, 850), Config{Batch: 50}
	var steps []uint64
	n := uint64(850)
	for now := noon; now.Before(noon.Add(9 * time.Second)); now = now.Add(time.Second) {
		var d Decision
		if d, h = Decide(now, used(n), h, cfg); d.Free > 0 {
			h = h.Freed(now, Freed{Deleted: d.Free})
			n -= uint64(d.Free)
			steps = append(steps, n)
		}
	}
	if len(steps) != 5 || steps[4] != 600 {
		t.Errorf("freed down to %v", steps)
	}
	for _, n := range []uint64{601, 799} {
		if d, _ := Decide(noon.Add(9*time.Second), used(n), h, cfg); d.Free != 0 {
			t.Errorf("begins again at %d: %+v", n, d)
		}
	}
}

func TestAlarmLastsUntilItIsCalm(t *testing.T) {
	h, cfg := surveyed(noon, 1000, 950, 0), Config{}
	for i, step := range []struct {
		sessions uint64
		alarm    bool
	}{{899, false}, {900, true}, {899, true}, {850, true}, {800, true}, {799, false}, {899, false}, {905, true}} {
		now := noon.Add(time.Duration(i) * time.Second)
		var d Decision
		if d, h = Decide(now, used(step.sessions), h, cfg); (d.Alarm != "") != step.alarm {
			t.Errorf("step %d: %d sessions, alarm %q", i, step.sessions, d.Alarm)
		}
	}
}

func TestCapIsNeverBelowWhatIsWanted(t *testing.T) {
	for _, tt := range []struct{ min, max, want uint32 }{{0, 0, 0}, {10, 0, 10}, {10, 20, 20}, {20, 10, 20}} {
		if got := (Config{Min: tt.min, Max: tt.max}).Cap(); got != tt.want {
			t.Errorf("cap of %+v is %d", tt, got)
		}
	}
}
