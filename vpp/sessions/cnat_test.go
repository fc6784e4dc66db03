package sessions

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// shown is the output of VPP 25.10 and 26.06 for the two commands.
const (
	shownSessions = "-- Pool 0 [256/256]\n-- Pool 1 [44/512]\nTotal timestamps 300\n"
	shownErrors   = `  Count                  Node                              Reason               Severity 
         7         cnat-output-ip6                 no more free ports           error   
         5         cnat-output-ip4                 no more free ports           error   
         2         cnat-output-ip6                 no more free ports           error   
         9         cnat-output-ip6             session allocation failure       error   
         4            ip4-input                    no more free ports           error   
`
)

func TestParseCNAT(t *testing.T) {
	if got, err := parseCNAT(shownSessions, shownErrors); err != nil || got != (CNAT{Sessions: 300, NoPort: 14, NoSession: 9}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseCNAT("Total timestamps 0", ""); err != nil || got != (CNAT{}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, odd := range []string{"", "unknown input `show cnat timestamp'\n", "Total timestamps many"} {
		if got, err := parseCNAT(odd, shownErrors); !errors.Is(err, ErrNotUnderstood) {
			t.Errorf("%q: %+v, %v", odd, got, err)
		}
	}
}

// TestLookCNAT: the simulated VPP prints the same as the real one.
func TestLookCNAT(t *testing.T) {
	r := newRig(t, 0)
	if got, err := LookCNAT(t.Context(), r.link); err != nil || got != (CNAT{}) {
		t.Errorf("%+v, %v", got, err)
	}
	r.Crash()
	if _, err := LookCNAT(t.Context(), r.link); err == nil {
		t.Error("a dead VPP was read")
	}
}

func TestDecideCNAT(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var h CNATHistory
	for i, step := range []struct {
		usage CNAT
		want  string
	}{
		{CNAT{Sessions: 100, NoPort: 50, NoSession: 3}, ""}, // of the time before this agent
		{CNAT{Sessions: 14744, NoPort: 50, NoSession: 3}, ""},
		{CNAT{Sessions: 14745, NoPort: 50, NoSession: 3}, "CNAT has 14745 sessions, and a NAT address has 16383 source ports for each protocol"},
		// ends below 80 percent
		{CNAT{Sessions: 13107, NoPort: 50, NoSession: 3}, "CNAT has 13107 sessions"},
		{CNAT{Sessions: 13106, NoPort: 50, NoSession: 3}, ""},
		{CNAT{Sessions: 14744, NoPort: 50, NoSession: 3}, ""},
		{CNAT{Sessions: 200, NoPort: 51, NoSession: 3}, "CNAT refuses connections: the 16383 source ports that a NAT address has for each protocol are taken; 200 sessions"},
		// lasts for two minutes
		{CNAT{Sessions: 100, NoPort: 51, NoSession: 3}, "CNAT refuses connections"},
		{CNAT{Sessions: 100, NoPort: 51, NoSession: 3}, ""},
		{CNAT{Sessions: 100, NoPort: 51, NoSession: 4}, "CNAT refuses connections: its table of sessions is full; 100 sessions"},
		{CNAT{Sessions: 100}, "CNAT refuses connections"}, // the counters were cleared
		{CNAT{Sessions: 100}, ""},
		{CNAT{Sessions: 100, NoPort: 1}, "CNAT refuses connections: the 16383 source ports"},
	} {
		alarm, next := DecideCNAT(now.Add(time.Duration(i)*time.Minute), step.usage, h, Config{})
		if h = next; !strings.HasPrefix(alarm, step.want) || (alarm == "") != (step.want == "") {
			t.Errorf("%d: %q, want %q", i, alarm, step.want)
		}
	}
}
