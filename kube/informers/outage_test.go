package informers

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutageLog: one line when an outage begins and one when it ends. Watches that expire when it
// ends, and are open again soon, are no outage.
func TestOutageLog(t *testing.T) {
	const (
		away    = "the API server does not answer"
		refused = "the API server refuses the credentials"
		again   = "watching the API server again"
	)
	type step struct {
		cause string // "ok" = watched
		lasts time.Duration
	}
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"a moment":                        {[]step{{away, 900 * time.Millisecond}, {"ok", time.Minute}}, nil},
		"an outage":                       {[]step{{away, time.Minute}, {"ok", time.Minute}}, []string{away, again}},
		"its end has expired watches":     {[]step{{away, time.Minute}, {"ok", time.Second}, {"", 5 * time.Second}, {"ok", time.Minute}}, []string{away, again}},
		"watches that go on expiring":     {[]step{{"", time.Minute}, {"ok", time.Minute}}, []string{"", again}},
		"expired watches begin an outage": {[]step{{"", 500 * time.Millisecond}, {away, time.Minute}, {"ok", time.Minute}}, []string{away, again}},
		"another cause that lasts":        {[]step{{away, time.Minute}, {refused, time.Minute}, {"ok", time.Minute}}, []string{away, refused, again}},
		"another cause for a moment":      {[]step{{away, time.Minute}, {refused, time.Second}, {"ok", time.Minute}}, []string{away, again}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				var o outageLog
				o.begin(slog.New(slog.NewJSONHandler(&out, nil)))
				defer o.timer.Stop()
				o.reported(verdict{ok: true})
				for _, s := range c.steps {
					v := verdict{ok: s.cause == "ok", reason: s.cause, causes: s.cause}
					o.reported(v)
					for end := time.After(s.lasts); end != nil; {
						select {
						case <-o.timer.C:
							o.lasts(v)
						case <-end:
							end = nil
						}
					}
				}
				got := said(out.String())[1:]
				if !slices.Equal(got, c.want) {
					t.Errorf("logged %q, want %q\n%s", got, c.want, out.String())
				}
			})
		})
	}
}

// said returns the causes in the lines of a log, and the messages of lines without a cause.
func said(log string) (out []string) {
	for line := range strings.Lines(log) {
		var entry struct {
			Msg string
			Err *string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return []string{err.Error()}
		}
		if entry.Err != nil {
			entry.Msg = *entry.Err
		}
		out = append(out, entry.Msg)
	}
	return out
}
