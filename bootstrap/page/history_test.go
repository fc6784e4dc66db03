package page

import (
	"strings"
	"testing"
	"time"
)

// TestHistory: changes and their latency, minute by minute, for an hour.
func TestHistory(t *testing.T) {
	var h History
	start := time.Unix(1_800_000_000, 0)
	show := func(now time.Time) string {
		var all []string
		for _, c := range h.curves(now) {
			all = append(all, c.Now+" of "+c.Most)
		}
		return strings.Join(all, "; ")
	}
	if got := show(start); got != "0 of 0 in a minute; - of -; - of -" {
		t.Errorf("at first %s", got)
	}
	for range 99 {
		h.Programmed(start, 5*time.Millisecond)
	}
	for range 102 {
		h.Synced(start)
	}
	h.Programmed(start, 3*time.Second)
	h.Programmed(start, time.Hour)
	h.Programmed(start, -time.Second)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "102 of 102 in a minute; < 8ms of < 8ms; < 4.096s of < 4.096s"},
		{59 * time.Minute, "102 of 102 in a minute; < 8ms of < 8ms; < 4.096s of < 4.096s"},
		{60 * time.Minute, "0 of 0 in a minute; - of -; - of -"},
	} {
		if got := show(start.Add(c.after)); got != c.want {
			t.Errorf("after %s: %s, want %s", c.after, got, c.want)
		}
	}
	h.Programmed(start.Add(100*time.Hour), time.Millisecond)
	h.Synced(start.Add(100 * time.Hour))
	h.Synced(start)
	// a clock that was set back: it counts in the present minute
	h.Programmed(start, time.Millisecond)
	if got := show(start.Add(100 * time.Hour)); got != "2 of 2 in a minute; < 2ms of < 2ms; < 2ms of < 2ms" {
		t.Errorf("much later %s", got)
	}
}
