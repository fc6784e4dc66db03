package files

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	p := Pace{Quiet: 50 * time.Millisecond, Most: time.Second}
	for age, want := range map[time.Duration]time.Duration{
		0: p.Quiet, 500 * time.Millisecond: p.Quiet, 980 * time.Millisecond: 20 * time.Millisecond, time.Second: 0, time.Minute: 0,
	} {
		if got := p.wait(age); got != want {
			t.Errorf("after %v wait %v, want %v", age, got, want)
		}
	}
}
