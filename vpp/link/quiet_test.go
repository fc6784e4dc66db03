package link

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.fd.io/govpp/adapter/statsclient"
)

func TestQuiet(t *testing.T) {
	t.Cleanup(func() { Quiet(quietLog()) })
	var out bytes.Buffer
	for level, want := range map[slog.Level]int{slog.LevelDebug: 1, slog.LevelInfo: 0} {
		out.Reset()
		Quiet(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		statsclient.Log.WithField("a", 1).Warn("drop")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("level %v: %d lines: %q", level, got, out.String())
		}
		if want > 0 && (!strings.Contains(out.String(), "component=govpp/statsclient") || !strings.Contains(out.String(), "drop")) {
			t.Errorf("line %q", out.String())
		}
	}
}
